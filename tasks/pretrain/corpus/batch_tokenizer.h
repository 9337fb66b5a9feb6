#ifndef ETC_TASKS_PRETRAIN_CORPUS_BATCH_TOKENIZER_H_
#define ETC_TASKS_PRETRAIN_CORPUS_BATCH_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/pretrain/corpus/corpus_reader.h"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"
#include "tasks/pretrain/corpus/word_cache.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {

// Treatment of bytes that are not UTF-8, and of JSON's escapes of surrogates
// without their other half, as in "\ud83d".
enum class InvalidUtf8 {
  // Each ill-formed sequence (maximal subpart) and each such escape becomes
  // U+FFFD, which BERT's tokenizer deletes, and is counted.
  kReplace,
  // An error.
  kError,
};

// Treatment of lines of kJsonLines that are no JSON object with the field, and
// of pieces that are not UTF-8, with InvalidUtf8::kError.
enum class BadLines {
  // An error.
  kError,
  // They are left out and counted.
  kSkip,
};

struct BatchTokenizerOptions {
  CorpusFormat format = CorpusFormat::kBert;
  // kJsonLines: the field with the text.
  std::string field = "text";
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kReplace;
  BadLines bad_lines = BadLines::kError;
  // Splitter of running text; kBert has sentences.
  SentenceSplitter split_sentences = SplitSentences;
};

// The sentences of a batch. Those without tokens are among them: which these
// are depends on the vocabulary, the hash of a document does not.
struct TokenizedBatch {
  struct Sentence {
    // End in `ids`, behind its last token; the first sentence begins at 0.
    size_t end = 0;
    // HashText of its text.
    uint64_t text_hash = 0;
    // True if a document ends behind it.
    bool ends_document = false;
  };
  // True if the document of the batch before ends in front of the first.
  bool begins_with_end = false;
  std::vector<Sentence> sentences;
  std::vector<int32_t> ids;
  std::vector<uint8_t> continuations;
  // File of the batch, and the sequences of bytes and escapes of it that became
  // U+FFFD (InvalidUtf8), without those of lines that are left out.
  std::string path;
  int64_t replaced = 0;
  // Lines left out (BadLines), and the message about the first.
  int64_t bad_lines = 0;
  std::string first_bad_line;
  // Bytes of the batch, unpacked, and CorpusBatch::bytes_read.
  uint64_t text_bytes = 0;
  uint64_t bytes_read = 0;
};

// Tokenizes batches, one after the other; for one thread.
class BatchTokenizer {
 public:
  // All must outlive it.
  BatchTokenizer(const CorpusTokenizer* tokenizer,
                 const BatchTokenizerOptions* options);

  //   kInvalidArgument  ill-formed text, with InvalidUtf8::kError; a line that
  //                     is no JSON object with the field, with
  //                     BadLines::kError; the message has file and line
  absl::StatusOr<TokenizedBatch> Tokenize(const CorpusBatch& batch);

 private:
  // `line` is the number of the first line of `text`.
  absl::Status AddPiece(absl::string_view text, const std::string& path,
                        int64_t line, TokenizedBatch* result);
  absl::Status AddJson(absl::string_view text, const std::string& where,
                       TokenizedBatch* result);
  void AddRunningText(absl::string_view text, TokenizedBatch* result);
  // A sentence of running text that stands behind a blank is encoded with it by
  // tokenizers that begin words so, as in a task's input (EncodeBehindBlank).
  // Line ends are blanks here, before a sentence and within it; in a task's
  // input they are not.
  void AddSentence(absl::string_view text, bool is_behind_blank,
                   TokenizedBatch* result);

  const CorpusTokenizer* const tokenizer_;
  const BatchTokenizerOptions* const options_;
  WordCache cache_;
};

// `text` with U+FFFD in place of each ill-formed sequence, and the number of
// these.
struct ReplacedText {
  std::string text;
  int64_t replaced = 0;
};
ReplacedText ReplaceIllFormed(absl::string_view text);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_BATCH_TOKENIZER_H_
