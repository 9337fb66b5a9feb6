#include "etc/model.h"

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clone_module.h"
#include "base/stop_guard.h"
#include "etc/admin_profile.h"
#include "etc/embedding.h"
#include "etc/encoder_checkpoint.h"
#include "etc/encoder_layer.h"
#include "etc/nn/gradient_checkpoint.h"
#include "etc/nn/residual_norm.h"
#include "etc/sliced_layer.h"

namespace etc {
namespace {

EtcConfig Checked(const EtcConfig& config) {
  const absl::Status status = CheckEtcConfig(config, "EtcConfig");
  TORCH_CHECK(status.ok(), std::string(status.message()));
  return config;
}

// The largest magnitude of a score; 0 without any. Waits for a device once.
double LargestMagnitude(const ResidualScores& scores) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> ends;
  for (const torch::Tensor& tensor :
       {*scores.g2g, *scores.g2l, *scores.l2g, *scores.l2l}) {
    if (tensor.defined() && tensor.numel() > 0) {
      const auto [least, most] = torch::aminmax(tensor.detach());
      ends.insert(ends.end(), {least, most});
    }
  }
  return ends.empty() ? 0.0 : torch::stack(ends).abs().max().item<double>();
}

void RaiseTo(double value, std::atomic<double>* largest) {
  double before = *largest;
  while (value > before && !largest->compare_exchange_weak(before, value)) {
  }
}

// `states` [..., H] as they leave the model.
torch::Tensor FinalNorm(const torch::Tensor& states,
                        const torch::nn::LayerNorm& norm) {
  return norm.is_empty() || states.numel() == 0 ? states
                                                : ApplyLayerNorm(states, norm);
}

bool Contains(const std::vector<int64_t>& layers, int64_t layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

// The part of the attention of `layer` that is asked for.
AttentionSelection PartOf(const Inspection& inspect, int64_t layer) {
  return {.heads = inspect.heads,
          .rows = inspect.rows,
          .probabilities = Contains(inspect.probabilities_of, layer),
          .scores = Contains(inspect.scores_of, layer)};
}

// Appends the streams if they are asked for.
void AddHiddenStates(const Inspection& inspect, const EncoderState& state,
                     Inspected* inspected) {
  if (inspect.hidden_states) {
    inspected->long_states.push_back(state.long_states.detach());
    inspected->global_states.push_back(state.global_states.detach());
  }
}

// `most` rows of a stream [B, length, ...], the middles of so many equal parts
// of its B * length rows; undefined: all, since there are no more.
torch::Tensor SpreadRows(const torch::Tensor& stream, int64_t most) {
  const int64_t count = stream.size(0) * stream.size(1);
  return count <= most ? torch::Tensor()
                       : torch::arange(most, torch::kInt64)
                             .mul(2 * count)
                             .add(count)
                             .div(2 * most, /*rounding_mode=*/"floor");
}

void CheckIndices(const char* name, const std::vector<int64_t>& indices,
                  int64_t count) {
  for (const int64_t index : indices) {
    TORCH_CHECK(index >= 0 && index < count, name, " should be in [0, ", count,
                "), but one is ", index);
  }
}

}  // namespace

struct EtcModelImpl::Statistics {
  std::mutex mutex;
  std::vector<LayerStatistics> layers;
};

EtcModelImpl::EtcModelImpl(const EtcConfig& config)
    : config_(Checked(config)),
      largest_score_(std::make_shared<std::atomic<double>>(0.0)),
      statistics_(std::make_shared<Statistics>()) {
  embedding_ =
      register_module("embedding", std::make_shared<EtcEmbeddingImpl>(config_));
  const EtcEncoderLayerOptions options = EncoderLayerOptions(config_);
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
    EtcEncoderLayerOptions of_layer = options;
    if (i == 0) {  // nothing is carried to it
      of_layer.attention.residual_gate_init = std::nullopt;
    }
    layers_.push_back(std::make_shared<EtcEncoderLayerImpl>(of_layer));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  if (config_.final_layer_norm) {
    const auto norm = [&](const char* name) {
      return register_module(
          name, MakeLayerNorm(config_.hidden_size, config_.layer_norm_epsilon));
    };
    if (config_.has_long_tokens) {
      long_final_norm_ = norm("long_final_norm");
    }
    global_final_norm_ = norm("global_final_norm");
  }
}

ResidualAttention EtcModelImpl::residual_attention() const {
  return ResidualAttentionFromName(config_.residual_attention);
}

bool EtcModelImpl::has_gates() const {
  return layers_.size() > 1 &&
         layers_[1]->attention()->options().residual_gate_init.has_value();
}

void EtcModelImpl::set_residual_attention(ResidualAttention mode) {
  TORCH_CHECK(
      mode != ResidualAttention::kGate || layers_.size() == 1 || has_gates(),
      "residual attention cannot become gate: the model was made with ",
      config_.residual_attention, ", and has no gates");
  EtcConfig config = config_;
  config.residual_attention = ResidualAttentionName(mode);
  config_ = Checked(config);
}

void EtcModelImpl::set_grad_checkpointing_period(int64_t period) {
  EtcConfig config = config_;
  config.grad_checkpointing_period = period;
  config_ = Checked(config);
}

void EtcModelImpl::set_attention_implementation(
    AttentionImplementation implementation) {
  for (const auto& layer : layers_) {
    layer->attention()->set_implementation(implementation);
  }
}

void EtcModelImpl::set_linear_precision(LinearPrecision precision) {
  linear_precision_ = precision;
  for (const auto& layer : layers_) {
    layer->set_linear_precision(precision);
  }
}

std::shared_ptr<torch::nn::Module> EtcModelImpl::clone(
    const c10::optional<torch::Device>& device) const {
  return CloneModule(*this, device, [this] {
    EtcConfig config = config_;
    if (has_gates()) {
      config.residual_attention = "gate";
    }
    auto copy = std::make_shared<EtcModelImpl>(config);
    copy->config_ = config_;
    copy->score_storage_ = score_storage_;
    copy->slices_ = slices_;
    copy->measures_scores_ = measures_scores_;
    copy->statistics_rows_ = statistics_rows_;
    copy->set_linear_precision(linear_precision_);
    for (size_t i = 0; i < layers_.size(); ++i) {
      copy->layers_[i]->attention()->set_implementation(
          layers_[i]->attention()->options().implementation);
    }
    return copy;
  });
}

void EtcModelImpl::clone_(torch::nn::Module& other,
                          const c10::optional<torch::Device>& device) {
  BecomeCloneOf(other, device, this);
}

torch::Tensor EtcModelImpl::token_embedding_table() const {
  return embedding_->token_table();
}

struct EtcModelImpl::Pass {
  AttentionInputs attention;
  // Is that of the forward pass in recomputations too.
  ResidualOptions residual;
  OutputRows outputs;
  Inspection inspect;
  // Null once nothing is to be inspected any more: where a chain is recomputed.
  Inspected* inspected = nullptr;
  // The state that the layer below was given, without scores, for visits.
  EncoderState* below = nullptr;
  // Null unless the pass sets omegas.
  AdminProfile* profile = nullptr;
  // Receives one entry for each layer; null: not wanted, or not any more.
  std::vector<LayerStatistics>* statistics = nullptr;
};

std::vector<LayerStatistics> EtcModelImpl::TakeStatistics() {
  const std::lock_guard lock(statistics_->mutex);
  return std::exchange(statistics_->layers, {});
}

void EtcModelImpl::Visit(const EncoderState& state, const Pass& pass,
                         int64_t layer) {
  LayerVisit visit = {.layer = layer, .here = [&](QuerySide side) {
                        return layers_[layer]->Softmax(
                            side, state, pass.attention, pass.residual);
                      }};
  if (layer > 0) {
    visit.below = [&](QuerySide side) {
      return layers_[layer - 1]->Softmax(
          side,
          {.long_states = pass.below->long_states,
           .global_states = pass.below->global_states,
           .scores = state.scores},
          pass.attention, pass.residual);
    };
  }
  pass.inspect.visit(visit);
  *pass.below = {.long_states = state.long_states.detach(),
                 .global_states = state.global_states.detach()};
}

EncoderState EtcModelImpl::RunChain(EncoderState state, const Pass& pass,
                                    int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    ThrowIfStopped();
    ThrowIfStoppedInBackward(state.long_states.size(1) > 0
                                 ? state.long_states
                                 : state.global_states);
    const AttentionSelection part = PartOf(pass.inspect, i);
    if (pass.inspected != nullptr && (part.probabilities || part.scores)) {
      pass.inspected->layers[i] =
          layers_[i]->Inspect(state, pass.attention, pass.residual, part);
    }
    if (pass.inspected != nullptr && pass.inspect.visit) {
      Visit(state, pass, i);
    }
    if (pass.statistics != nullptr) {
      pass.statistics->push_back(layers_[i]->Measure(
          state, pass.attention, pass.residual,
          {.longs = SpreadRows(state.long_states, statistics_rows_),
           .globals = SpreadRows(state.global_states, statistics_rows_)}));
    }
    const bool is_last = i + 1 == config_.num_hidden_layers;
    state = layers_[i]->forward(state, pass.attention, pass.residual,
                                is_last ? pass.outputs : OutputRows(),
                                pass.profile);
    if (pass.inspected != nullptr) {
      AddHiddenStates(pass.inspect, state, pass.inspected);
    }
  }
  return state;
}

