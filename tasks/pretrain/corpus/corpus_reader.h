#ifndef ETC_TASKS_PRETRAIN_CORPUS_CORPUS_READER_H_
#define ETC_TASKS_PRETRAIN_CORPUS_CORPUS_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/data/text_file.h"

namespace etc {

enum class CorpusFormat {
  // BERT's: a sentence a line, a blank line between documents
  // (doc/pretraining.md 1).
  kBert,
  // Running text; a blank line ends a paragraph, and with it a sentence.
  kText,
  // A JSON object a line, a document each; one field has running text.
  kJsonLines,
};

// The name that stands for standard input among files.
inline constexpr char kCorpusOnStandardInput[] = "-";

struct CorpusOptions {
  // In this order. Plain or compressed by gzip; kCorpusOnStandardInput plain.
  std::vector<std::string> files;
  CorpusFormat format = CorpusFormat::kBert;
  // kJsonLines: the field with the text.
  std::string field = "text";
  // kBert: whether the end of a file leaves its last document open, as in the
  // official program, which then goes on with the next file.
  bool glue_files = false;
  // kText: this many blank lines in a row end a document; 0: none do, so that a
  // file is a document.
  int64_t blank_lines = 0;
  // kText: whether the text is laid out as WikiText is: a line is a paragraph,
  // and the title of an article, " = Title = ", begins a document.
  bool wikitext = false;
  uint64_t max_line_bytes = RecordLimits().max_record_bytes;
};

// A part of a corpus that is tokenized apart from all others.
struct CorpusPiece {
  // Bytes [begin, end) of the batch's text: a line of BERT's, a paragraph, or a
  // JSON object; empty where only a document ends.
  size_t begin = 0;
  size_t end = 0;
  // Number of its first line, from 1.
  int64_t line = 0;
  // True if a document ends behind it.
  bool ends_document = false;
};

// Pieces of one file, in order.
struct CorpusBatch {
  std::string path;
  std::string text;
  std::vector<CorpusPiece> pieces;
  // Bytes of all files up to the end of this batch; packed, where it is gzip.
  uint64_t bytes_read = 0;
};

// Cuts a corpus into batches of about 256 KiB, which do not depend on who reads
// them. Memory: a batch, or the longest line.
class CorpusReader {
 public:
  // `stop` is that of TextFile::OpenStandardInput.
  explicit CorpusReader(CorpusOptions options,
                        const std::atomic<bool>* stop = nullptr);

  // The bytes of all files, each of which can be opened and begins as text.
  // Standard input counts as none.
  //   errors of TextFile::Open
  absl::StatusOr<uint64_t> CountBytes() const;

  // Reads the next batch; returns false behind the last. Errors of TextFile.
  absl::StatusOr<bool> Next(CorpusBatch* batch);

 private:
  absl::StatusOr<std::unique_ptr<TextFile>> Open(const std::string& path) const;
  // Reads lines of the open file.
  absl::StatusOr<bool> ReadLines(CorpusBatch* batch);
  void TakeLine(absl::string_view line, CorpusBatch* batch);
  void TakeBertLine(absl::string_view line, CorpusBatch* batch) const;
  void TakeTextLine(absl::string_view line, CorpusBatch* batch);
  void AddPiece(absl::string_view text, int64_t line, CorpusBatch* batch) const;
  void EndDocument(CorpusBatch* batch) const;
  void EndParagraph(CorpusBatch* batch);
  void EndFile(CorpusBatch* batch);

  const CorpusOptions options_;
  const std::atomic<bool>* const stop_;
  size_t next_file_ = 0;
  std::unique_ptr<TextFile> file_;  // null: the next one is to be opened
  uint64_t bytes_of_files_before_ = 0;
  // kText: the paragraph that is being read, its first line, and the blank
  // lines since the last one that was not.
  std::string paragraph_;
  int64_t paragraph_line_ = 0;
  int64_t blank_lines_ = 0;
};

// Returns true if `line` is the title of an article as in WikiText: "= Title ="
// with white space around it, and not "= = Section = =".
bool IsWikiTitle(absl::string_view line);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_CORPUS_READER_H_
