// Sparse attention on a CUDA device, both sides of a layer: twelve layers of
// base heads (12 of 64 features), each carrying scores to the next.
//
//   CudaAttention/<kernel|blocked>/<forward|training>/residual:<off|sum>/
//     <fp32|bf16>/long:L/global:G
//
// Radius and relative distance are those of the base model, the pattern has no
// borders, there is no dropout. Scores are in one buffer (ScoreStorage::
// kReverse). Times are of one layer, the mean over the twelve, and include what
// LibTorch does for the operations; the device has ended its work.
//
//   of_copies   share of this device's rate of copies (bench/device.h), that is
//               reached by reading and writing each carried score once in the
//               forward pass, and each score and its gradient once in the
//               backward pass: 8 and 16 bytes of each
//   of_matmul   share of its rate of products in bfloat16 that is reached by 4
//   d
//               operations for each score, 14 d in training
//   peak_bytes  of all twelve layers, beside their inputs

#include <benchmark/benchmark.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"
#include "base/device_time.h"
#include "bench/device.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

constexpr int64_t kLayers = 12;
constexpr int64_t kHeads = 12;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kRadius = 84;
constexpr int64_t kMaxDistance = 12;

const torch::Device kDevice(torch::kCUDA, 0);

struct Variant {
  AttentionImplementation implementation = AttentionImplementation::kKernel;
  bool training = false;
  bool sum = false;
  bool bf16 = false;
};

// Both sides of all layers, each over operands of its own.
class Stack {
 public:
  Stack(const Variant& variant, int64_t longs, int64_t globals)
      : variant_(variant),
        attention_(std::vector{
            UnrestrictedPattern(longs, globals, kRadius, kMaxDistance)}) {
    for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
      std::vector<SparseAttentionInput>& layers = sides_.emplace_back();
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        layers.push_back(MakeInput(side, longs, globals));
      }
    }
  }

  void Run() {
    for (const std::vector<SparseAttentionInput>& layers : sides_) {
      RunSide(layers);
    }
  }

 private:
  torch::Tensor Rows(int64_t length) const {
    return torch::randn({1, length, kHeads, kHeadDim},
                        torch::TensorOptions().device(kDevice).dtype(
                            variant_.bf16 ? torch::kBFloat16 : torch::kFloat32))
        .transpose(1, 2)
        .requires_grad_(variant_.training);
  }

  SparseAttentionInput MakeInput(QuerySide side, int64_t longs,
                                 int64_t globals) const {
    const int64_t own = side == QuerySide::kLong ? longs : globals;
    const int64_t other = side == QuerySide::kLong ? globals : longs;
    const torch::TensorOptions floats =
        torch::TensorOptions().device(kDevice).dtype(torch::kFloat32);
    SparseAttentionInput input;
    input.operands = {
        .query = Rows(own),
        .own_key = Rows(own),
        .own_value = Rows(own),
        .other_key = Rows(other),
        .other_value = Rows(other),
        .relative = {.embedding = torch::randn({32, kHeads, kHeadDim}, floats)
                                      .requires_grad_(variant_.training),
                     .bias = torch::randn({32, kHeads}, floats)
                                 .requires_grad_(variant_.training)}};
    input.pattern = attention_.Softmax(side, 1, longs, globals, kRadius);
    if (variant_.sum) {
      input.residual.mode = ResidualAttention::kSum;
      input.residual.storage = ScoreStorage::kReverse;
    }
    return input;
  }

  void RunSide(const std::vector<SparseAttentionInput>& layers) {
    std::vector<torch::Tensor> contexts, leaves;
    ResidualPair scores;
    for (SparseAttentionInput input : layers) {
      input.operands.ForEachTensor(
          [&](const torch::Tensor& tensor) { leaves.push_back(tensor); });
      input.previous = scores;
      const SparseAttentionOutput output =
          SparseAttention(input, variant_.implementation);
      contexts.push_back(output.context);
      scores = output.scores;
    }
    if (!variant_.training) {
      return;
    }
    // Any numbers but zeros.
    const std::vector<torch::Tensor> gradients(contexts.size(),
                                               contexts.front().detach());
    benchmark::DoNotOptimize(
        torch::autograd::grad(contexts, leaves, gradients));
  }

  const Variant variant_;
  const AttentionInputs attention_;
  std::vector<std::vector<SparseAttentionInput>> sides_;
};

// Pairs that see each other, of both sides.
double Scores(int64_t longs, int64_t globals) {
  double scores =
      static_cast<double>(globals) * static_cast<double>(2 * longs + globals);
  for (int64_t i = 0; i < longs; ++i) {
    scores += static_cast<double>(std::min(longs - 1, i + kRadius) -
                                  std::max<int64_t>(0, i - kRadius) + 1);
  }
  return scores * static_cast<double>(kHeads);
}

// One iteration, whose time is a median.
void RunAttention(benchmark::State& state, const Variant& variant) {
  constexpr int64_t kRuns = 7;
  const int64_t longs = state.range(0);
  const int64_t globals = state.range(1);
  const DeviceCeilings& ceilings = CeilingsOf(kDevice);
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(variant.training);
  Stack stack(variant, longs, globals);
  stack.Run();
  const DevicePeakMemory memory(kDevice);
  stack.Run();
  const std::optional<int64_t> peak = memory.Bytes();
  double seconds = 0.0;
  for (auto _ : state) {
    seconds = MedianSecondsOn(kDevice, kRuns, [&] { stack.Run(); }) /
              static_cast<double>(kLayers);
    state.SetIterationTime(seconds);
  }
  const double scores = Scores(longs, globals);
  if (variant.sum) {
    state.counters["of_copies"] =
        scores * (variant.training ? 24.0 : 8.0) / seconds / ceilings.copies;
  }
  state.counters["of_matmul"] = scores * kHeadDim *
                                (variant.training ? 14.0 : 4.0) / seconds /
                                ceilings.bfloat16_products;
  if (peak.has_value()) {
    state.counters["peak_bytes"] = static_cast<double>(*peak);
  }
}

void Register(const char* name, const Variant& variant) {
  auto* family = AddBenchmark(
      std::string("CudaAttention/") + name + "/" +
          (variant.training ? "training" : "forward") +
          "/residual:" + (variant.sum ? "sum" : "off") + "/" +
          (variant.bf16 ? "bf16" : "fp32"),
      [=](benchmark::State& state) { RunAttention(state, variant); });
  family->ArgNames({"long", "global"})
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMicrosecond)
      ->Args({4096, 256})
      ->Args({16384, 256});
}

void RegisterAll() {
  if (!torch::cuda::is_available()) {
    return;
  }
  for (const bool bf16 : {true, false}) {
    for (const bool training : {false, true}) {
      for (const bool sum : {true, false}) {
        Register("kernel", {.implementation = AttentionImplementation::kKernel,
                            .training = training,
                            .sum = sum,
                            .bf16 = bf16});
        Register("blocked",
                 {.implementation = AttentionImplementation::kBlocked,
                  .training = training,
                  .sum = sum,
                  .bf16 = bf16});
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, &etc::RegisterAll);
}
