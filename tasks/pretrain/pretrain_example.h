#ifndef ETC_TASKS_PRETRAIN_PRETRAIN_EXAMPLE_H_
#define ETC_TASKS_PRETRAIN_PRETRAIN_EXAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/data/example.h"
#include "tasks/data/example_source.h"

namespace etc {

// An input of pre-training with the tokens to guess: of BERT
// (doc/pretraining.md 2 to 4; all tokens are global, and there is no long one)
// or of ETC (8 and 9; several parts of documents packed into one sequence,
// which do not see one another).
struct PretrainExample : Example {
  // Masked positions, ascending, among the long tokens (ETC) or the global ones
  // (BERT), and the ids that stood there: [M] each.
  std::vector<int32_t> masked_positions;
  std::vector<int32_t> masked_labels;
  // Tokens that were to be masked (NumPredictions), of which whole words may
  // leave some (MaskTokens).
  int64_t masks_wanted = 0;
  // BERT: 0 if B follows A, 1 if it is random; -1: not asked for.
  int32_t next_sentence = -1;
  // CPC: the global tokens of the hidden sentences, ascending: [H]. All long
  // tokens of such a sentence are [MASK], and none is among the masked
  // positions.
  std::vector<int32_t> hidden_globals;
  // Input of CPC's target run: the hidden sentences as they were, in the same
  // order, one global token for each, which sees only its own sentence. Null if
  // none is hidden.
  std::shared_ptr<const Example> targets;

  int64_t TaskBytes() const override {
    const size_t numbers = masked_positions.capacity() +
                           masked_labels.capacity() + hidden_globals.capacity();
    return static_cast<int64_t>(sizeof(PretrainExample) - sizeof(Example) +
                                numbers * sizeof(int32_t)) +
           (targets == nullptr ? 0 : ExampleBytes(*targets));
  }
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_PRETRAIN_EXAMPLE_H_
