#ifndef ETC_ATTENTION_ATTENTION_INPUTS_H_
#define ETC_ATTENTION_ATTENTION_INPUTS_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/pattern.h"
#include "attention/softmax_pattern.h"

namespace etc {

// One of the two softmaxes of a layer (doc/model.md 3.5):
//   kLong    long queries over [l2l ; l2g]
//   kGlobal  global queries over [g2g ; g2l]
// Own keys are those of the queries' own stream, named first.
enum class QuerySide { kLong, kGlobal };

// The masks and relative ids of a batch as tensors, in the official layout
// (doc/model.md 6): the contents of a pattern, in full. Needs O(L (W + G))
// memory. B batch, L long length, G global length, W = 2 * local_radius + 1;
// column w of row i of an l2l tensor is about key i + w - local_radius.
//
// A mask is bool (or integers 0 and 1), true where attention is allowed;
// undefined: everywhere. Ids are int64, from 0 to the rows of the relative
// table less one; undefined: no relative term. The ids of one softmax (l2l and
// l2g, g2g and g2l) are either both defined or both undefined.
struct ExplicitInputs {
  torch::Tensor l2l_mask, l2l_ids;  // [B, L, W]
  torch::Tensor l2g_mask, l2g_ids;  // [B, L, G]
  torch::Tensor g2g_mask, g2g_ids;  // [B, G, G]
  torch::Tensor g2l_mask, g2l_ids;  // [B, G, L]
};

// Makes tensors of one pattern for each example of a batch of long length `L`
// and global length `G`; both at least those of every pattern. All masks are
// defined, and ids unless the distance is 0. Patterns agree in radius and
// distance. On the CPU. Throws c10::Error otherwise.
ExplicitInputs Materialize(const std::vector<AttentionPattern>& patterns,
                           int64_t long_length, int64_t global_length);

// Visibility among the long and global tokens of a batch, from one of three
// sources: one pattern for each example, explicit tensors, or everything
// visible, by default without relative ids (but see EtcInput). The same value
// serves all layers. A copy is cheap and shares.
class AttentionInputs {
 public:
  AttentionInputs();
  // One pattern for each example. Throws c10::Error (CheckPattern).
  explicit AttentionInputs(std::vector<AttentionPattern> patterns);
  // Throws c10::Error on masks and ids of other dtypes.
  explicit AttentionInputs(ExplicitInputs tensors);
  // Everything visible (UnrestrictedPattern) in examples of any number and
  // length, none of it padding, with relative ids up to `max_distance`; 0:
  // without.
  static AttentionInputs Everything(int64_t max_distance);

  // The patterns, or null when there are none.
  const std::vector<AttentionPattern>* patterns() const {
    return patterns_.get();
  }

  // Returns true if there are explicit tensors.
  bool has_tensors() const;
  // True only if made by AttentionInputs(), without arguments.
  bool is_default() const;

  // One of the softmaxes. Throws c10::Error if patterns do not fit the sizes
  // and the radius given (of which patterns without long tokens take any);
  // SoftmaxPattern::masks does so for explicit tensors.
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

  // Null for explicit tensors.
  std::shared_ptr<const BatchRuns> Runs(int64_t batch, int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius) const;

  std::shared_ptr<const std::vector<AttentionPattern>> patterns_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_INPUTS_H_
