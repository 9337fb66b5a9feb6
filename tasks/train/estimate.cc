#include "tasks/train/estimate.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/amx.h"
#include "base/linear.h"
#include "base/matrix_product.h"
#include "base/process_memory.h"
#include "etc/model.h"
#include "etc/model_size.h"
#include "etc/step_cost.h"
#include "tasks/train/device.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/schedule.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

constexpr double kRounded = 2;  // bfloat16
// Memory beside the libraries that a program starts with: its vocabulary,
// oneDNN, the stacks of threads, code that is read when it first runs.
// Measured.
constexpr double kProgramBesideLibraries = 30e6;

// The parts that do not depend on activations.
StepMemory MemoryOfParameters(const RunConfig& config,
                              const TrainedCounts& parameters,
                              StepBackend backend) {
  StepMemory memory = {.weights = parameters.weight_bytes(),
                       .gradients = parameters.gradient_bytes(),
                       .optimizer = parameters.optimizer_bytes()};
  if (backend == StepBackend::kCpu) {
    memory.program =
        static_cast<double>(ResidentBytesAtStart()) + kProgramBesideLibraries;
    memory.cache = 1e6 * static_cast<double>(config.data.cache_megabytes);
  }
  return memory;
}

// Bytes of the copies of an encoder's weights in bfloat16.
double RoundedWeightBytes(const RunConfig& config, const StepOptions& options) {
  if (options.backend != StepBackend::kCpu ||
      options.precision != LinearPrecision::kBfloat16) {
    return 0;
  }
  const ParameterCounts counts = CountParameters(config.model);
  return kRounded * static_cast<double>(counts.attention + counts.feed_forward);
}

}  // namespace

StepShape LargestMicroBatch(const RunConfig& config) {
  return {.batch = config.train.micro_batch_size,
          .long_length =
              config.model.has_long_tokens ? config.data.max_long_length : 0,
          .global_length = config.data.max_global_length};
}

StepShape LargestMicroBatch(const RunConfig& config, const TaskHead& head) {
  StepShape shape = LargestMicroBatch(config);
  shape.outputs = head.CostOf(shape).outputs;
  return shape;
}

StepShape LargestMicroBatch(const RunConfig& config, const Task& task) {
  const auto* const encoder_task = dynamic_cast<const EncoderTask*>(&task);
  return encoder_task == nullptr
             ? LargestMicroBatch(config)
             : LargestMicroBatch(config, *encoder_task->MakeHead());
}

StepShape LargestUpdate(const RunConfig& config) {
  StepShape shape = LargestMicroBatch(config);
  shape.batch = config.train.batch_size;
  return shape;
}

StepOptions StepOptionsOf(const RunConfig& config, StepBackend backend) {
  return {
      .storage = ScoreStorageFromName(config.train.score_storage),
      .precision = PrecisionOn(
          backend == StepBackend::kCpu ? torch::kCPU : torch::kCUDA, config),
      .backend = backend,
      .slices = SlicesOf(config)};
}

StepMemory EstimateStepMemory(const RunConfig& config,
                              const TrainedCounts& parameters,
                              StepBackend backend) {
  return EstimateStepMemory(config, parameters, LargestMicroBatch(config),
                            backend);
}

StepMemory EstimateStepMemory(const RunConfig& config,
                              const TrainedCounts& parameters,
                              const StepShape& shape, StepBackend backend) {
  const ParameterCounts counts = CountParameters(config.model);
  const StepOptions options = StepOptionsOf(config, backend);
  StepMemory memory = MemoryOfParameters(config, parameters, backend);
  // In addition to activations, although most of these are freed by then:
  // fragmented as they are, no block as large as the table fits.
  const TrainedCounts table = CountTrained(
      config.train, {{absl::StrCat(kEncoderPrefix, "embedding.token.weight"),
                      counts.token_embedding}});
  memory.table_gradients = 2 * table.gradient_bytes();
  memory.activations = EstimateActivations(config.model, shape, options);
  memory.rounded_weights = RoundedWeightBytes(config, options);
  return memory;
}

