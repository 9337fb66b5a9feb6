#ifndef ETC_ATTENTION_GLOBAL_LOCAL_ATTENTION_H_
#define ETC_ATTENTION_GLOBAL_LOCAL_ATTENTION_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/attention_operands.h"
#include "attention/inspection.h"
#include "attention/output_rows.h"
#include "attention/residual_scores.h"
#include "attention/score_statistics.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"

namespace etc {

// The learned relative positions of one softmax (doc/model.md 3.2): parameters
// `embedding` [ids, heads, head_size], truncated normal(0.5), and `bias` [ids,
// heads], zeros.
class RelativePositionsImpl : public torch::nn::Module {
 public:
  RelativePositionsImpl(int64_t ids, int64_t heads, int64_t head_size);

  RelativeTable table() const {
    return {.embedding = embedding_, .bias = bias_};
  }

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

  void pretty_print(std::ostream& stream) const override;

 private:
  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  torch::Tensor embedding_, bias_;
};
TORCH_MODULE(RelativePositions);

// Sizes of a layer, and which of its projections are one.
struct GlobalLocalAttentionOptions {
  // Per long and per global token. They may differ only without any sharing.
  int64_t long_hidden_size = 768;
  int64_t global_hidden_size = 768;
  int64_t num_heads = 12;
  // Features per head; queries, keys and values have num_heads * head_size.
  int64_t head_size = 64;
  // Tokens a long token sees to each side, at most kMostLocalRadius.
  int64_t local_radius = 84;
  // Rows of each relative table; 0: no relative positions.
  int64_t relative_vocab_size = 32;
  // False: all tokens are global, L is 0, all projections are shared, and there
  // is no relative table of the long side.
  bool has_long_tokens = true;
  // One query, one key and one value projection for all four blocks.
  bool share_qkv_projections = true;
  // One key and one value projection for l2l and l2g, one for g2g and g2l.
  bool share_kv_projections = false;
  bool share_output_projection = false;
  // No output of a long token depends on a later one: the pattern is restricted
  // to the past (AttentionInputs::Causal, which says what global tokens see and
  // who sees them). Needs long tokens.
  bool causal = false;
  // Probability of dropping an attention weight, in [0, 1). Training only.
  double dropout = 0.1;
  // Standard deviation of the truncated normal for kernels; that of output
  // projections is multiplied by the second.
  double initializer_range = 0.02;
  double output_initializer_factor = 1.0;
  // The layer has gates, for ResidualAttention::kGate, that begin with this
  // value. Not for the first layer of a stack, to which nothing is carried.
  std::optional<double> residual_gate_init = std::nullopt;
  AttentionImplementation implementation = AttentionImplementation::kAuto;
};

// Scores carried from the layers below.
struct CarriedScores {
  ResidualOptions residual = {};
  // Come from a layer in which each token saw at least the tokens that it sees
  // in this one (ResidualScores).
  ResidualScores previous = {};
};

// Both streams behind their output projections, and the scores.
struct GlobalLocalAttentionOutput {
  // [B, L, long_hidden_size]; of rows: [R, ...]
  torch::Tensor long_output = {};
  // [B, G, global_hidden_size]; of rows: [S, ...]
  torch::Tensor global_output = {};
  ResidualScores scores = {};  // for the layer above; undefined with kOff
};

// attention/head_slices.h, which computes a layer some heads after the others.
class HeadSlices;
struct AttentionStreams;
struct LayerCall;

// ETC's fused global-local attention (Ainslie et al. 2020; doc/model.md 3.5)
// with residual scores in all four blocks (doc/model.md 10.2):
//
//   long    softmax over [l2l ; l2g], then an output projection
//   global  softmax over [g2g ; g2l], then an output projection
//
// Both streams are projected from the layer's input. Each softmax has one pair
// of relative tables for its two blocks. Shared projections are registered
// once, under the name of the long stream's. Gates are parameters [num_heads]
// `g2g_gate` and, with long tokens, `g2l_gate`, `l2g_gate` and `l2l_gate`.
// There are none unless asked for, so that parameters are those of ETC.
//
// Throws c10::Error on options that contradict each other.
class GlobalLocalAttentionImpl : public torch::nn::Module {
 public:
  explicit GlobalLocalAttentionImpl(const GlobalLocalAttentionOptions& options);

  // Inputs [B, L, long_hidden_size] and [B, G, global_hidden_size]; L, G >= 0.
  // Throws c10::Error if shapes, dtypes or devices disagree, for inputs whose
  // max_distance is left open in a layer with relative tables, for carried
  // scores of a layer in which a token did not see all that it sees in this
  // one, and with kGate for carried scores that meet a layer without gates.
  GlobalLocalAttentionOutput forward(const torch::Tensor& long_input,
                                     const torch::Tensor& global_input,
                                     const AttentionInputs& attention,
                                     const CarriedScores& carried = {},
                                     const OutputRows& rows = {});

