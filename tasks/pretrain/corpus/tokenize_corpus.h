#ifndef ETC_TASKS_PRETRAIN_CORPUS_TOKENIZE_CORPUS_H_
#define ETC_TASKS_PRETRAIN_CORPUS_TOKENIZE_CORPUS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/pretrain/corpus/batch_tokenizer.h"
#include "tasks/pretrain/corpus/corpus_reader.h"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"

namespace etc {

// Counts of a corpus that is tokenized, so far.
struct TokenizedCorpus {
  int64_t documents = 0;
  int64_t sentences = 0;
  int64_t tokens = 0;
  int64_t unknown = 0;           // tokens that are the unknown piece
  int64_t longest_sentence = 0;  // tokens
  // TokenizedBatch::replaced, of the whole corpus and of each file that has
  // some.
  int64_t replaced = 0;
  std::map<std::string, int64_t> replaced_by_file;
  // Sums of TokenizedBatch's, over the whole corpus.
  int64_t bad_lines = 0;
  std::string first_bad_line;
  // Bytes of the text, unpacked, and of the files, packed; and of all files.
  uint64_t text_bytes = 0;
  // `num_bytes` has none of standard input.
  uint64_t bytes_read = 0;
  uint64_t num_bytes = 0;
};

struct TokenizeOptions {
  CorpusOptions corpus;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kReplace;
  BadLines bad_lines = BadLines::kError;
  SentenceSplitter split_sentences = SplitSentences;
  // TokenStoreSettings::sentences of running text: "icu" or "punkt".
  std::string sentences = "icu";
  // At most one a core is of use.
  int64_t threads = 1;
  // Called after every batch, by the calling thread. May be null.
  std::function<void(const TokenizedCorpus&)> progress;
  // True ends the work, and the waiting for standard input. May be null.
  const std::atomic<bool>* stop = nullptr;
};

// Tokenizes a corpus into a token store at `output` (doc/pretraining.md 1, 8
// and 10, step 1), which appears whole at the end and not at all after an
// error. Its bytes follow from the corpus and the options, not from the number
// of threads. Documents and sentences without tokens are left out.
//
// Memory: some 25 MB and 25 MB a thread, whatever the size of the corpus; more
// where lines have a MB or more (CorpusOptions::max_line_bytes).
//
//   kInvalidArgument    no text in the corpus has tokens, and what
//                       BatchTokenizer says
//   kCancelled          `options.stop` is true
// and errors of CorpusReader and TokenStoreWriter.
absl::StatusOr<TokenizedCorpus> TokenizeCorpus(const CorpusTokenizer& tokenizer,
                                               const TokenizeOptions& options,
                                               const std::string& output);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_TOKENIZE_CORPUS_H_
