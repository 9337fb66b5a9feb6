#ifndef ETC_TASKS_ANALYSIS_PASS_H_
#define ETC_TASKS_ANALYSIS_PASS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "etc/model.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// Limits and choices of a pass.
struct AttentionPassOptions {
  // Tokens that an example has at most in each stream.
  int64_t max_long_length = 0;
  int64_t max_global_length = 0;
  // Rows of each example and stream, chosen by the seed; 0: all.
  int64_t max_rows = 0;
  uint64_t seed = 1;
  // The square root of each divergence instead of it.
  bool jsd_distance = false;
  // Keys whose mass is measured; a token is of the first kind that fits.
  std::vector<KeyKind> kinds = {};
  // Bytes of the attention weights of one layer that are held at once; at least
  // those of one row are.
  int64_t slice_bytes = 16'000'000;
};

// Adds up the statistics of an encoder's attention over batches, in memory that
// does not grow with them.
//
// The encoder runs once, by whichever backend it has. Before each layer its
// weights and those of the layer below are computed for a slice of rows after
// the other (Inspection::visit), from the two layers' queries and keys and the
// scores that lie between them, so that neighbouring layers can be compared and
// memory is that of the pass, of both layers' queries and keys and of a slice.
// Padding has no rows: a row counts if its
// token sees two keys or more by the pattern, not by its weights.
class AttentionPass {
 public:
  // `encoder` is in evaluation mode.
  AttentionPass(EtcModel encoder, const AttentionPassOptions& options);
  ~AttentionPass();

  // Examples of the greatest lengths whose weights, in all layers, take 256 MB;
  // at least 1.
  int64_t batch_size() const;

  // Adds all examples of a batch; `first` is the index of its first one, by
  // which rows are chosen. The input must have a pattern (AttentionInputs),
  // without explicit tensors. Not with gradients.
  //   kInternal  weights of a row do not sum to 1 to 1e-4, as of a model whose
  //              scores are not numbers
  // Throws c10::Error as the encoder does, and Stopped under a StopGuard.
  absl::Status Add(EtcInput input, int64_t first);

  // The statistics so far, without the description of model and data.
  const std::vector<PopulationStatistics>& populations() const;
  std::vector<std::vector<ScoreDeviations>> Scores() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_PASS_H_
