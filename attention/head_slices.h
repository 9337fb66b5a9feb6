#ifndef ETC_ATTENTION_HEAD_SLICES_H_
#define ETC_ATTENTION_HEAD_SLICES_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/attention_operands.h"
#include "attention/global_local_attention.h"
#include "attention/output_rows.h"
#include "attention/residual_scores.h"
#include "base/linear.h"

namespace etc {

// Both streams as factors of products: [B, L, long_hidden_size] and [B, G,
// global_hidden_size].
struct AttentionStreams {
  LinearInput longs = {};
  LinearInput globals = {};
};

// Arguments of GlobalLocalAttention::forward, of some heads. Refers to those
// that a pass over all heads shares.
struct LayerCall {
  const AttentionStreams& streams;
  const AttentionInputs& attention;
  const CarriedScores& carried;  // of these heads alone
  const OutputRows& rows;
  HeadRange heads;
};

// Contexts of n heads of d features, ahead of the output projections, and the
// scores of these heads.
struct HeadContexts {
  torch::Tensor longs = {};    // [B, L, n d]; of rows: [R, n d]
  torch::Tensor globals = {};  // [B, G, n d]; of rows: [S, n d]
  ResidualScores scores = {};  // for the layer above; undefined with kOff
};

// Queries, keys or values of some heads: the product of a stream with a
// projection.
struct HeadProjection {
  torch::nn::Linear projection;
  QuerySide stream;
  torch::Tensor heads;  // [B, n, length, d]
};

// GlobalLocalAttention::forward in parts, whose memory is that of a few heads:
// the streams, then the contexts of some heads after the others, then one
// output projection of contexts [..., all heads * head_size]. Each of Forward
// computes the projections of its heads. Weights are dropped as `forward` drops
// them, if each of Forward draws the same seeds (ReplayDropoutSeeds). Throws
// c10::Error as `forward` does, and for heads that are not there.
class HeadSlices {
 public:
  explicit HeadSlices(GlobalLocalAttention attention)
      : attention_(std::move(attention)) {}

  AttentionStreams Streams(const torch::Tensor& long_input,
                           const torch::Tensor& global_input) const;
  // `leaves`: if not null, the products with projections are leaves of the
  // graph, and appended, always in the same order: the caller finds the
  // gradients of streams and projections from theirs.
  HeadContexts Forward(const LayerCall& call,
                       std::vector<HeadProjection>* leaves = nullptr) const;
  torch::Tensor Output(QuerySide side, const LinearInput& contexts) const;

  // The products of the layer, for their operands.
  const LinearProducts& products() const;

 private:
  GlobalLocalAttention attention_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_HEAD_SLICES_H_