StepMemory EstimateEvaluationMemory(const RunConfig& config,
                                    const TrainedCounts& parameters,
                                    StepBackend backend) {
  StepShape shape = LargestMicroBatch(config);
  shape.batch = config.train.evaluation_batch_size;
  StepMemory memory = MemoryOfParameters(config, parameters, backend);
  const StepOptions options = StepOptionsOf(config, backend);
  memory.rounded_weights = RoundedWeightBytes(config, options);
  memory.activations = EstimateForwardActivations(config.model, shape, options);
  return memory;
}

int64_t EvaluationBatchWithin(double limit, const RunConfig& config,
                              const TrainedCounts& parameters,
                              StepBackend backend) {
  RunConfig fewer = config;
  int64_t& batch = fewer.train.evaluation_batch_size;
  int64_t fits = 0;
  int64_t too_many = batch + 1;
  while (too_many - fits > 1) {
    batch = fits + (too_many - fits) / 2;
    const StepMemory memory =
        EstimateEvaluationMemory(fewer, parameters, backend);
    (memory.without_cache() <= limit ? fits : too_many) = batch;
  }
  return fits;
}

StepMemory EstimateEncoderDecoderMemory(const RunConfig& config,
                                        const TrainedCounts& parameters,
                                        double activation_bytes) {
  StepMemory memory = MemoryOfParameters(config, parameters, StepBackend::kCpu);
  memory.activations = {.saved = activation_bytes};
  // Linear layers and the output table, which are nearly all parameters.
  if (PrecisionOn(torch::kCPU, config) == LinearPrecision::kBfloat16) {
    memory.rounded_weights = kRounded * static_cast<double>(parameters.all);
  }
  return memory;
}

