// One layer's sparse attention, long and global side, by each implementation.
//
//   Attention/<reference|blocked|kernel>/<forward|training>/residual:<off|sum>/
//     long:L/global:G/radius:r/threads:T
//
// Heads are those of the base model, 12 of 64 features; the pattern has no
// borders. `of_gemm` is the share of this process's own sgemm rate that the
// useful work reaches: 4 d FLOP for each score that is not masked, 3.5 times
// that in training (the backward pass counts 2.5 times).

#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"

namespace etc {
namespace {

constexpr int64_t kHeads = 12;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kMaxDistance = 12;

// FLOP per second of a 1024 x 1024 x 1024 product at the current number of
// threads; the best of a few.
double GemmRate() {
  constexpr int64_t kSize = 1024;
  const torch::Tensor a = torch::randn({kSize, kSize});
  const torch::Tensor b = torch::randn({kSize, kSize});
  torch::Tensor c = torch::empty({kSize, kSize});
  double best = 0.0;
  for (int i = 0; i < 8; ++i) {
    const auto start = std::chrono::steady_clock::now();
    torch::mm_out(c, a, b);
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds.count());
  }
  return best;
}

// Scores that count: windows cut at the ends, and all pairs with a global.
double UsefulScores(int64_t longs, int64_t globals, int64_t radius) {
  double scores =
      static_cast<double>(globals) * static_cast<double>(2 * longs + globals);
  for (int64_t i = 0; i < longs; ++i) {
    scores += static_cast<double>(std::min(longs - 1, i + radius) -
                                  std::max<int64_t>(0, i - radius) + 1);
  }
  return scores * static_cast<double>(kHeads);
}

std::vector<SparseAttentionInput> MakeInputs(int64_t longs, int64_t globals,
                                             int64_t radius, bool sum,
                                             const AttentionInputs* attention) {
  std::vector<SparseAttentionInput> inputs;
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    const int64_t own = side == QuerySide::kLong ? longs : globals;
    const int64_t other = side == QuerySide::kLong ? globals : longs;
    const int64_t own_keys = side == QuerySide::kLong ? 2 * radius + 1 : own;
    const auto leaf = [](std::vector<int64_t> shape) {
      return torch::randn(shape).requires_grad_(true);
    };
    SparseAttentionInput input;
    input.side = side;
    input.query = leaf({1, kHeads, own, kHeadDim});
    input.own_key = leaf({1, kHeads, own, kHeadDim});
    input.own_value = leaf({1, kHeads, own, kHeadDim});
    input.other_key = leaf({1, kHeads, other, kHeadDim});
    input.other_value = leaf({1, kHeads, other, kHeadDim});
    input.relative = {.embedding = leaf({32, kHeads, kHeadDim}),
                      .bias = leaf({32, kHeads})};
    input.attention = attention;
    input.local_radius = radius;
    if (sum) {
      input.residual = ResidualAttention::kSum;
      input.layer = 1;
      input.own_previous = leaf({1, kHeads, own, own_keys});
      input.other_previous = leaf({1, kHeads, own, other});
    }
    inputs.push_back(input);
  }
  return inputs;
}

std::vector<torch::Tensor> Leaves(const SparseAttentionInput& input) {
  std::vector<torch::Tensor> leaves = {
      input.query,        input.own_key,     input.own_value,
      input.other_key,    input.other_value, input.relative.embedding,
      input.relative.bias};
  if (input.own_previous.defined()) {
    leaves.insert(leaves.end(), {input.own_previous, input.other_previous});
  }
  return leaves;
}

void Attention(benchmark::State& state, AttentionImplementation implementation,
               bool training, bool sum) {
  const int64_t longs = state.range(0);
  const int64_t globals = state.range(1);
  const int64_t radius = state.range(2);
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  const AttentionInputs attention(
      std::vector{UnrestrictedPattern(longs, globals, radius, kMaxDistance)});
  const std::vector<SparseAttentionInput> inputs =
      MakeInputs(longs, globals, radius, sum, &attention);
  const double gemm_rate = GemmRate();

  const torch::AutoGradMode gradients(training);
  for (auto _ : state) {
    for (const SparseAttentionInput& input : inputs) {
      const SparseAttentionOutput output =
          SparseAttention(input, implementation);
      benchmark::DoNotOptimize(output.context.data_ptr());
      if (!training) {
        continue;
      }
      std::vector<torch::Tensor> roots = {output.context};
      if (sum) {
        roots.insert(roots.end(), {output.own_scores, output.other_scores});
      }
      state.PauseTiming();
      std::vector<torch::Tensor> root_gradients;
      for (const torch::Tensor& root : roots) {
        root_gradients.push_back(torch::ones_like(root));
      }
      state.ResumeTiming();
      // Not backward(), which would add to the leaves' gradients too.
      benchmark::DoNotOptimize(
          torch::autograd::grad(roots, Leaves(input), root_gradients));
    }
  }
  const double flop = UsefulScores(longs, globals, radius) * 4.0 * kHeadDim *
                      (training ? 3.5 : 1.0);
  state.counters["of_gemm"] = benchmark::Counter(
      flop / gemm_rate, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(longs),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  struct Implementation {
    const char* name;
    AttentionImplementation value;
    int64_t max_length;  // beyond, the dense scores would fill the memory
  };
  for (const Implementation& implementation :
       {Implementation{"reference", AttentionImplementation::kReference, 2048},
        Implementation{"blocked", AttentionImplementation::kBlocked, 16384},
        Implementation{"kernel", AttentionImplementation::kKernel, 65536}}) {
    for (const bool training : {false, true}) {
      for (const bool sum : {false, true}) {
        auto* family = benchmark::RegisterBenchmark(
            (std::string("Attention/") + implementation.name + "/" +
             (training ? "training" : "forward") +
             "/residual:" + (sum ? "sum" : "off"))
                .c_str(),
            [=](benchmark::State& state) {
              Attention(state, implementation.value, training, sum);
            });
        family->ArgNames({"long", "global", "radius", "threads"})
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
        for (const int64_t longs :
             {128, 256, 512, 1024, 2048, 4096, 16384, 65536}) {
          if (longs <= implementation.max_length) {
            for (const int64_t threads : {1, 2}) {
              family->Args({longs, longs <= 512 ? 64 : 256, 84, threads});
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  etc::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
