#include "bench/machine.h"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "base/device_time.h"
#include "base/machine_description.h"
#include "base/process_memory.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

// A field of /proc/self/status, which counts in KiB.
double StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) {
      double kibibytes = 0.0;
      std::istringstream(line.substr(field.size())) >> kibibytes;
      return 1024.0 * kibibytes;
    }
  }
  return 0.0;
}

double MedianGemmRate() {
  constexpr int64_t kSize = 1024;
  constexpr int64_t kProducts = 25;
  const torch::NoGradGuard no_grad;
  const torch::Tensor a = torch::randn({kSize, kSize});
  const torch::Tensor b = torch::randn({kSize, kSize});
  torch::Tensor c = torch::empty({kSize, kSize});
  const auto multiply = [&] { torch::mm_out(c, a, b); };
  multiply();
  return 2.0 * kSize * kSize * kSize /
         MedianSecondsOn(torch::kCPU, kProducts, multiply);
}

}  // namespace

void AddMachineContext() {
  for (const MachineFact& fact : DescribeMachine()) {
    benchmark::AddCustomContext(fact.name, fact.value);
    if (absl::StrContains(fact.value, kComputesWithoutAvx)) {
      std::cerr << "warning: shares of sgemm and ratios to dense attention "
                   "mean nothing here: "
                << fact.value << "\n";
    }
  }
}

int RunTensorBenchmarks(int argc, char** argv, void (*register_all)()) {
  KeepFreedMemory();
  AddMachineContext();
  register_all();
  return RunBenchmarks(argc, argv);
}

GemmRate::GemmRate() : before_(MedianGemmRate()) {}

double GemmRate::Around() const { return 0.5 * (before_ + MedianGemmRate()); }

PeakMemory::PeakMemory() {
  malloc_trim(0);
  // Makes the present size the largest so far.
  std::ofstream("/proc/self/clear_refs") << "5";
  before_ = StatusBytes("VmRSS:");
}

double PeakMemory::Bytes() const {
  return std::max(0.0, ProcessBytes() - before_);
}

double PeakMemory::ProcessBytes() const { return StatusBytes("VmHWM:"); }

}  // namespace etc