EncoderState EtcModelImpl::RecomputeChain(const EncoderState& state,
                                          const Pass& pass, int64_t begin,
                                          int64_t end) {
  std::vector<torch::Tensor> parameters;
  std::vector<LayerModes> modes;
  for (int64_t i = begin; i < end; ++i) {
    const std::vector<torch::Tensor> of_layer = layers_[i]->parameters();
    parameters.insert(parameters.end(), of_layer.begin(), of_layer.end());
    modes.push_back(layers_[i]->modes());
  }
  // `alive`: the graph may outlive whoever has the model.
  return CheckpointLayers(
      state, {.run =
                  [=, this, alive = weak_from_this().lock()](EncoderState below,
                                                             bool is_again) {
                    Pass once = pass;
                    if (is_again) {
                      for (int64_t i = begin; i < end; ++i) {
                        layers_[i]->CheckModes(modes[i - begin]);
                      }
                      once.inspected = nullptr;
                      once.statistics = nullptr;
                    }
                    return RunChain(std::move(below), once, begin, end);
                  },
              .parameters = std::move(parameters),
              .count = end - begin,
              .storage = pass.residual.storage});
}

EncoderState EtcModelImpl::RunChains(EncoderState state, const Pass& pass) {
  const auto chains = CheckpointChains(config_.num_hidden_layers,
                                       config_.grad_checkpointing_period);
  for (const auto& [begin, end] : chains) {
    if (end == config_.num_hidden_layers) {
      state = RunLastChain(std::move(state), pass, begin);
    } else {
      state = is_training() ? RecomputeChain(state, pass, begin, end)
                            : RunChain(std::move(state), pass, begin, end);
    }
  }
  return state;
}

