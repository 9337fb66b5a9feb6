#ifndef ETC_TASKS_TOKENS_CONLL_H_
#define ETC_TASKS_TOKENS_CONLL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/record_file.h"
#include "tasks/tokens/options.h"

namespace etc {

// A document of a CoNLL file.
struct ConllDocument {
  // The field of the document's column; empty without one.
  std::string id;
  std::vector<std::vector<std::string>> sentences;
  // As they stand there, for each word; empty if the file has no such column.
  std::vector<std::vector<std::string>> tags;
  // Line of each word, from 1 on.
  std::vector<int64_t> lines;
};

// The field of a record of CoNLL with ConllDocument::lines. No file has such a
// field.
inline constexpr char kConllLinesField[] = "\nlines";

// Reads a CoNLL file: a word and its columns on each line, between tabs, or
// else blanks; an empty line behind each sentence. Documents are those of
// `options.document_column`, or begin with a line whose word is -DOCSTART-; in
// a file without either each sentence is one. In .conllu files comments ("#
// sent_id = 1"), ranges of words and empty nodes (whose first column is "1-2"
// or "8.1", unless that is the word) are left out. In others, lines that begin
// with "# " or "#" and a tab are comments if one of them stands before all
// words, those aside that have a word's columns and a label, or before all
// words no column of labels.
//   kInvalidArgument    a line with more or fewer columns than the first one,
//                       or that is not UTF-8; no column of words or documents,
//                       or one column for both; the first word has neither a
//                       label nor "_" in the column of labels (but .conllu)
//   kResourceExhausted  a line is longer than `limits` say
// and errors of TextFile.
absl::StatusOr<std::vector<ConllDocument>> ReadConllFile(
    const std::string& path, const TokensOptions& options,
    const RecordLimits& limits);

// Ends of the names of CoNLL files.
inline constexpr const char* kConllEndings[] = {
    ".conll", ".conllu", ".iob", ".iob2", ".bio", ".tsv", ".txt"};

// Returns true if the name ends so, perhaps packed (.gz).
bool IsConllName(const std::string& path);

// Returns true if a file has CoNLL in it, and no records as JSON: the first
// line that is not blank begins neither an object nor a list of objects.
// Errors of TextFile.
absl::StatusOr<bool> HasConll(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_CONLL_H_
