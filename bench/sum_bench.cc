// Cost of all-reducing gradients over the processes of a run: as many floats as
// the models of pre-training have, by two processes of this machine over its
// loopback, one thread each.
//
//   GradientSum/<base|large>/processes:2
//
//   bytes         of the gradients
//   bytes_sent    by each process in a sum, of a ring of W processes: 2 (W - 1)
//                 / W times as many
//   sent_per_second

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "etc/config.h"
#include "etc/model_size.h"
#include "tasks/distributed/launcher.h"
#include "tasks/distributed/process_group.h"

namespace etc {
namespace {

constexpr int64_t kProcesses = 2;

ProcessGroup* group = nullptr;

// Makes the gradients of a model, in tensors of some 4 MB.
std::vector<torch::Tensor> GradientsOf(const std::string& preset) {
  constexpr int64_t kElements = int64_t{1} << 20;
  int64_t left = CountParameters(EtcConfigPreset(preset).value()).total();
  std::vector<torch::Tensor> gradients;
  for (; left > 0; left -= kElements) {
    gradients.push_back(torch::zeros({std::min(left, kElements)}));
  }
  return gradients;
}

// Broadcasts the preset to sum: an index of kPresets, or -1 to end.
constexpr const char* kPresets[] = {"base", "large"};
absl::StatusOr<int64_t> BroadcastPreset(int64_t preset) {
  const torch::Tensor which = torch::full({1}, preset, torch::kInt64);
  ETC_RETURN_IF_ERROR(group->Broadcast({which}));
  return which.item<int64_t>();
}

absl::Status SumOnce(int64_t preset,
                     const std::vector<torch::Tensor>& gradients) {
  ETC_RETURN_IF_ERROR(BroadcastPreset(preset).status());
  return group->Sum(gradients);
}

void RunSums(benchmark::State& state, int64_t preset) {
  const std::vector<torch::Tensor> gradients = GradientsOf(kPresets[preset]);
  double bytes = 0;
  for (const torch::Tensor& gradient : gradients) {
    bytes += static_cast<double>(gradient.nbytes());
  }
  for (auto _ : state) {
    if (const absl::Status summed = SumOnce(preset, gradients); !summed.ok()) {
      state.SkipWithError(std::string(summed.message()).c_str());
      return;
    }
  }
  constexpr double kRing = 2.0 * (kProcesses - 1) / kProcesses;
  state.counters["bytes"] = bytes;
  state.counters["bytes_sent"] = kRing * bytes;
  state.counters["sent_per_second"] = benchmark::Counter(
      kRing * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  for (int64_t preset = 0; preset < 2; ++preset) {
    AddBenchmark(
        std::string("GradientSum/") + kPresets[preset] + "/processes:2",
        [=](benchmark::State& state) { RunSums(state, preset); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

// Sums until rank 0 ends.
absl::Status SumAsTold() {
  int64_t last = -1;
  std::vector<torch::Tensor> gradients;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const int64_t preset, BroadcastPreset(-1));
    if (preset < 0) {
      return absl::OkStatus();
    }
    if (preset != last) {
      gradients = GradientsOf(kPresets[preset]);
      last = preset;
    }
    ETC_RETURN_IF_ERROR(group->Sum(gradients));
  }
}

// Starts the processes. `--help` and mistyped flags end here, before that.
absl::StatusOr<int> LaunchAll(int argc, char** argv) {
  std::vector<std::string> command(argv + 1, argv + argc);
  command.emplace_back("--benchmark_color=false");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  ETC_RETURN_IF_ERROR(
      Launch({.processes = kProcesses, .command = command, .name = argv[0]}));
  return 0;
}

// Returns the exit code.
absl::StatusOr<int> Run(int argc, char** argv) {
  ETC_ASSIGN_OR_RETURN(const ProcessPlace place,
                       FindProcessPlace(ProcessEnvironment()));
  if (place.world_size == 1) {
    return LaunchAll(argc, argv);
  }
  at::set_num_threads(1);
  ETC_ASSIGN_OR_RETURN(const auto joined,
                       ProcessGroup::Join(place, absl::Seconds(600)));
  group = joined.get();
  if (!group->is_first()) {
    ETC_RETURN_IF_ERROR(SumAsTold());
    return 0;
  }
  const int code = RunTensorBenchmarks(argc, argv, RegisterAll);
  ETC_RETURN_IF_ERROR(BroadcastPreset(-1).status());
  return code;
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  const absl::StatusOr<int> code = etc::Run(argc, argv);
  if (!code.ok()) {
    std::cerr << code.status().message() << "\n";
    return 1;
  }
  return *code;
}
