// The time of an update that `realetc estimate` prints, against real updates.
//
//   Estimate/base/residual:<off|sum>/<fp32|bf16>/layers:N/long:L/global:G/
//     threads:T
//
// Sizes are those of the preset but for the number of layers; updates are those
// of training, of two examples one at a time. The rates are measured right
// before and right after each update, since machines are noisy.
//
//   estimated_of_measured  the ratio of times, 1 being best; 0.7 to 1.3 wanted

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/pattern.h"
#include "bench/machine.h"
#include "bench/training.h"
#include "tasks/data/loader.h"
#include "tasks/train/estimate.h"

namespace etc {
namespace {

std::shared_ptr<const Example> LongestExample(const FinetuneConfig& config) {
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

void RunEstimate(benchmark::State& state, const std::string& residual,
                 const std::string& precision) {
  FinetuneConfig config;
  config.model = *EtcConfigPreset("base");
  config.model.residual_attention = residual;
  config.model.num_hidden_layers = state.range(0);
  config.data.max_long_length = state.range(1);
  config.data.max_global_length = state.range(2);
  config.train.batch_size = 2;
  config.train.precision = precision;
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  TrainingBatch batch;
  for (int64_t i = 0; i < config.train.batch_size; ++i) {
    batch.micro_batches.push_back({LongestExample(config)});
  }
  Training training(config, std::make_shared<MeanHead>(), std::move(batch));
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

void RegisterAll() {
  for (const char* precision : {"fp32", "bf16"}) {
    for (const char* residual : {"off", "sum"}) {
      auto* family = benchmark::RegisterBenchmark(
          (std::string("Estimate/base/residual:") + residual + "/" + precision)
              .c_str(),
          [=](benchmark::State& state) {
            RunEstimate(state, residual, precision);
          });
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
