// Stacks of encoder layers: inference, and whole training steps with dropout,
// loss, backward pass and update of the weights.
//
//   Encoder/<base|large>/<inference|training>/residual:<off|sum|mean|gate>/
//     <reverse|recompute|store>/<fp32|bf16>[/blocked][/period:P|/slices|/files]/
//     layers:N/long:L/global:G/threads:T
//   Encoder/<base|large>/.../<fp32|bf16>[/blocked]/device:cuda/layers:N/long:L/
//     global:G
//   Device/<bfloat16_products|float32_products|copies>/device:cuda
//
// Benchmarks on a CUDA device are there if LibTorch finds one: medians of
// several runs, each from an idle device to an idle device.
//
// Sizes are those of the presets (etc/config.h) but for the number of layers;
// one example, without borders. Scores are stored one way only where there are
// none or nothing is kept of them. Attention is by the fastest backend, the
// kernels, or by that of tensor operations. With a period layers are computed
// again in the backward pass (grad_checkpointing_period); with slices and
// files too, a few heads or tokens at a time (etc/sliced_layer.h), in one
// update, whose peak it is. Files are in TMPDIR, or else in /tmp.
//
//   of_gemm            share of this process's sgemm rate, at the same number
//                      of threads, that the operations of etc/step_cost.h reach
//   of_products        the same share of the rate of a layer's own products, in
//                      the precision of the layers (bench/linear_products.h)
//   flop_per_second    of the same operations
//   tokens_per_second  long tokens
//   peak_bytes         beside weights and optimizer; gradients count
//   of_matmul          on a device: share of its rate of a large product in
//                      bfloat16 (bench/device.h), which Device/ has

#include <benchmark/benchmark.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/device_time.h"
#include "base/process_memory.h"
#include "bench/device.h"
#include "bench/linear_products.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "etc/model.h"
#include "etc/step_cost.h"
#include "tasks/train/optimizer.h"

namespace etc {
namespace {

struct Variant {
  std::string size = "base";
  bool training = false;
  std::string residual = "off";
  std::string storage = "reverse";
  std::string precision = "fp32";
  bool blocked = false;
  int64_t period = 0;
  // "", "slices" or "files".
  std::string plan;
  torch::Device device = torch::kCPU;
};

std::optional<LayerSlices> SlicesOf(const Variant& variant) {
  if (variant.plan.empty()) {
    return std::nullopt;
  }
  const char* const directory = std::getenv("TMPDIR");
  return LayerSlices{.directory = variant.plan != "files" ? ""
                                  : directory != nullptr  ? directory
                                                          : "/tmp"};
}

class Encoder {
 public:
  Encoder(const Variant& variant, int64_t layers, const StepShape& shape)
      : variant_(variant), config_(Config(variant, layers)), model_(config_) {
    model_->to(variant.device);
    model_->train(variant.training);
    model_->set_score_storage(ScoreStorageFromName(variant.storage));
    model_->set_linear_precision(variant.precision == "bf16"
                                     ? LinearPrecision::kBfloat16
                                     : LinearPrecision::kFloat32);
    model_->set_attention_implementation(variant.blocked
                                             ? AttentionImplementation::kBlocked
                                             : AttentionImplementation::kAuto);
    model_->set_layer_slices(SlicesOf(variant));
    for (const auto& parameter : model_->named_parameters()) {
      parameters_.emplace(parameter.key(), parameter.value());
    }
    optimizer_ = std::make_unique<Optimizer>(OptimizerConfig(), parameters_);
    input_ = InputOf(shape);
  }

  void Run() { RunOn(input_); }
  // Makes gradients and what the optimizer keeps, by a short example.
  void Prepare() { RunOn(InputOf({.long_length = 512, .global_length = 16})); }

  const EtcConfig& config() const { return config_; }

 private:
  EtcInput InputOf(const StepShape& shape) const {
    const auto ids = [&](int64_t length) {
      return torch::randint(config_.vocab_size, {1, length}, torch::kInt64)
          .to(variant_.device);
    };
    return {.token_ids = ids(shape.long_length),
            .global_token_ids = ids(shape.global_length),
            .attention = AttentionInputs(std::vector{UnrestrictedPattern(
                shape.long_length, shape.global_length, config_.local_radius,
                config_.relative_pos_max_distance)})};
  }

  void RunOn(const EtcInput& input) {
    torch::Tensor loss;
    {
      const EtcOutput output = model_->forward(input);
      benchmark::DoNotOptimize(output.long_output.data_ptr());
      if (!variant_.training) {
        return;
      }
      loss = output.long_output.square().mean() +
             output.global_output.square().mean();
    }
    loss.backward();
    optimizer_->Step(1e-6);
    for (const auto& [name, parameter] : parameters_) {
      torch::Tensor(parameter).mutable_grad().reset();  // as training does
    }
  }