namespace {

// Rate of the attention kernels, forward and backward, relative to a large
// product (bench/README.md).
constexpr double kAttentionShare = 0.8;
// With rounded products by AMX they are so much faster.
constexpr double kAmxAttention = 2;

// Runs `work` for about `seconds` after a first time, which gets memory and
// plans; the median of how long it takes.
double MedianSeconds(double seconds, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kFewest = 3;
  constexpr size_t kMost = 1000;
  work();
  std::vector<double> times;
  double sum = 0;
  while (times.size() < kFewest || (sum < seconds && times.size() < kMost)) {
    const auto begin = Clock::now();
    work();
    const std::chrono::duration<double> time = Clock::now() - begin;
    times.push_back(time.count());
    sum += time.count();
  }
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// The three products of the first layer of a feed-forward block: forward, and
// the gradients of its input and of its weight. So many tokens that longer
// examples are no faster.
double LinearRate(const RunConfig& config) {
  constexpr int64_t kMostTokens = 512;
  const StepShape shape = LargestMicroBatch(config);
  // BERT's are all global.
  const int64_t tokens =
      std::min(kMostTokens,
               shape.batch * std::max(shape.long_length, shape.global_length));
  const int64_t hidden = config.model.hidden_size;
  const int64_t intermediate = config.model.intermediate_size;
  const auto operand = [&](int64_t rows, int64_t columns) {
    const torch::Tensor values = torch::rand({rows, columns});
    return StepOptionsOf(config).precision == LinearPrecision::kBfloat16
               ? ToBfloat16(values)
               : values;
  };
  const torch::Tensor input = operand(tokens, hidden);
  const torch::Tensor weight = operand(intermediate, hidden);
  const torch::Tensor gradient = operand(tokens, intermediate);
  const double seconds = MedianSeconds(0.2, [&] {
    MatrixProduct(input, weight.t());
    MatrixProduct(gradient, weight);
    MatrixProduct(gradient.t(), input);
  });
  return 3.0 * 2.0 * static_cast<double>(tokens * hidden * intermediate) /
         seconds;
}

double ProductRate() {
  constexpr int64_t kSize = 768;
  const torch::Tensor a = torch::rand({kSize, kSize});
  const torch::Tensor b = torch::rand({kSize, kSize});
  return 2.0 * kSize * kSize * kSize /
         MedianSeconds(0.1, [&] { MatrixProduct(a, b); });
}

double TrafficRate() {
  constexpr int64_t kNumbers = int64_t{1} << 24;  // larger than most caches
  torch::Tensor sum = torch::zeros({kNumbers});
  const torch::Tensor added = torch::ones({kNumbers});
  return 3 * sizeof(float) * static_cast<double>(kNumbers) /
         MedianSeconds(0.1, [&] { sum.add_(added); });
}

// Bytes of weights that the products of linear layers read and write in one
// micro-batch; the rate of products is measured with weights that are in the
// cache. Each stream of tokens, the global one be it ever so short, reads its
// weights forward and backward and writes their gradients. Two gradients of a
// weight that both streams share are summed.
double WeightTraffic(const RunConfig& config, const StepShape& shape) {
  const ParameterCounts counts = CountParameters(config.model);
  const double distinct =
      static_cast<double>(counts.attention + counts.feed_forward);
  const ForwardFlops one_token = CountForwardFlops(
      config.model, {.batch = 1, .long_length = 1, .global_length = 0});
  const double streams =
      (shape.long_length > 0 ? 1 : 0) + (shape.global_length > 0 ? 1 : 0);
  const double used =
      streams * (one_token.projections + one_token.feed_forward) / 2;
  const bool rounded =
      StepOptionsOf(config).precision == LinearPrecision::kBfloat16;
  const double read = (LayerPasses(config.model, StepOptionsOf(config)) - 1) *
                      (rounded ? 2 : 4);
  return used * (read + sizeof(float)) +
         std::max(used - distinct, 0.0) * 3 * sizeof(float);
}

// Bytes of the gradients of an update beside its optimizer.
double GradientTraffic(const RunConfig& config, int64_t parameters,
                       int64_t micro_batches) {
  const auto table =
      static_cast<double>(CountParameters(config.model).token_embedding);
  // From the second micro-batch on gradients are accumulated. The token table
  // has two, which begin with zeros and are summed.
  return sizeof(float) * (static_cast<double>(micro_batches - 1) * 3 *
                              static_cast<double>(parameters) +
                          static_cast<double>(micro_batches) * 5 * table);
}

// Bytes of all passes over parameters in one update.
double ParameterTraffic(const RunConfig& config, int64_t parameters,
                        int64_t micro_batches) {
  const ParameterCounts counts = CountParameters(config.model);
  // The two norms read gradients and parameters; the optimizer reads four
  // tensors and writes three.
  double passes = 9 * static_cast<double>(parameters);
  if (StepOptionsOf(config).precision == LinearPrecision::kBfloat16) {
    passes += 1.5 * static_cast<double>(counts.attention + counts.feed_forward);
  }
  return sizeof(float) * passes +
         GradientTraffic(config, parameters, micro_batches) +
         static_cast<double>(micro_batches) *
             WeightTraffic(config, LargestMicroBatch(config));
}

// Seconds of all passes over parameters in one update on a device. The weights
// of linear layers are read in these.
double ParameterSeconds(const RunConfig& config, int64_t parameters,
                        int64_t micro_batches, const DeviceRates& rates) {
  // Numbers that UpdateOnDevice_ and the two norms read and write of each
  // parameter, operation by operation (tasks/train/adam_update.cc).
  constexpr double kPasses = 40;
  const int64_t layers = config.model.num_hidden_layers;
  const double others = static_cast<double>(
      std::max<int64_t>(parameters - layers * rates.layer_parameters, 0));
  return static_cast<double>(layers) * rates.layer_update +
         (sizeof(float) * kPasses * others +
          GradientTraffic(config, parameters, micro_batches)) /
             rates.copies;
}

double AttentionShare(const RunConfig& config) {
  return config.train.precision == "bf16" && kernels::HasAmx()
             ? kAttentionShare * kAmxAttention
             : kAttentionShare;
}

// Seconds of a run of the encoder and its gradient.
struct EncoderTime {
  double linear = 0;
  double attention = 0;
  double passes = 0;
};

// The rates of a run of the encoder, and the bytes of its passes.
struct EncoderRates {
  double linear;        // FLOP per second
  double attention;     // FLOP per second
  double passes;        // bytes per second
  double layer_passes;  // of one run, LayerPasses, whose bytes these are:
  std::function<double(const StepShape&)> pass_bytes;
};

// `layer_passes`: in units of a forward pass of the layers.
EncoderTime TimeOfRun(const RunConfig& config, const StepShape& shape,
                      double layer_passes, const EncoderRates& rates) {
  const ForwardFlops forward = CountForwardFlops(config.model, shape);
  const double scores_again =
      CountRecomputedScoreFlops(config.model, shape, StepOptionsOf(config));
  const double repeated = layer_passes - rates.layer_passes;
  return {
      .linear = (layer_passes * (forward.projections + forward.feed_forward) +
                 (3 + repeated) * forward.embedding) /
                rates.linear,
      .attention =
          (layer_passes * forward.attention + scores_again) / rates.attention,
      .passes = layer_passes / rates.layer_passes * rates.pass_bytes(shape) /
                rates.passes};
}

// All of an update but its passes over parameters.
StepTime TimeOfEncoder(const RunConfig& config, const HeadCost& head,
                       const EncoderRates& rates) {
  StepTime time = {.head = head.flops / rates.linear};
  const double once = rates.layer_passes;
  StepShape update = LargestUpdate(config);
  update.outputs = head.outputs;
  const EncoderTime run = TimeOfRun(config, update, once, rates);
  time.linear = run.linear;
  time.attention = run.attention;
  time.passes = run.passes;
  if (head.targets.batch > 0) {
    const EncoderTime targets =
        TimeOfRun(config, head.targets, once + 1, rates);
    time.head += targets.linear + targets.attention + targets.passes;
  }
  return time;
}

int64_t MicroBatches(const RunConfig& config) {
  return LoaderOptionsOf(config, /*seed=*/1).micro_batches();
}

}  // namespace

MachineRates MeasureRates(const RunConfig& config) {
  const torch::NoGradGuard no_grad;
  return {.linear = LinearRate(config),
          .product = ProductRate(),
          .traffic = TrafficRate()};
}

double PassBytesOnDevice(const EtcConfig& model, const StepShape& shape) {
  EtcConfig without_scores = model;
  without_scores.residual_attention = "off";
  return CountTrainingTraffic(without_scores, shape, {});
}

StepTime EstimateStepTime(const RunConfig& config, int64_t parameters,
                          const HeadCost& head, const MachineRates& rates) {
  StepTime time = TimeOfEncoder(
      config, head,
      {.linear = rates.linear,
       .attention = AttentionShare(config) * rates.product,
       .passes = rates.traffic,
       .layer_passes = LayerPasses(config.model, StepOptionsOf(config)),
       .pass_bytes = [&](const StepShape& shape) {
         return CountTrainingTraffic(config.model, shape,
                                     StepOptionsOf(config));
       }});
  time.parameters = ParameterTraffic(config, parameters, MicroBatches(config)) /
                    rates.traffic;
  return time;
}

StepTime EstimateStepTime(const RunConfig& config, int64_t parameters,
                          const HeadCost& head, const DeviceRates& rates) {
  StepTime time =
      TimeOfEncoder(config, head,
                    {.linear = rates.linear,
                     .attention = rates.attention,
                     .passes = rates.passes,
                     .layer_passes = LayerPasses(config.model),
                     .pass_bytes = [&](const StepShape& shape) {
                       return PassBytesOnDevice(config.model, shape);
                     }});
  time.parameters =
      ParameterSeconds(config, parameters, MicroBatches(config), rates);
  return time;
}

double CountHeadFlops(const EtcConfig& model, const HeadCost& head) {
  double flops = head.flops;
  if (head.targets.batch > 0) {
    flops += CountTrainingFlops(model, head.targets) +
             CountForwardFlops(model, head.targets).total();
  }
  return flops;
}

std::optional<int64_t> UpdatesWithoutData(const RunConfig& config) {
  if (config.train.steps.has_value()) {
    return config.train.steps;
  }
  if (config.train.num_train_examples.has_value() &&
      config.train.max_examples == 0) {
    return NumTrainingSteps(*config.train.num_train_examples,
                            config.train.batch_size, config.train.epochs);
  }
  return std::nullopt;
}

}  // namespace etc
