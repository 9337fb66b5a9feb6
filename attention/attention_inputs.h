#ifndef ETC_ATTENTION_ATTENTION_INPUTS_H_
#define ETC_ATTENTION_ATTENTION_INPUTS_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
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
// undefined: everywhere. Its sizes may be 1, which stands for all. Ids are
// int64 or int32, from 0 to the rows of the relative table less one; undefined:
// no relative term. The ids of one softmax (l2l and l2g, g2g and g2l) are
// either both defined or both undefined.
struct ExplicitInputs {
  torch::Tensor l2l_mask = {}, l2l_ids = {};  // [B, L, W]
  torch::Tensor l2g_mask = {}, l2g_ids = {};  // [B, L, G]
  torch::Tensor g2g_mask = {}, g2g_ids = {};  // [B, G, G]
  torch::Tensor g2l_mask = {}, g2l_ids = {};  // [B, G, L]
};

// Makes tensors of one pattern for each example, of which there is at least
// one, of a batch of long length `L` and global length `G`; both at least those
// of every pattern. All masks are defined, and ids unless the distance is 0.
// Patterns agree in radius and distance. On the CPU. Throws c10::Error
// otherwise.
ExplicitInputs Materialize(const std::vector<AttentionPattern>& patterns,
                           int64_t long_length, int64_t global_length);

// Visibility among the long and global tokens of a batch, from one of these
// sources: one pattern for each example, masks or ids of tokens, explicit
// tensors, or everything visible. The same value serves all layers. A copy is
// cheap and shares.
class AttentionInputs {
 public:
  // Everything visible, with the distance left open (WithDistance).
  AttentionInputs();
  // One pattern for each example. Throws c10::Error (CheckPattern).
  explicit AttentionInputs(std::vector<AttentionPattern> patterns);
  // Copies the tensors. Throws c10::Error on masks and ids of other dtypes.
  // Masks without ids may have relative ids by `max_distance`, those of
  // UnrestrictedPattern; then, and without any ids, the fused kernels take them
  // too, if they are on the CPU and no query sees keys in more runs than
  // MostRuns (softmax_pattern.h). This and the next ones throw c10::Error by
  // CheckMaxDistance.
  explicit AttentionInputs(ExplicitInputs tensors, int64_t max_distance = 0);
  // Everything visible (UnrestrictedPattern) in examples of any number and
  // length, none of it padding, with relative ids up to `max_distance`; 0:
  // without.
  static AttentionInputs Everything(int64_t max_distance);
  // Everything visible but padding, which sees nothing and is not seen: masks
  // [B, L] and [B, G], bool or integers 0 and 1, true (1) for a token, false
  // for padding, wherever that is; undefined: no padding. They are read on the
  // CPU. Any radius. Relative ids up to `max_distance`; 0: without; left out:
  // left open (WithDistance). Throws c10::Error on masks of other dtypes and
  // shapes, here or, where only the sizes of a layer tell, there.
  static AttentionInputs Padded(
      const torch::Tensor& long_mask, const torch::Tensor& global_mask = {},
      std::optional<int64_t> max_distance = std::nullopt);
  // The same for rows of several documents, one behind the other or mixed: ids
  // [B, L] and [B, G], int64 or int32 from 0 to 2^31 - 1. Tokens see those of
  // their own document, whose id is equal; 0 is padding.
  static AttentionInputs Packed(
      const torch::Tensor& long_ids, const torch::Tensor& global_ids,
      std::optional<int64_t> max_distance = std::nullopt);

  // The same visibility restricted to the past, so that no output of a long
  // token depends on a later one, through any number of layers. With h(g) the
  // last long token that global token g sees (-1 for none):
  //
  //   l2l  i sees j  only if  j <= i
  //   l2g  i sees g  only if  h(g) <= i
  //   g2g  g sees k  only if  h(k) <= h(g)
  //   g2l  as before
  //
  // Global tokens that see no long ones (hard_g2l without sentences) are thus a
  // prefix which all tokens see, those of a sentence (hard_g2l with sentences)
  // a summary which the tokens behind it see, and those that see everything are
  // seen by the last token alone. Global inputs must not depend on long ones.
  // Made once and kept.
  AttentionInputs Causal() const;

  // The same with relative ids up to `max_distance` where that was left open:
  // by AttentionInputs(), without arguments, Padded or Packed. EtcModel calls
  // it with its own distance; a GlobalLocalAttention with relative tables
  // refuses inputs that leave it open, others have no ids.
  AttentionInputs WithDistance(int64_t max_distance) const;

  // The largest distance of relative ids, those of patterns too. 0: there are
  // no ids, or they are tensors. No value: left open, or a batch of no
  // patterns.
  std::optional<int64_t> max_distance() const;

  // The patterns, or null when there are none.
  const std::vector<AttentionPattern>* patterns() const {
    return patterns_.get();
  }

  // Returns true if there are explicit tensors.
  bool has_tensors() const;

  // One of the softmaxes; a distance left open is 0. Throws c10::Error if
  // patterns do not fit the sizes and the radius given (of which patterns
  // without long tokens take any), for negative sizes, and by CheckLocalRadius;
  // SoftmaxPattern::masks does so for explicit tensors. Long queries have a
  // window of the radius to both sides, of Causal() only before them.
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

  // A copy with caches of its own.
  AttentionInputs WithoutCaches() const;
  // The patterns of a batch of these sizes, as given or by documents.
  std::vector<AttentionPattern> PatternsOf(int64_t batch, int64_t long_length,
                                           int64_t global_length,
                                           int64_t local_radius) const;
  // Null for explicit tensors that the kernels do not take.
  std::shared_ptr<const BatchRuns> Runs(int64_t batch, int64_t long_length,
                                        int64_t global_length,
                                        int64_t local_radius) const;

  std::shared_ptr<const std::vector<AttentionPattern>> patterns_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_ATTENTION_INPUTS_H_
