#ifndef ETC_TASKS_TOKENS_CONLL_H_
#define ETC_TASKS_TOKENS_CONLL_H_

#include <cstdint>
#include <optional>
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
  // Line of the first word of each sentence, from 1 on.
  std::vector<int64_t> lines;
};

// The field of a record of CoNLL with ConllDocument::lines. No file has such a
// field.
inline constexpr char kConllLinesField[] = "\nlines";

// Reads a CoNLL file: a word and its columns on each line, between tabs, or
// else blanks; an empty line behind each sentence. Documents are those of
// `options.document_column`, or begin with a line whose word is -DOCSTART-; in
// a file without either each sentence is one.
//   kInvalidArgument    a line with more or fewer columns than the first one,
//   or
//                       that is not UTF-8; no column of words or documents
//   kResourceExhausted  a line is longer than `limits` say
// and errors of TextFile.
absl::StatusOr<std::vector<ConllDocument>> ReadConllFile(
    const std::string& path, const TokensOptions& options,
    const RecordLimits& limits);

// Returns true if the name is one of a CoNLL file: .conll, .conllu, .iob,
// .iob2, .bio, .tsv or .txt, perhaps packed (.gz).
bool IsConllName(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_CONLL_H_