  // A part of the attention of `forward` on the same inputs, all of whose rows
  // can be asked for: see InspectAttention. Without gradient; draws no random
  // numbers. Computes projections of its own. Call it before `forward`, which
  // may overwrite the carried scores. Throws c10::Error as both do.
  AttentionView Inspect(const torch::Tensor& long_input,
                        const torch::Tensor& global_input,
                        const AttentionInputs& attention,
                        const CarriedScores& carried = {},
                        const AttentionSelection& which = {}) const;

  // One softmax of `forward` on the same inputs, for InspectAttention: without
  // values, with the queries and keys of all tokens. In all else as Inspect.
  SparseAttentionInput Softmax(QuerySide side, const torch::Tensor& long_input,
                               const torch::Tensor& global_input,
                               const AttentionInputs& attention,
                               const CarriedScores& carried = {}) const;

  // Statistics of the scores and attention weights of `forward` on the same
  // inputs, over the queries `rows`: see MeasureAttention. In all else as
  // Inspect.
  LayerStatistics Measure(const torch::Tensor& long_input,
                          const torch::Tensor& global_input,
                          const AttentionInputs& attention,
                          const CarriedScores& carried = {},
                          const OutputRows& rows = {}) const;

  const GlobalLocalAttentionOptions& options() const { return options_; }
  void set_implementation(AttentionImplementation implementation) {
    options_.implementation = implementation;
  }
  // Precision of the projections and of the products of attention, whose
  // scores, softmax and sums stay float32; kFloat32 unless set. On a CPU
  // without AVX512-BF16 or AMX attention stays float32 (SparseAttentionInput).
  // Setting it again forgets rounded copies of weights (LinearProducts).
  void set_linear_precision(LinearPrecision precision) {
    products_.set_precision(precision);
  }
  LinearPrecision linear_precision() const { return products_.precision(); }

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

  // Prints the name with the options.
  void pretty_print(std::ostream& stream) const override;

 private:
  friend class HeadSlices;

  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  // The layers of one softmax. "Own" and "other" as in AttentionOperands.
  struct Side {
    torch::nn::Linear query = nullptr;
    torch::nn::Linear own_key = nullptr, own_value = nullptr;
    torch::nn::Linear other_key = nullptr, other_value = nullptr;
    torch::nn::Linear output = nullptr;
    RelativePositions relative = nullptr;
    ResidualGates gates;
  };
  // Keys and values that the queries of one side see, [B, N, length, d] each.
  struct KeysAndValues {
    torch::Tensor key, value;
  };
  struct SeenTokens {
    KeysAndValues own, other;
  };

  void RegisterProjections();
  void RegisterGates();
  HeadRange AllHeads() const {
    return {.begin = 0, .count = options_.num_heads};
  }
  // Throws c10::Error unless the streams are as the layer takes them.
  AttentionStreams Streams(const torch::Tensor& long_input,
                           const torch::Tensor& global_input) const;
  // The softmax of one side, without operands and dropout.
  SparseAttentionInput SideInput(QuerySide side, const LayerCall& call) const;
  // The same with operands, of all heads and without values: queries are those
  // of the rows, zeros elsewhere.
  SparseAttentionInput InspectedSide(QuerySide side,
                                     const LayerCall& call) const;
  // Some heads of a stream behind a projection: Heads.
  using HeadSource =
      std::function<torch::Tensor(const torch::nn::Linear& projection,
                                  QuerySide stream, const torch::Tensor& rows)>;
  SeenTokens Project(QuerySide side, const HeadSource& source) const;
  SparseAttentionOutput Attend(QuerySide side, const LayerCall& call,
                               const SeenTokens& seen,
                               const HeadSource& source) const;
  // Both softmaxes. Hands over the contexts of each, [B, length, n d] or those
  // of rows, [R, n d], as soon as they are there.
  ResidualScores AttendBoth(
      const LayerCall& call, const HeadSource& source,
      const std::function<void(QuerySide, const torch::Tensor&)>& take) const;
  torch::Tensor Output(QuerySide side, const LinearInput& contexts) const;
  HeadSource ProductsOf(const LayerCall& call) const;
  // The same of all heads, for gradients: the products of a stream with all its
  // projections are computed together, but for queries of some rows.
  HeadSource ProductsTogether(const LayerCall& call) const;
  // The projections of all tokens of a stream, each once.
  std::vector<torch::nn::Linear> ProjectionsOf(QuerySide stream,
                                               const OutputRows& rows) const;
  const Side& SideOf(QuerySide side) const {
    return side == QuerySide::kLong ? long_ : global_;
  }
  // The product of a projection, [B, length, n d] -> [B, n, length, d].
  torch::Tensor AsHeads(const torch::Tensor& projected,
                        const LinearInput& input) const;
  // [B, length, hidden] -> [B, n, length, d]; with `rows` zeros elsewhere
  torch::Tensor Heads(const torch::nn::Linear& projection,
                      const LinearInput& input, const HeadRange& heads,
                      const torch::Tensor& rows = {}) const;

  GlobalLocalAttentionOptions options_;
  LinearProducts products_;
  Side long_, global_;
};
TORCH_MODULE(GlobalLocalAttention);

}  // namespace etc

#endif  // ETC_ATTENTION_GLOBAL_LOCAL_ATTENTION_H_
