#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_MASKING_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_MASKING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tasks/pretrain/examples/draws.h"

namespace etc {

// Selection of the tokens that a masked language model has to guess, and their
// replacements (BERT, Devlin et al. 2019; doc/pretraining.md 3).
struct MaskedLmOptions {
  // Share of an example's tokens that are masked.
  double rate = 0.15;
  // Masked tokens of one example, at most; BERT's max_predictions_per_seq.
  int64_t max_predictions = std::numeric_limits<int32_t>::max();
  // True if all pieces of a word are masked together.
  bool whole_words = false;
  // Token of [MASK].
  int32_t mask_id = 103;
  // Random tokens are in [random_min_id, vocab_size).
  int32_t random_min_id = 0;
  int32_t vocab_size = 30522;
};

// min(max_predictions, max(1, round(tokens * rate))), where halves of the
// product in double precision are rounded to the even number
// (doc/pretraining.md 12.2).
int64_t NumPredictions(int64_t tokens, const MaskedLmOptions& options);

// Units that are masked together or not at all: positions of tokens, ascending.
class MaskCandidates {
 public:
  // The next candidate, with one position.
  void Add(int32_t position);
  // One more position of the last candidate, or the first candidate.
  void Join(int32_t position);

  int32_t size() const { return static_cast<int32_t>(begins_.size()); }
  // The positions of candidate c are positions()[begin(c)] to
  // positions()[end(c) - 1].
  const std::vector<int32_t>& positions() const { return positions_; }
  int32_t begin(int32_t c) const { return begins_[static_cast<size_t>(c)]; }
  int32_t end(int32_t c) const {
    return c + 1 < size() ? begin(c + 1)
                          : static_cast<int32_t>(positions_.size());
  }

 private:
  std::vector<int32_t> positions_;
  std::vector<int32_t> begins_;
};

// Masked positions, ascending, and the tokens that stood there: [M] each.
struct MaskedTokens {
  std::vector<int32_t> positions;
  std::vector<int32_t> labels;
  // Positions that were asked for: at least M.
  int64_t wanted = 0;
};

// Masks `want` of the tokens, if the candidates allow: goes through them in
// random order, leaves out each that would make more than `want`, and for each
// token of one that it takes puts [MASK] (80 %), the token itself (10 %) or a
// random one (10 %) in its place in `tokens` (doc/pretraining.md 3, steps 2, 4
// and 5). Draws one permutation of the candidates, then one to three numbers a
// token.
//
// Throws c10::Error if there is no random token to take, std::out_of_range for
// a position beyond the end of `tokens`.
MaskedTokens MaskTokens(const MaskCandidates& candidates, int64_t want,
                        const MaskedLmOptions& options, Draws& draws,
                        std::vector<int32_t>& tokens);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_MASKING_H_
