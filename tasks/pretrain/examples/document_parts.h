#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_PARTS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_PARTS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace etc {

// Division of documents into parts that an ETC reads at once, as in the data
// library of ReadTwice, by ETC's authors (doc/pretraining.md 8).

struct SentenceSplitOptions {
  // Tokens of a piece of a sentence; at least 1.
  int64_t max_tokens = 1024;
  // A cut is moved back to the begin of a word, unless the piece would then
  // have fewer tokens than this.
  int64_t min_graceful = 1;
};

// Returns the ends of the pieces of a sentence of `num_tokens` tokens; the last
// is `num_tokens`. A sentence of at most `max_tokens` stays whole.
// `continues_word(i)`: true if token i continues the word of the one before it.
std::vector<int64_t> SplitSentence(
    int64_t num_tokens, absl::FunctionRef<bool(int64_t)> continues_word,
    const SentenceSplitOptions& options);

// Numbers of sentences in the parts of a document, of sentences with `lengths`
// tokens: parts of at most `max_tokens` tokens and `max_sentences` sentences,
// of about equal length instead of full ones and a rest. A sentence of more
// than `max_tokens` becomes a part of its own.
std::vector<int64_t> SplitDocument(const std::vector<int64_t>& lengths,
                                   int64_t max_tokens, int64_t max_sentences);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_DOCUMENT_PARTS_H_
