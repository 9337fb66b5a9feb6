#ifndef ETC_ETC_MODEL_H_
#define ETC_ETC_MODEL_H_

#include <torch/nn/module.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/inspection.h"
#include "attention/output_rows.h"
#include "attention/residual_scores.h"
#include "attention/score_statistics.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"
#include "etc/config.h"
#include "etc/layer_slices.h"

namespace etc {

class EtcEmbeddingImpl;
class EtcEncoderLayerImpl;
struct AdminProfile;
struct EncoderState;

// A layer that is about to run, and the layer below it. Both are there during
// the call alone (Inspection::visit).
struct LayerVisit {
  int64_t layer = 0;
  // One of the layer's two softmaxes, without values, for InspectAttention;
  // each call computes the projections of all tokens.
  std::function<SparseAttentionInput(QuerySide side)> here = {};
  // The softmax of the layer below, for InspectPastAttention; empty in the
  // first layer.
  std::function<SparseAttentionInput(QuerySide side)> below = {};
};

// The numbers inside a forward pass that are wanted; by default none, at no
// cost. Outputs are the same to the bit with and without them, in training too
// (with dropout, gradient checkpointing, any storage of scores). Layers count
// from 0.
struct Inspection {
  // The streams before the first layer and after each.
  bool hidden_states = false;
  // Layers whose attention probabilities, and layers whose new and carried
  // scores are wanted.
  std::vector<int64_t> probabilities_of = {};
  std::vector<int64_t> scores_of = {};
  // The part of these layers: indices of heads, empty for all; and rows b *
  // length + t of each stream, undefined for all tokens, also of those whose
  // outputs are not computed (EtcInput::outputs).
  std::vector<int64_t> heads = {};
  OutputRows rows = {};
  // Called before each layer, from the first; may be empty. For statistics over
  // more rows than fit in memory, of which one call may look at some after the
  // other.
  std::function<void(const LayerVisit&)> visit = {};
};

// Without gradient.
struct Inspected {
  // Entry 0 is the embedded input, entry n the output of n layers, before any
  // final LayerNorm: [B, L, H] and [B, G, H]; the last entries are of
  // EtcInput::outputs.
  std::vector<torch::Tensor> long_states = {};
  std::vector<torch::Tensor> global_states = {};
  // By layer. Shapes: FourBlocks (attention/inspection.h). Probabilities are
  // undefined unless asked for, as are scores.
  std::map<int64_t, AttentionView> layers = {};
};

// Input of the encoder. B batch, L long length, G global length, H hidden. Ids
// are int64 or int32.
struct EtcInput {
  torch::Tensor token_ids = {};         // [B, L]
  torch::Tensor global_token_ids = {};  // [B, G]
  // Visibility and relative ids. Default: all tokens are those of one document,
  // none is padding; long tokens see their window and all global ones, which
  // see everything, with the relative ids of their distances
  // (AttentionInputs::Everything, relative_pos_max_distance). Padded and Packed
  // have that distance where it is left out. Given distances, those of patterns
  // too, are the model's, or 0 for no relative ids.
  AttentionInputs attention = {};

  // Each may be undefined.
  torch::Tensor segment_ids = {};             // [B, L]; undefined: all 1
  torch::Tensor global_segment_ids = {};      // [B, G]; undefined: all 0
  torch::Tensor position_ids = {};            // [B, L]; undefined: 0, 1, ...
  torch::Tensor global_position_ids = {};     // [B, G]
  torch::Tensor long_embedding_adder = {};    // [B, L, H]
  torch::Tensor global_embedding_adder = {};  // [B, G, H]

  // Rows of the output to compute; default: all.
  OutputRows outputs = {};
  // Numbers inside the pass to return as EtcOutput::inspected; default: none.
  Inspection inspect = {};
};

// Output of the last layer, and the scores carried so far.
struct EtcOutput {
  torch::Tensor long_output = {};    // [B, L, H]; of rows: [R, H]
  torch::Tensor global_output = {};  // [B, G, H]; of rows: [S, H]
  // Scores that the last layer would carry on; undefined with residual
  // attention off, and where layers are computed in slices. After the backward
  // pass, reading them throws c10::Error unless they are stored. The scores of
  // a stream of which no row is asked for have no queries.
  ResidualScores scores = {};
  Inspected inspected = {};
};

// The ETC encoder (Ainslie et al. 2020; doc/model.md 7) with residual attention
// scores in all four blocks (He et al. 2021; doc/model.md 10.2). Made with
// residual attention "gate", each layer but the first has gates
// (GlobalLocalAttention).
//
// Throws c10::Error on a configuration that CheckEtcConfig refuses.
class EtcModelImpl : public torch::nn::Module {
 public:
  explicit EtcModelImpl(const EtcConfig& config);

  // Throws c10::Error on tensors of other shapes, dtypes and devices, ids of
  // tokens and positions out of range (a segment out of range has a vector of
  // zeros), other relative distances than the model's, and layers, heads and
  // rows to inspect that are not there.
  //
  // Where the backward pass computes layers again (gradient checkpointing,
  // layers in slices) it throws c10::Error unless training mode, implementation
  // and precision still are those of the forward pass. It has the residual
  // attention and the storage of scores of the forward pass in any case, and
  // the outputs keep what it needs of the model.
  EtcOutput forward(const EtcInput& input);

  // Sets the configuration's `residual_attention`; parameters stay as they are.
  // Throws c10::Error for kGate if the model was made with another mode, since
  // it has no gates, and for kDecay if its residual_decay is too small.
  void set_residual_attention(ResidualAttention mode);
  ResidualAttention residual_attention() const;
  // Storage of residual scores; kReverse unless set.
  void set_score_storage(ScoreStorage storage) { score_storage_ = storage; }
  ScoreStorage score_storage() const { return score_storage_; }
  // Implementation of all layers; kAuto unless set.
  void set_attention_implementation(AttentionImplementation implementation);

