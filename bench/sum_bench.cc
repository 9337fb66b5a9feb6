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
#include "bench/machine.h"
#include "etc/config.h"
#include "etc/model_size.h"
#include "tasks/distributed/launcher.h"
#include "tasks/distributed/process_group.h"

namespace etc {
namespace {

constexpr int64_t kProcesses = 2;

ProcessGroup* group = nullptr;

void Check(const absl::Status& status) {
  TORCH_CHECK(status.ok(), std::string(status.message()));
}

// Makes the gradients of a model, in tensors of some 4 MB.
std::vector<torch::Tensor> GradientsOf(const std::string& preset) {
  constexpr int64_t kElements = int64_t{1} << 20;
  const absl::StatusOr<EtcConfig> config = EtcConfigPreset(preset);
  Check(config.status());
  int64_t left = CountParameters(*config).total();
  std::vector<torch::Tensor> gradients;
  for (; left > 0; left -= kElements) {
    gradients.push_back(torch::zeros({std::min(left, kElements)}));
  }
  return gradients;
}

void SumOnce(const std::vector<torch::Tensor>& gradients) {
  Check(group->Sum(gradients));
}

// Broadcasts the preset to sum: an index of kPresets, or -1 to end.
constexpr const char* kPresets[] = {"base", "large"};
int64_t BroadcastPreset(int64_t preset) {
  const torch::Tensor which = torch::full({1}, preset, torch::kInt64);
  Check(group->Broadcast({which}));
  return which.item<int64_t>();
}

void RunSums(benchmark::State& state, int64_t preset) {
  const std::vector<torch::Tensor> gradients = GradientsOf(kPresets[preset]);
  double bytes = 0;
  for (const torch::Tensor& gradient : gradients) {
    bytes += static_cast<double>(gradient.nbytes());
  }
  for (auto _ : state) {
    BroadcastPreset(preset);
    SumOnce(gradients);
  }
  constexpr double kRing = 2.0 * (kProcesses - 1) / kProcesses;
  state.counters["bytes"] = bytes;
  state.counters["bytes_sent"] = kRing * bytes;
  state.counters["sent_per_second"] = benchmark::Counter(
      kRing * bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  for (int64_t preset = 0; preset < 2; ++preset) {
    benchmark::RegisterBenchmark(
        (std::string("GradientSum/") + kPresets[preset] + "/processes:2")
            .c_str(),
        [=](benchmark::State& state) { RunSums(state, preset); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void SumAsTold() {
  int64_t last = -1;
  std::vector<torch::Tensor> gradients;
  for (int64_t preset = BroadcastPreset(-1); preset >= 0;
       preset = BroadcastPreset(-1)) {
    if (preset != last) {
      gradients = GradientsOf(kPresets[preset]);
      last = preset;
    }
    SumOnce(gradients);
  }
}

int Main(int argc, char** argv) {
  const absl::StatusOr<ProcessPlace> place =
      FindProcessPlace(ProcessEnvironment());
  Check(place.status());
  if (place->world_size == 1) {
    std::vector<std::string> command(argv + 1, argv + argc);
    command.emplace_back("--benchmark_color=false");
    const absl::Status ended =
        Launch({.processes = kProcesses, .command = command, .name = argv[0]});
    if (!ended.ok()) {
      std::cerr << ended.message() << "\n";
    }
    return ended.ok() ? 0 : 1;
  }
  at::set_num_threads(1);
  auto joined = ProcessGroup::Join(*place, absl::Seconds(600));
  Check(joined.status());
  group = joined->get();
  if (!group->is_first()) {
    SumAsTold();
    return 0;
  }
  const int code = RunTensorBenchmarks(argc, argv, RegisterAll);
  BroadcastPreset(-1);
  return code;
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) { return etc::Main(argc, argv); }