  static EtcConfig Config(const Variant& variant, int64_t layers) {
    absl::StatusOr<EtcConfig> config = EtcConfigPreset(variant.size);
    TORCH_CHECK(config.ok(), std::string(config.status().message()));
    config->num_hidden_layers = layers;
    config->residual_attention = variant.residual;
    config->grad_checkpointing_period = variant.period;
    return *std::move(config);
  }

  const Variant variant_;
  const EtcConfig config_;
  EtcModel model_;
  NamedTensors parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  EtcInput input_;
};

double FlopsOf(const Variant& variant, const EtcConfig& config,
               const StepShape& shape) {
  return variant.training
             ? CountTrainingFlops(
                   config, shape,
                   {.storage = ScoreStorageFromName(variant.storage),
                    .slices = SlicesOf(variant)})
             : CountForwardFlops(config, shape).total();
}

void RunEncoder(benchmark::State& state, const Variant& variant) {
  const int64_t layers = state.range(0);
  const StepShape shape = {.batch = 1,
                           .long_length = state.range(1),
                           .global_length = state.range(2)};
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(variant.training);
  Encoder encoder(variant, layers, shape);
  encoder.Prepare();
  ReturnFreedMemory(!variant.plan.empty());
  const PeakMemory memory;
  double peak = 0;
  if (variant.plan.empty()) {
    encoder.Run();
    peak = memory.Bytes();
  }
  const GemmRate gemm_rate;
  const LayerProductRate product_rate(
      {.hidden_size = encoder.config().hidden_size,
       .intermediate_size = encoder.config().intermediate_size,
       .rows = std::min(shape.long_length + shape.global_length, kProductRows),
       .rounded = variant.precision == "bf16",
       .training = variant.training});
  const double seconds = MeanSeconds(state, [&] { encoder.Run(); });
  if (!variant.plan.empty()) {
    peak = memory.Bytes();
  }
  const double flops = FlopsOf(variant, encoder.config(), shape);
  state.counters["of_products"] = flops / seconds / product_rate.Around();
  state.counters["of_gemm"] = flops / seconds / gemm_rate.Around();
  state.counters["flop_per_second"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(shape.long_length),
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_bytes"] = peak;
}

// One iteration, whose time is a median.
void RunEncoderOnDevice(benchmark::State& state, const Variant& variant) {
  constexpr int64_t kRuns = 7;
  const StepShape shape = {.batch = 1,
                           .long_length = state.range(1),
                           .global_length = state.range(2)};
  const DeviceCeilings& ceilings = CeilingsOf(variant.device);
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(variant.training);
  Encoder encoder(variant, state.range(0), shape);
  encoder.Run();  // makes gradients and what the optimizer keeps
  const DevicePeakMemory memory(variant.device);
  encoder.Run();
  const std::optional<int64_t> peak = memory.Bytes();
  double seconds = 0.0;
  for (auto _ : state) {
    seconds = MedianSecondsOn(variant.device, kRuns, [&] { encoder.Run(); });
    state.SetIterationTime(seconds);
  }
  state.counters["of_matmul"] = FlopsOf(variant, encoder.config(), shape) /
                                seconds / ceilings.bfloat16_products;
  state.counters["tokens_per_second"] =
      static_cast<double>(shape.long_length) / seconds;
  if (peak.has_value()) {
    state.counters["peak_bytes"] = static_cast<double>(*peak);
  }
}

std::string NameOf(const Variant& variant) {
  return "Encoder/" + variant.size + "/" +
         (variant.training ? "training" : "inference") +
         "/residual:" + variant.residual + "/" + variant.storage + "/" +
         variant.precision + (variant.blocked ? "/blocked" : "") +
         (variant.period > 0 ? "/period:" + std::to_string(variant.period)
                             : "") +
         (variant.plan.empty() ? "" : "/" + variant.plan);
}

void Register(const Variant& variant, std::vector<std::vector<int64_t>> sizes) {
  auto* family = AddBenchmark(NameOf(variant), [=](benchmark::State& state) {
    RunEncoder(state, variant);
  });
  family->ArgNames({"layers", "long", "global", "threads"})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  if (!variant.plan.empty()) {
    family->Iterations(1);
  }
  for (const std::vector<int64_t>& size : sizes) {
    family->Args(size);
  }
}

void RegisterCeiling(const char* name, const torch::Device& device,
                     double DeviceCeilings::*ceiling) {
  AddBenchmark(std::string("Device/") + name + "/device:cuda",
               [=](benchmark::State& state) {
                 const double rate = CeilingsOf(device).*ceiling;
                 for (auto _ : state) {
                   state.SetIterationTime(1.0 / rate);
                 }
                 state.counters["per_second"] = rate;
               })
      ->UseManualTime()
      ->Iterations(1);
}

void RegisterOnDevice(const Variant& variant,
                      const std::vector<std::vector<int64_t>>& sizes) {
  auto* const family = AddBenchmark(
      NameOf(variant) + "/device:cuda",
      [=](benchmark::State& state) { RunEncoderOnDevice(state, variant); });
  family->ArgNames({"layers", "long", "global"})
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  for (const std::vector<int64_t>& size : sizes) {
    family->Args(size);
  }
}

// All layers of the models on the first device.
void RegisterDevice() {
  const torch::Device device(torch::kCUDA, 0);
  RegisterCeiling("bfloat16_products", device,
                  &DeviceCeilings::bfloat16_products);
  RegisterCeiling("float32_products", device,
                  &DeviceCeilings::float32_products);
  RegisterCeiling("copies", device, &DeviceCeilings::copies);
  for (const bool blocked : {false, true}) {
    for (const bool training : {true, false}) {
      for (const char* precision : {"fp32", "bf16"}) {
        for (const char* residual : {"off", "sum"}) {
          RegisterOnDevice({.training = training,
                            .residual = residual,
                            .precision = precision,
                            .blocked = blocked,
                            .device = device},
                           {{12, 4096, 256}, {12, 16384, 256}});
        }
      }
    }
  }
  // WikiHop, as tasks/wikihop/configs have it.
  for (const char* precision : {"fp32", "bf16"}) {
    for (const char* size : {"base", "large"}) {
      const int64_t layers = std::string(size) == "base" ? 12 : 24;
      RegisterOnDevice({.size = size,
                        .training = true,
                        .residual = "sum",
                        .precision = precision,
                        .device = device},
                       {{layers, 4096, 430}});
    }
  }
}

void RegisterAll() {
  if (torch::cuda::is_available()) {
    RegisterDevice();
  }
  const auto blocked = [](const char* residual, const char* storage) {
    Register({.training = true,
              .residual = residual,
              .storage = storage,
              .blocked = true},
             {{12, 4096, 256, 2}});
  };
  blocked("off", "reverse");
  blocked("sum", "reverse");
  blocked("sum", "store");
  // Documents for which memory decides.
  for (const char* residual : {"off", "sum"}) {
    for (const int64_t period : {1, 3}) {
      for (const char* precision : {"fp32", "bf16"}) {
        Register(
            {.training = true,
             .residual = residual,
             .precision = precision,
             .period = period},
            {{12, 4096, 256, 2}, {12, 16384, 256, 2}, {12, 65536, 256, 2}});
      }
    }
    for (const char* plan : {"slices", "files"}) {
      for (const char* precision : {"fp32", "bf16"}) {
        Register({.training = true,
                  .residual = residual,
                  .precision = precision,
                  .plan = plan},
                 {{12, 4096, 256, 2},
                  {12, 16384, 256, 2},
                  {12, 65536, 256, 2},
                  {12, 131072, 256, 2},
                  {12, 262144, 256, 2}});
      }
    }
  }
  // An hour, and 60 GB of files.
  Register({.training = true, .precision = "bf16", .plan = "files"},
           {{12, 1048576, 256, 2}});
  for (const char* size : {"base", "large"}) {
    // All layers of base; as many of large as take about as long.
    const int64_t layers = std::string(size) == "base" ? 12 : 6;
    for (const bool training : {false, true}) {
      for (const char* residual : {"off", "sum", "mean", "gate"}) {
        for (const char* storage : {"reverse", "recompute", "store"}) {
          const bool differs = training && std::string(residual) == "sum";
          if (std::string(storage) != "reverse" && !differs) {
            continue;
          }
          for (const char* precision : {"fp32", "bf16"}) {
            if (std::string(precision) == "bf16" &&
                std::string(storage) != "reverse") {
              continue;
            }
            Register({.size = size,
                      .training = training,
                      .residual = residual,
                      .storage = storage,
                      .precision = precision},
                     {{layers, 512, 64, 2},
                      {layers, 2048, 256, 2},
                      {layers, 4096, 256, 1},
                      {layers, 4096, 256, 2},
                      {layers, 8192, 256, 2}});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
