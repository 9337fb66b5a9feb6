#ifndef ETC_TASKS_PRETRAIN_EXAMPLES_UNIGRAM_BASELINE_H_
#define ETC_TASKS_PRETRAIN_EXAMPLES_UNIGRAM_BASELINE_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/corpus_part.h"

namespace etc {

// Accuracy of a masked LM that does not read its input, but always answers the
// most frequent token of the training part.
struct UnigramBaseline {
  int32_t token = 0;
  // Its share of the labels at the masked positions of the development
  // examples: the accuracy of that answer, in [0, 1].
  double accuracy = 0;
  // Labels, of all of them.
  int64_t num_labels = 0;
};

struct UnigramBaselineOptions {
  // The training part. `corpus.development` is ignored.
  CorpusPartOptions corpus = {};
  // Documents are counted in the order of the store until they have this many
  // tokens.
  int64_t max_training_tokens = std::numeric_limits<int64_t>::max();
};

// Counts the tokens. `development` gives PretrainExamples, which are made for
// the requests of an evaluation. Ties go to the first token.
//   kFailedPrecondition  no training document, or no label
// and the errors of the store and the source.
absl::StatusOr<UnigramBaseline> ComputeUnigramBaseline(
    const TokenStore& store, const ExampleSource& development,
    const UnigramBaselineOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_EXAMPLES_UNIGRAM_BASELINE_H_
