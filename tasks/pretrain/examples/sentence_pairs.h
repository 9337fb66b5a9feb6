#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_SENTENCE_PAIRS_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_SENTENCE_PAIRS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/pretrain/examples/document_set.h"
#include "tasks/pretrain/examples/draws.h"
#include "tasks/pretrain/examples/masking.h"

namespace etc {

// The least SentencePairOptions::max_length: [CLS] A [SEP] B [SEP]; a single
// text, [CLS] A [SEP], has an A of 3 then.
inline constexpr int64_t kShortestPair = 5;

// Options of BERT's examples (doc/pretraining.md 1).
struct SentencePairOptions {
  // True for pairs of texts, of which the model is asked if B follows A; false
  // for single texts.
  bool next_sentence = true;
  // Tokens of an example with [CLS] and [SEP]; at least kShortestPair.
  int64_t max_length = 128;
  // Share of the documents whose examples aim at a random shorter length.
  double short_sequence_rate = 0.1;
  int32_t cls_id = 101;
  int32_t separator_id = 102;
  MaskedLmOptions mlm = {};

  // Tokens of an example beside [CLS] and each [SEP].
  int64_t room() const { return max_length - (next_sentence ? 3 : 2); }
};

// [CLS] A [SEP] B [SEP], or [CLS] A [SEP], with some tokens masked.
struct SentencePair {
  // [T] each; types are 0 to the first [SEP] and 1 behind it.
  std::vector<int32_t> tokens;
  std::vector<int32_t> types;
  // True if B is from a random document instead of the text after A.
  bool random_next = false;
  MaskedTokens masked;
};

// The examples of one document, by the rule of BERT's generator
// (doc/pretraining.md 2): chunks of sentences up to the aimed length, cut at a
// random sentence into A and B; half of the time, and always if the chunk is
// one sentence, B comes from a random document of `documents` instead, and the
// sentences that it replaces begin the next chunk. With a single document the
// random one is the document itself.
//
// Without `next_sentence` an example has as many sentences in a row as have
// room for the aimed length, one at least, and no text of another document
// (RoBERTa's DOC-SENTENCES, Liu et al. 2019).
//
// Errors are those of `documents`. Throws c10::Error if `options.max_length`
// leaves no room for two tokens.
absl::StatusOr<std::vector<SentencePair>> CreateInstances(
    const DocumentSet& documents, int64_t document,
    const SentencePairOptions& options, Draws& draws);

// Removes tokens until both have at most `max_tokens` together: each from the
// longer one (of equals from `b`), each time from its front or its back by a
// draw (doc/pretraining.md 2, step e).
void TruncatePair(int64_t max_tokens, Draws& draws, Pieces* a, Pieces* b);

// Masks the tokens of `pair` (doc/pretraining.md 3). `continues_word` is [T];
// [CLS] and [SEP] are told by their place. With whole words a piece that
// continues a word joins the candidate before it, the last one of A too.
void MaskPair(const std::vector<uint8_t>& continues_word,
              const MaskedLmOptions& options, Draws& draws, SentencePair* pair);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_SENTENCE_PAIRS_H_