EncoderState EtcModelImpl::RunLastChain(EncoderState state, const Pass& pass,
                                        int64_t begin) {
  const int64_t end = config_.num_hidden_layers;
  if (!measures_scores_) {
    return RunChain(std::move(state), pass, begin, end);
  }
  // The last layer has no scores of streams without an output; the layer before
  // it has those of both streams.
  state = RunChain(std::move(state), pass, begin, end - 1);
  RaiseTo(LargestMagnitude(state.scores), largest_score_.get());
  state = RunChain(std::move(state), pass, end - 1, end);
  RaiseTo(LargestMagnitude(state.scores), largest_score_.get());
  return state;
}

EncoderState EtcModelImpl::RunSlices(EncoderState state, const Pass& pass) {
  TORCH_CHECK(state.global_states.is_cpu(),
              "layers in slices need a model on the CPU, but this is on ",
              state.global_states.device());
  TORCH_CHECK(pass.residual.mode == ResidualAttention::kOff ||
                  pass.residual.storage == ScoreStorage::kReverse,
              "layers in slices need the score storage \"reverse\"");
  TORCH_CHECK(pass.statistics == nullptr && !pass.inspect.visit &&
                  !pass.inspect.hidden_states &&
                  pass.inspect.probabilities_of.empty() &&
                  pass.inspect.scores_of.empty(),
              "layers in slices cannot be inspected");
  SlicedState sliced = {.long_states = std::move(state.long_states),
                        .global_states = std::move(state.global_states)};
  for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
    ThrowIfStopped();
    ThrowIfStoppedInBackward(sliced.long_states.size(1) > 0
                                 ? sliced.long_states
                                 : sliced.global_states);
    const bool is_last = i + 1 == config_.num_hidden_layers;
    sliced = RunInSlices(layers_[i], sliced, pass.attention, pass.residual,
                         is_last ? pass.outputs : OutputRows(), *slices_);
    if (measures_scores_ && i + 2 >= config_.num_hidden_layers) {
      for (const ResidualScores& scores : sliced.scores) {
        RaiseTo(LargestMagnitude(scores), largest_score_.get());
      }
    }
  }
  return {.long_states = std::move(sliced.long_states),
          .global_states = std::move(sliced.global_states)};
}

