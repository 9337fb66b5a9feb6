// Timing of a few layers on a CUDA device, and of their parts.

#include "tasks/train/device_rates.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/pattern.h"
#include "attention/sparse_attention.h"
#include "base/device_time.h"
#include "base/linear.h"
#include "base/out_of_memory.h"
#include "etc/encoder_layer.h"
#include "etc/model.h"
#include "tasks/train/device.h"
#include "tasks/train/estimate.h"
#include "tasks/train/optimizer.h"

namespace etc {
namespace {

// Layers that are timed together, of which all but the first take scores from
// below.
constexpr int64_t kMostLayers = 3;
// Enough for the clock of an idle device to rise, and for memory and plans.
constexpr int kFirstRuns = 3;
constexpr int64_t kRuns = 9;

double SecondsOn(const torch::Device& device,
                 const std::function<void()>& work) {
  for (int i = 0; i < kFirstRuns; ++i) {
    work();
  }
  return MedianSecondsOn(device, kRuns, work);
}

// The sizes and settings that all measurements share.
struct Setting {
  Setting(const RunConfig& run, const torch::Device& on)
      : config(run.model),
        shape(LargestMicroBatch(run)),
        device(on),
        layers(std::min(kMostLayers, run.model.num_hidden_layers)),
        precision(PrecisionOn(on, run)),
        residual(
            {.mode = ResidualAttentionFromName(run.model.residual_attention),
             .decay = run.model.residual_decay,
             .storage = ScoreStorageFromName(run.train.score_storage)}),
        attention(std::vector(
            static_cast<size_t>(shape.batch),
            UnrestrictedPattern(shape.long_length, shape.global_length,
                                config.local_radius,
                                config.relative_pos_max_distance))) {}

  // Random numbers in float32 that have gradients.
  torch::Tensor Leaf(at::IntArrayRef sizes) const {
    return torch::randn(sizes, torch::dtype(torch::kFloat32).device(device))
        .requires_grad_(true);
  }
  // [B, length, H] for either stream.
  torch::Tensor States(int64_t length) const {
    return Leaf({shape.batch, length, config.hidden_size});
  }

  const EtcConfig& config;
  const StepShape shape;
  const torch::Device device;
  const int64_t layers;
  const LinearPrecision precision;
  const ResidualOptions residual;
  const AttentionInputs attention;
};

// The gradients of all `leaves`, of any numbers behind `outputs`.
std::vector<torch::Tensor> GradientsOf(
    const std::vector<torch::Tensor>& outputs,
    const std::vector<torch::Tensor>& leaves) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& output : outputs) {
    gradients.push_back(output.detach());
  }
  return torch::autograd::grad(outputs, leaves, gradients,
                               /*retain_graph=*/c10::nullopt,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

// --- Whole layers ------------------------------------------------------------

class LayerStack {
 public:
  explicit LayerStack(const Setting& setting)
      : setting_(setting),
        longs_(setting.States(setting.shape.long_length)),
        globals_(setting.States(setting.shape.global_length)) {
    for (int64_t i = 0; i < setting.layers; ++i) {
      EtcEncoderLayerOptions options = EncoderLayerOptions(setting.config);
      if (i == 0) {
        options.attention.residual_gate_init.reset();
      }
      EtcEncoderLayer layer(options);
      layer->to(setting.device);
      layer->set_linear_precision(setting.precision);
      for (const auto& parameter : layer->named_parameters()) {
        parameters_.emplace(absl::StrCat("layer.", i, ".", parameter.key()),
                            parameter.value());
      }
      layers_.push_back(layer);
    }
  }

  // Forward and backward.
  void Run() {
    EncoderState state = {.long_states = longs_, .global_states = globals_};
    for (const EtcEncoderLayer& layer : layers_) {
      state =
          layer.ptr()->forward(state, setting_.attention, setting_.residual);
    }
    std::vector<torch::Tensor> leaves = {longs_, globals_};
    for (const auto& [name, parameter] : parameters_) {
      leaves.push_back(parameter);
    }
    GradientsOf({state.long_states, state.global_states}, leaves);
  }

  const NamedTensors& parameters() const { return parameters_; }
  int64_t parameters_of_one() const {
    int64_t count = 0;
    for (const auto& [name, parameter] : parameters_) {
      count += parameter.numel();
    }
    return count / setting_.layers;
  }

 private:
  const Setting& setting_;
  const torch::Tensor longs_;    // [B, L, H]
  const torch::Tensor globals_;  // [B, G, H]
  std::vector<EtcEncoderLayer> layers_;
  NamedTensors parameters_;
};

// Seconds of clipping and the optimizer for the parameters of one layer.
double UpdateSeconds(const OptimizerConfig& config, const Setting& setting,
                     const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) {
    torch::Tensor(parameter).mutable_grad() =
        torch::randn_like(parameter.detach());
  }
  Optimizer optimizer(config, parameters);
  const double seconds = SecondsOn(setting.device, [&] {
    const double norm = GradientNorm(parameters);
    optimizer.Step(/*learning_rate=*/1e-6, ClipFactor(norm, config.clip_norm));
    ParameterNorm(parameters);
  });
  for (const auto& [name, parameter] : parameters) {
    torch::Tensor(parameter).mutable_grad().reset();
  }
  return seconds / static_cast<double>(setting.layers);
}

// --- Linear layers -----------------------------------------------------------

// The linear layers of one encoder layer over one stream, each on inputs of its
// own but those of attention, which share theirs.
class LinearLayers {
 public:
  LinearLayers(const Setting& setting, int64_t length) {
    const EtcConfig& config = setting.config;
    products_.set_precision(setting.precision);
    const int64_t hidden = config.hidden_size;
    const int64_t features = config.num_attention_heads * config.head_size();
    const int64_t projections = config.share_qkv_projections ? 3 : 5;
    const auto add = [&](int64_t inputs, int64_t outputs, int64_t count) {
      Group group = {.input =
                         setting.Leaf({setting.shape.batch, length, inputs})};
      for (int64_t i = 0; i < count; ++i) {
        group.weights.push_back(setting.Leaf({outputs, inputs}));
        group.biases.push_back(setting.Leaf({outputs}));
      }
      groups_.push_back(std::move(group));
    };
    add(hidden, features, projections);
    add(features, hidden, 1);
    add(hidden, config.intermediate_size, 1);
    add(config.intermediate_size, hidden, 1);
  }

