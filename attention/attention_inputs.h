#ifndef ETC_ATTENTION_ATTENTION_INPUTS_H_
#define ETC_ATTENTION_ATTENTION_INPUTS_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/explicit_inputs.h"
#include "attention/pattern.h"
#include "attention/pattern_runs.h"

namespace etc {

// Who may see whom in a batch, from whichever source: one pattern for each
// example, explicit tensors, or (default) everything visible without relative
// ids. The same value serves all layers. A copy is cheap and shares.
class AttentionInputs {
 public:
  AttentionInputs();
  // One pattern for each example. Throws c10::Error (CheckPattern).
  explicit AttentionInputs(std::vector<AttentionPattern> patterns);
  explicit AttentionInputs(ExplicitInputs tensors);

  // The patterns, or null when there are none.
  const std::vector<AttentionPattern>* patterns() const {
    return patterns_.get();
  }

  // True if there are explicit tensors, so that nobody knows the pattern.
  bool has_tensors() const;

  // The patterns as runs, for the kernels; of a pattern without borders and
  // without ids if nothing was given. Null if has_tensors(). Checked, kept and
  // thread-safe as Tensors().
  std::shared_ptr<const std::vector<PatternRuns>> Runs(
      int64_t batch, int64_t long_length, int64_t global_length,
      int64_t local_radius) const;

  // Masks and ids for tensor implementations, on `device`. All masks are
  // defined, and the l2l mask is false for keys beyond the sequence. Everything
  // is checked against the sizes and the radius given; throws c10::Error. The
  // result for the last sizes asked for is kept. Thread-safe.
  ExplicitInputs Tensors(int64_t batch, int64_t long_length,
                         int64_t global_length, int64_t local_radius,
                         const torch::Device& device) const;

 private:
  struct Cache;

  std::shared_ptr<const std::vector<AttentionPattern>> patterns_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_INPUTS_H_
