#ifndef ETC_ETC_ENCODER_LAYER_H_
#define ETC_ETC_ENCODER_LAYER_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/global_local_attention.h"
#include "attention/inspection.h"
#include "attention/output_rows.h"
#include "attention/residual_scores.h"
#include "attention/score_statistics.h"
#include "base/linear.h"
#include "etc/config.h"
#include "etc/nn/activation.h"
#include "etc/nn/residual_connection.h"

namespace etc {

// Sizes of one layer. Long and global ones may differ only without sharing.
struct EtcEncoderLayerOptions {
  GlobalLocalAttentionOptions attention;
  int64_t long_intermediate_size = 3072;
  int64_t global_intermediate_size = 3072;
  // One feed-forward block, with its LayerNorm, for both streams.
  bool share_feed_forward = true;
  Activation activation = Activation::kGelu;
  Sublayer sublayer = Sublayer::kPostNorm;
  double hidden_dropout = 0.1;
  // Dropout of the activations between the products of a feed-forward block.
  double activation_dropout = 0.0;
  double layer_norm_epsilon = 1e-12;
};

// The sublayer of that name; throws c10::Error for any other.
Sublayer SublayerNamed(const std::string& name);

// The options that a configuration asks for, the same for all its layers but
// for the first of a model with gates, which has none.
EtcEncoderLayerOptions EncoderLayerOptions(const EtcConfig& config);

// The two streams in the pass that sets omegas (EtcModelImpl::ProfileNextPass).
struct AdminProfile {
  ProfiledStream longs;
  ProfiledStream globals;
};

// hidden -> intermediate -> hidden, activation between, both with bias, in a
// ResidualConnection (doc/model.md 4.1).
class FeedForwardBlockImpl : public torch::nn::Module {
 public:
  FeedForwardBlockImpl(int64_t hidden_size, int64_t intermediate_size,
                       const EtcEncoderLayerOptions& options);

  // [..., hidden]. `profile` is for ResidualConnection::End, `first_row` for
  // ResidualInput.
  torch::Tensor forward(const torch::Tensor& input,
                        ProfiledStream* profile = nullptr,
                        int64_t first_row = 0);

  // Precision of both products; kFloat32 unless set.
  void set_linear_precision(LinearPrecision precision) {
    products_.set_precision(precision);
  }

 private:
  Activation activation_;
  double dropout_;
  double activation_dropout_;
  LinearProducts products_;
  torch::nn::Linear intermediate_ = nullptr;
  torch::nn::Linear output_ = nullptr;
  ResidualConnection connection_;
};
TORCH_MODULE(FeedForwardBlock);

// The two streams, and the scores carried past them.
struct EncoderState {
  torch::Tensor long_states;    // [B, L, long hidden]; of rows: [R, ...]
  torch::Tensor global_states;  // [B, G, global hidden]; of rows: [S, ...]
  ResidualScores scores;
};

// Settings of a layer that change its numbers.
struct LayerModes {
  std::vector<bool> is_training;  // of the layer and of each module in it
  AttentionImplementation implementation = AttentionImplementation::kAuto;
  LinearPrecision precision = LinearPrecision::kFloat32;
};

// One layer of the encoder (doc/model.md 4.2): attention of both streams in one
// residual block, then the feed-forward block of each.
class EtcEncoderLayerImpl : public torch::nn::Module {
 public:
  explicit EtcEncoderLayerImpl(const EtcEncoderLayerOptions& options);

  // `rows` are for the last layer. With a `profile` the layer's omegas are set
  // (EtcModelImpl::ProfileNextPass), and `rows` should be all.
  EncoderState forward(const EncoderState& state,
                       const AttentionInputs& attention,
                       const ResidualOptions& residual = {},
                       const OutputRows& rows = {},
                       AdminProfile* profile = nullptr);

  // `forward` in parts (etc/sliced_layer.h), beside HeadSlices. The input of
  // attention, [..., H]:
  torch::Tensor AttentionInput(QuerySide side,
                               const torch::Tensor& stream) const;
  // Rows of a stream behind the layer, [R, H], from the contexts of all heads,
  // [R, A], and the stream before. Draws the seeds of both residual
  // connections.
  torch::Tensor Finish(QuerySide side, const LinearInput& contexts,
                       const torch::Tensor& stream, int64_t first_row);
  // Probability of dropping an element ahead of a residual connection: 0
  // outside of training.
  double hidden_dropout() const {
    return is_training() ? options_.hidden_dropout : 0.0;
  }

  // A part of the attention of `forward` on the same state
  // (GlobalLocalAttention). Call it before `forward`.
  AttentionView Inspect(const EncoderState& state,
                        const AttentionInputs& attention,
                        const ResidualOptions& residual,
                        const AttentionSelection& which) const;

  // One softmax of that attention (GlobalLocalAttention), likewise. With the
  // state of a layer that has run, and the scores that it carried on, it is one
  // for InspectPastAttention.
  SparseAttentionInput Softmax(QuerySide side, const EncoderState& state,
                               const AttentionInputs& attention,
                               const ResidualOptions& residual) const;

  // Statistics of that attention over the queries `rows`, likewise.
  LayerStatistics Measure(const EncoderState& state,
                          const AttentionInputs& attention,
                          const ResidualOptions& residual,
                          const OutputRows& rows) const;

  GlobalLocalAttention& attention() { return attention_; }
  // Precision of all linear layers and of the products of attention.
  void set_linear_precision(LinearPrecision precision);

  // The settings of now. A backward pass that computes the layer again throws
  // c10::Error by CheckModes unless they are those of the forward pass.
  LayerModes modes() const;
  void CheckModes(const LayerModes& of_forward) const;

 private:
  EtcEncoderLayerOptions options_;
  GlobalLocalAttention attention_ = nullptr;
  ResidualConnection long_connection_, global_connection_;
  FeedForwardBlock long_feed_forward_ = nullptr;
  FeedForwardBlock global_feed_forward_ = nullptr;
};
TORCH_MODULE(EtcEncoderLayer);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_LAYER_H_