  void Run() const {
    std::vector<torch::Tensor> outputs, leaves;
    for (const Group& group : groups_) {
      const LinearInput input = products_.Input(group.input);
      leaves.push_back(group.input);
      for (size_t i = 0; i < group.weights.size(); ++i) {
        outputs.push_back(LinearProducts::Apply(
            input, products_.Weight(group.weights[i]), group.biases[i]));
        leaves.push_back(group.weights[i]);
        leaves.push_back(group.biases[i]);
      }
    }
    GradientsOf(outputs, leaves);
  }

 private:
  struct Group {
    torch::Tensor input;
    std::vector<torch::Tensor> weights;
    std::vector<torch::Tensor> biases;
  };

  LinearProducts products_;
  std::vector<Group> groups_;
};

// Seconds of the linear layers of one encoder layer.
double LinearSeconds(const Setting& setting) {
  std::vector<LinearLayers> streams;
  for (const int64_t length :
       {setting.shape.long_length, setting.shape.global_length}) {
    if (length > 0) {
      streams.emplace_back(setting, length);
    }
  }
  return SecondsOn(setting.device, [&] {
    for (const LinearLayers& stream : streams) {
      stream.Run();
    }
  });
}

// --- Attention ---------------------------------------------------------------

// Makes a tensor of the given sizes and dtype.
using TensorMaker =
    std::function<torch::Tensor(at::IntArrayRef, torch::ScalarType)>;

// A layer's softmax over operands as projections make them, without scores.
SparseAttentionInput SoftmaxInput(const Setting& setting, QuerySide side,
                                  const TensorMaker& make) {
  const StepShape& shape = setting.shape;
  const EtcConfig& config = setting.config;
  const bool is_long = side == QuerySide::kLong;
  const int64_t own = is_long ? shape.long_length : shape.global_length;
  const int64_t other = is_long ? shape.global_length : shape.long_length;
  const int64_t heads = config.num_attention_heads;
  const auto rows = [&](int64_t length) {
    const bool rounded = setting.precision == LinearPrecision::kBfloat16;
    return make({shape.batch, length, heads, config.head_size()},
                rounded ? torch::kBFloat16 : torch::kFloat32)
        .transpose(1, 2);
  };
  SparseAttentionInput input = {.operands = {.query = rows(own),
                                             .own_key = rows(own),
                                             .own_value = rows(own),
                                             .other_key = rows(other),
                                             .other_value = rows(other)},
                                .pattern = setting.attention.Softmax(
                                    side, shape.batch, shape.long_length,
                                    shape.global_length, config.local_radius),
                                .residual = setting.residual,
                                .dropout = config.attention_probs_dropout_prob};
  const int64_t ids = config.relative_vocab_size.value_or(0);
  if (ids > 0) {
    input.operands.relative = {
        .embedding = make({ids, heads, config.head_size()}, torch::kFloat32),
        .bias = make({ids, heads}, torch::kFloat32)};
  }
  return input;
}

// The sides that have queries.
std::vector<QuerySide> SidesOf(const StepShape& shape) {
  std::vector<QuerySide> sides;
  if (shape.long_length > 0) {
    sides.push_back(QuerySide::kLong);
  }
  if (shape.global_length > 0) {
    sides.push_back(QuerySide::kGlobal);
  }
  return sides;
}

// One softmax of a few layers, each carrying its scores to the next.
class SoftmaxStack {
 public:
  SoftmaxStack(const Setting& setting, QuerySide side) {
    const auto leaf = [&](at::IntArrayRef sizes, torch::ScalarType type) {
      return torch::randn(sizes, torch::dtype(type).device(setting.device))
          .requires_grad_(true);
    };
    const int64_t heads = setting.config.num_attention_heads;
    for (int64_t i = 0; i < setting.layers; ++i) {
      SparseAttentionInput layer = SoftmaxInput(setting, side, leaf);
      if (layer.residual.mode == ResidualAttention::kGate && i > 0) {
        layer.gates = {.own = leaf({heads}, torch::kFloat32),
                       .other = leaf({heads}, torch::kFloat32)};
      }
      layers_.push_back(std::move(layer));
    }
  }