void EtcModelImpl::CheckInspection(const Inspection& inspect) const {
  CheckIndices("inspect.probabilities_of", inspect.probabilities_of,
               config_.num_hidden_layers);
  CheckIndices("inspect.scores_of", inspect.scores_of,
               config_.num_hidden_layers);
  CheckIndices("inspect.heads", inspect.heads, config_.num_attention_heads);
}

void EtcModelImpl::ProfileNextPass() {
  TORCH_CHECK(SublayerFromName(config_.sublayer) == Sublayer::kAdmin,
              "omegas are those of sublayer admin, but it is ",
              config_.sublayer);
  profiles_next_pass_ = true;
}

EtcOutput EtcModelImpl::forward(const EtcInput& input) {
  if (!profiles_next_pass_) {
    return Run(input, nullptr);
  }
  profiles_next_pass_ = false;
  const torch::NoGradGuard no_grad;
  AdminProfile profile = BeginAdminProfile(input, config_);
  // Variances are those of all tokens, in the last layer too.
  EtcInput all = input;
  all.outputs = {};
  EtcOutput output = Run(all, &profile);
  output.long_output = RowsOf(output.long_output, input.outputs.longs);
  output.global_output = RowsOf(output.global_output, input.outputs.globals);
  return output;
}

EtcOutput EtcModelImpl::Run(const EtcInput& input, AdminProfile* profile) {
  const AttentionInputs attention =
      input.attention.WithDistance(config_.relative_pos_max_distance);
  const int64_t distance = attention.max_distance().value_or(0);
  TORCH_CHECK(distance == 0 || distance == config_.relative_pos_max_distance,
              "input.attention should have the model's "
              "relative_pos_max_distance, ",
              config_.relative_pos_max_distance,
              ", or 0 for no relative ids, but has ", distance);
  CheckInspection(input.inspect);
  Inspected inspected;
  EncoderState below;
  std::vector<LayerStatistics> statistics;
  const Pass pass = {
      .attention = attention,
      .residual = {.mode = residual_attention(),
                   .decay = config_.residual_decay,
                   .storage = score_storage_},
      .outputs = input.outputs,
      .inspect = input.inspect,
      .inspected = &inspected,
      .below = &below,
      .profile = profile,
      .statistics = statistics_rows_ > 0 ? &statistics : nullptr};
  // Held by nothing else: the first layer's input is freed behind it.
  const bool in_slices =
      slices_.has_value() && is_training() && profile == nullptr;
  EmbeddedInput embedded = embedding_->forward(input, in_slices);
  EncoderState state{.long_states = std::move(embedded.long_input),
                     .global_states = std::move(embedded.global_input)};
  AddHiddenStates(input.inspect, state, &inspected);
  state = in_slices ? RunSlices(std::move(state), pass)
                    : RunChains(std::move(state), pass);
  if (pass.statistics != nullptr) {
    const std::lock_guard lock(statistics_->mutex);
    statistics_->layers = std::move(statistics);
  }
  return {.long_output = FinalNorm(state.long_states, long_final_norm_),
          .global_output = FinalNorm(state.global_states, global_final_norm_),
          .scores = state.scores,
          .inspected = std::move(inspected)};
}

}  // namespace etc
