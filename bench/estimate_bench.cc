// The time of an update that `realetc estimate` prints, against real updates.
//
//   Estimate/base/residual:<off|sum>/<fp32|bf16>/layers:N/long:L/global:G/
//     threads:T
//   Estimate/base/residual:<off|sum>/<fp32|bf16>/device:cuda/layers:N/long:L/
//     global:G
//
// Sizes are those of the preset but for the number of layers; updates are those
// of training, of two examples one at a time. The rates are measured right
// before and right after each update, since machines are noisy.
//
// Benchmarks on a CUDA device are there if LibTorch finds one; the update is a
// median of several.
//
//   estimated_of_measured  the ratio of times, 1 being best; 0.7 to 1.3 wanted
//   memory_of_measured     on a device: the ratio of the peaks of its tensors
//   linear, attention, passes, parameters
//                          on a device: the parts of the estimate, in seconds

#include <benchmark/benchmark.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/pattern.h"
#include "base/device_time.h"
#include "bench/device.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "bench/training.h"
#include "tasks/data/loader.h"
#include "tasks/train/device_rates.h"
#include "tasks/train/estimate.h"

namespace etc {
namespace {

std::shared_ptr<const Example> LongestExample(const RunConfig& config) {
  auto example = std::make_shared<Example>();
  const StepShape shape = LargestMicroBatch(config);
  example->long_token_ids.resize(static_cast<size_t>(shape.long_length), 7);
  example->long_type_ids.resize(static_cast<size_t>(shape.long_length), 1);
  example->global_token_ids.resize(static_cast<size_t>(shape.global_length), 1);
  example->global_type_ids.resize(static_cast<size_t>(shape.global_length), 0);
  example->pattern = UnrestrictedPattern(
      shape.long_length, shape.global_length, config.model.local_radius,
      config.model.relative_pos_max_distance);
  return example;
}

// A run of base with the sizes of a benchmark.
RunConfig ConfigOf(const benchmark::State& state, const std::string& residual,
                   const std::string& precision) {
  RunConfig config;
  config.model = *EtcConfigPreset("base");
  config.model.residual_attention = residual;
  config.model.num_hidden_layers = state.range(0);
  config.data.max_long_length = state.range(1);
  config.data.max_global_length = state.range(2);
  config.train.batch_size = 2;
  config.train.precision = precision;
  return config;
}

// One micro-batch for each of its examples.
TrainingBatch UpdateOfLongest(const RunConfig& config) {
  TrainingBatch batch;
  for (int64_t i = 0; i < config.train.batch_size; ++i) {
    batch.micro_batches.push_back({LongestExample(config)});
  }
  return batch;
}

void RunEstimate(benchmark::State& state, const std::string& residual,
                 const std::string& precision) {
  const RunConfig config = ConfigOf(state, residual, precision);
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  Training training(config, std::make_shared<MeanHead>(),
                    UpdateOfLongest(config));
  // The first updates of a process also pay for memory that is new to it.
  for (int i = 0; i < 3; ++i) {
    training.Update();
  }
  using Clock = std::chrono::steady_clock;
  double estimated = 0;
  double measured = 0;
  for (auto _ : state) {
    const auto estimate = [&] {
      return EstimateStepTime(config, training.parameters(), HeadCost(),
                              MeasureRates(config))
          .total();
    };
    const double before = estimate();
    const auto begin = Clock::now();
    training.Update();
    const std::chrono::duration<double> time = Clock::now() - begin;
    estimated += 0.5 * (before + estimate());
    measured += time.count();
    state.SetIterationTime(time.count());
  }
  state.counters["estimated_of_measured"] = estimated / measured;
}

// One iteration, whose time is a median.
void RunEstimateOnDevice(benchmark::State& state, const std::string& residual,
                         const std::string& precision) {
  constexpr int64_t kRuns = 7;
  const torch::Device device(torch::kCUDA, 0);
  const RunConfig config = ConfigOf(state, residual, precision);
  torch::manual_seed(1);
  double measured = 0;
  double peak = 0;
  int64_t parameters = 0;
  {
    const DevicePeakMemory memory(device);
    Training training(config, std::make_shared<MeanHead>(),
                      UpdateOfLongest(config), device);
    parameters = training.parameters();
    for (int i = 0; i < 3; ++i) {
      training.Update();
    }
    for (auto _ : state) {
      measured = MedianSecondsOn(device, kRuns, [&] { training.Update(); });
      state.SetIterationTime(measured);
    }
    peak = static_cast<double>(memory.Bytes().value_or(0));
  }
  const absl::StatusOr<DeviceRates> rates = MeasureDevice(config, device);
  if (!rates.ok()) {
    state.SkipWithError(std::string(rates.status().message()).c_str());
    return;
  }
  const StepTime time =
      EstimateStepTime(config, parameters, HeadCost(), *rates);
  state.counters["estimated_of_measured"] = time.total() / measured;
  state.counters["linear"] = time.linear;
  state.counters["attention"] = time.attention;
  state.counters["passes"] = time.passes;
  state.counters["parameters"] = time.parameters;
  if (peak > 0) {
    state.counters["memory_of_measured"] =
        EstimateStepMemory(config, parameters,
                           BackendOn(device, config).backend)
            .without_cache() /
        peak;
  }
}

void RegisterOnDevice(const std::string& residual,
                      const std::string& precision) {
  AddBenchmark(
      "Estimate/base/residual:" + residual + "/" + precision + "/device:cuda",
      [=](benchmark::State& state) {
        RunEstimateOnDevice(state, residual, precision);
      })
      ->ArgNames({"layers", "long", "global"})
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond)
      ->Args({12, 1024, 96})
      ->Args({12, 4096, 256})
      ->Args({12, 16384, 256});
}

void RegisterAll() {
  for (const char* precision : {"fp32", "bf16"}) {
    for (const char* residual : {"off", "sum"}) {
      auto* family = AddBenchmark(
          std::string("Estimate/base/residual:") + residual + "/" + precision,
          [=](benchmark::State& state) {
            RunEstimate(state, residual, precision);
          });
      if (torch::cuda::is_available()) {
        RegisterOnDevice(residual, precision);
      }
      family->ArgNames({"layers", "long", "global", "threads"})
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
      for (const int64_t threads : {1, 2}) {
        family->Args({4, 256, 32, threads})
            ->Args({4, 1024, 96, threads})
            ->Args({4, 4096, 256, threads})
            ->Args({2, 16384, 256, threads});
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