  void Run() const {
    std::vector<torch::Tensor> contexts, leaves;
    const auto add = [&](const torch::Tensor& tensor) {
      if (tensor.defined()) {
        leaves.push_back(tensor);
      }
    };
    ResidualPair scores;
    for (SparseAttentionInput layer : layers_) {
      layer.operands.ForEachTensor(add);
      layer.gates.ForEachTensor(add);
      layer.previous = scores;
      const SparseAttentionOutput output = SparseAttention(layer);
      contexts.push_back(output.context);
      scores = output.scores;
    }
    GradientsOf(contexts, leaves);
  }

 private:
  std::vector<SparseAttentionInput> layers_;
};

// Seconds of the attention of one layer.
double AttentionSeconds(const Setting& setting) {
  double seconds = 0;
  for (const QuerySide side : SidesOf(setting.shape)) {
    const SoftmaxStack stack(setting, side);
    seconds += SecondsOn(setting.device, [&] { stack.Run(); }) /
               static_cast<double>(setting.layers);
  }
  return seconds;
}

DeviceRates RatesOf(const Setting& setting, double layer, double linear,
                    double attention, double copies) {
  EtcConfig one_layer = setting.config;
  one_layer.num_hidden_layers = 1;
  one_layer.grad_checkpointing_period = 0;
  const ForwardFlops forward = CountForwardFlops(one_layer, setting.shape);
  const double bytes = PassBytesOnDevice(one_layer, setting.shape);
  return {
      .linear = 3 * (forward.projections + forward.feed_forward) / linear,
      .attention = 3 * forward.attention / attention,
      // The parts alone may take longer than together: each begins and ends
      // with an idle device. No pass is faster than a copy.
      .passes = bytes / std::max(layer - linear - attention, bytes / copies),
      .copies = copies};
}

absl::StatusOr<DeviceRates> Measure(const RunConfig& config,
                                    const torch::Device& device) {
  constexpr int64_t kCopiedBytes = int64_t{1} << 27;
  const CurrentDevice current(device);
  const Setting setting(config, device);
  const double copies = CopiedBytesPerSecond(device, kCopiedBytes);
  const double linear = LinearSeconds(setting);
  const double attention = AttentionSeconds(setting);
  LayerStack layers(setting);
  const double layer = SecondsOn(device, [&] { layers.Run(); }) /
                       static_cast<double>(setting.layers);
  DeviceRates rates = RatesOf(setting, layer, linear, attention, copies);
  rates.layer_update =
      UpdateSeconds(config.optimizer, setting, layers.parameters());
  rates.layer_parameters = layers.parameters_of_one();
  return rates;
}

}  // namespace

DeviceBackend BackendOn(const torch::Device& device, const RunConfig& config) {
  const Setting setting(config, device);
  // Tensors of any size, in the memory of one number.
  const auto empty = [&](at::IntArrayRef sizes, torch::ScalarType type) {
    return torch::empty({}, torch::dtype(type).device(device)).expand(sizes);
  };
  const SparseAttentionInput input =
      SoftmaxInput(setting, SidesOf(setting.shape).front(), empty);
  DeviceBackend found = {.reason = KernelUnsupportedReason(input)};
  if (found.reason.empty()) {
    found.backend = StepBackend::kCudaKernels;
  }
  return found;
}

absl::StatusOr<DeviceRates> MeasureDevice(const RunConfig& config,
                                          const torch::Device& device) {
  TORCH_CHECK(device.is_cuda(), "device should be a CUDA device, but is ",
              device);
  const auto doing = [&] {
    return absl::StrCat("timing layers on ", device.str());
  };
  absl::StatusOr<DeviceRates> rates =
      NamingOutOfMemory(doing, [&] { return Measure(config, device); });
  if (absl::IsResourceExhausted(rates.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        rates.status().message(), "; lower train.micro_batch_size (now ",
        config.train.micro_batch_size, "), data.max_long_length (",
        config.data.max_long_length, ") or data.max_global_length (",
        config.data.max_global_length, ")"));
  }
  return rates;
}

}  // namespace etc
