#ifndef ETC_ATTENTION_ATTENTION_INPUTS_H_
#define ETC_ATTENTION_ATTENTION_INPUTS_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/explicit_inputs.h"
#include "attention/pattern.h"
#include "attention/softmax_pattern.h"

namespace etc {

// One of the two softmaxes of a layer (doc/model.md 3.5):
//   kLong    long queries over [l2l ; l2g]
//   kGlobal  global queries over [g2g ; g2l]
// Own keys are those of the queries' own stream, named first.
enum class QuerySide { kLong, kGlobal };

// Who may see whom in a batch of long and global tokens, from one of three
// sources: one pattern for each example, explicit tensors, or (default)
// everything visible without relative ids. The same value serves all layers. A
// copy is cheap and shares.
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

  // Whether there are explicit tensors.
  bool has_tensors() const;

  // One of the softmaxes. Throws c10::Error if patterns do not fit the sizes
  // and the radius given; SoftmaxPattern::masks does so for explicit tensors.
  // The runs for the last sizes asked for are kept. Thread-safe.
  SoftmaxPattern Softmax(QuerySide side, int64_t batch, int64_t long_length,
                         int64_t global_length, int64_t local_radius) const;

  // Masks and ids of both softmaxes, on `device`. All masks are defined, and
  // the l2l mask is false for keys beyond the sequence. Everything is checked
  // against the sizes and the radius given; throws c10::Error. The result for
  // the last sizes asked for is kept. Thread-safe.
  ExplicitInputs Tensors(int64_t batch, int64_t long_length,
                         int64_t global_length, int64_t local_radius,
                         const torch::Device& device) const;

 private:
  struct Cache;
  struct BatchRuns;

  // Not for explicit tensors.
  std::shared_ptr<const BatchRuns> Runs(int64_t batch, int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius) const;

  std::shared_ptr<const std::vector<AttentionPattern>> patterns_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_INPUTS_H_