  // Precision of the linear layers of all encoder layers and of the products of
  // attention (GlobalLocalAttention); kFloat32 unless set. Parameters stay
  // float32. On a CPU without products of bfloat16 forward then throws
  // c10::Error. Setting it again forgets rounded copies of weights, as writes
  // to a part of one that LibTorch does not count need (LinearProducts).
  void set_linear_precision(LinearPrecision precision);
  LinearPrecision linear_precision() const { return linear_precision_; }

  // Makes the next forward pass, over a batch that the model is to be trained
  // on, set the omegas of a model with sublayer "admin", one number in all
  // elements of each (Liu et al. 2020, section 4):
  //
  //   r = 1
  //   for each block f, from the bottom to the top, with input x:
  //     omega = r
  //     r = sqrt(Var(omega x) + Var(D(f(x))))
  //     y = LN(omega x + D(f(x)))        the input of the next block
  //
  // where Var is over all elements of all tokens but padding, which sees
  // nothing, without Bessel's correction. Each stream has its own r. In front
  // of a feed-forward block that both share, r^2 becomes the mean of the two
  // over all tokens.
  //
  // For a model with random weights in training mode, where D is dropout with
  // random numbers from LibTorch's generator; in evaluation mode D drops
  // nothing. Weights that were trained depend on their omegas, which should
  // stay. Not while a pass runs. Throws c10::Error for other sublayers, as does
  // the pass for a batch without tokens.
  void ProfileNextPass();

  // Makes passes in training mode compute each layer in slices of heads and
  // tokens, and again in the backward pass: the least memory, for the longest
  // examples. Unset, the default: at once, and again as
  // grad_checkpointing_period says. Models on the CPU only; forward then throws
  // c10::Error for another ScoreStorage than kReverse, if something is to be
  // inspected, and while statistics are; and it and the backward pass if they
  // cannot use files in LayerSlices::directory.
  void set_layer_slices(const std::optional<LayerSlices>& slices) {
    slices_ = slices;
  }

  // Replaces that of the configuration: layers that backward computes again at
  // a time; 0: none. Throws c10::Error for one that CheckEtcConfig refuses.
  void set_grad_checkpointing_period(int64_t period);

  // Sets whether forward passes measure the carried residual scores, which
  // reads those of two layers once; off unless set. Not while a pass runs.
  void set_measures_scores(bool measures) { measures_scores_ = measures; }
  // The largest magnitude so far: how exact ScoreStorage::kReverse is follows
  // from it. 0 if none was measured.
  double largest_score() const { return *largest_score_; }

  // Sets the largest number of rows of each stream on which forward passes
  // measure scores and attention weights; 0, at no cost, unless set. A stream
  // [B, length] of more rows, padding included, is cut into that many equal
  // parts, and the row in the middle of each is measured. Outputs are the same
  // to the bit, in training too. Not while a pass runs.
  void set_statistics_rows(int64_t rows) { statistics_rows_ = rows; }
  // Returns the statistics of the last pass that measured them, by layer, and
  // forgets them; empty: there are none.
  std::vector<LayerStatistics> TakeStatistics();

  // The same module, in the same mode, with parameters of its own, on `device`
  // if that is given. Draws no random numbers; gradients are not copied.
  std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& device = c10::nullopt) const override;

  const EtcConfig& config() const { return config_; }
  // [vocab_size, token_embedding_size], for tied output layers.
  torch::Tensor token_embedding_table() const;

 private:
  void clone_(torch::nn::Module& other,
              const c10::optional<torch::Device>& device) override;

  // The last statistics, under a mutex.
  struct Statistics;
  // The inputs that all layers of a forward pass share.
  struct Pass;
  EtcOutput Run(const EtcInput& input, AdminProfile* profile);
  // All layers, of which some are computed again as the configuration says.
  EncoderState RunChains(EncoderState state, const Pass& pass);
  // Layers [begin, end), keeping everything for the backward pass, or only
  // the state before them; the last layer of all is never among the latter.
  EncoderState RunChain(EncoderState state, const Pass& pass, int64_t begin,
                        int64_t end);
  // The layers from `begin` on; measures their scores if that is asked for.
  EncoderState RunLastChain(EncoderState state, const Pass& pass,
                            int64_t begin);
  EncoderState RecomputeChain(const EncoderState& state, const Pass& pass,
                              int64_t begin, int64_t end);
  // All layers, each in slices.
  EncoderState RunSlices(EncoderState state, const Pass& pass);
  // Calls Inspection::visit before `layer` runs on `state`.
  void Visit(const EncoderState& state, const Pass& pass, int64_t layer);
  void CheckInspection(const Inspection& inspect) const;
  bool has_gates() const;

  EtcConfig config_;
  ScoreStorage score_storage_ = ScoreStorage::kReverse;
  LinearPrecision linear_precision_ = LinearPrecision::kFloat32;
  bool measures_scores_ = false;
  bool profiles_next_pass_ = false;
  std::optional<LayerSlices> slices_;
  std::shared_ptr<std::atomic<double>> largest_score_;
  int64_t statistics_rows_ = 0;
  std::shared_ptr<Statistics> statistics_;
  std::shared_ptr<EtcEmbeddingImpl> embedding_;
  std::vector<std::shared_ptr<EtcEncoderLayerImpl>> layers_;
  // Null unless final_layer_norm.
  torch::nn::LayerNorm long_final_norm_ = nullptr, global_final_norm_ = nullptr;
};
TORCH_MODULE(EtcModel);

}  // namespace etc

#endif  // ETC_ETC_MODEL_H_
