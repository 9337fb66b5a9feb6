// Dense attention within each example, as BERT has it: the fused kernels
// against LibTorch's operations, softmax(Q K^T / sqrt(d)) V.
//
//   Dense/<forward|training>/residual:<off|sum>/dropout:<0|10>/batch:B/
//     tokens:T/examples:E/threads:N
//
// 12 heads of 64 features; rows of T tokens, in E examples one behind the
// other. LibTorch's side works on whole batches, with Q, K and V as it likes
// them best, [batch, heads, tokens, d] contiguous; with several examples it
// adds a mask. With `sum` the layer is the second of a stack: it takes scores,
// adds its own and carries them on (the kernels in one buffer,
// ScoreStorage::kReverse). Dropout is in per cent.
//
// The two sides take turns, three in every iteration, so that other load on the
// machine meets both:
//
//   speedup      median of LibTorch's time / the kernels' time
//   cpu_speedup  the same of CPU time: with one thread what counts on a busy
//                machine (with several, threads that wait for one another
//                count)
//   kernel_ms, matmul_ms  medians

#include <benchmark/benchmark.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <string>
#include <vector>

#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"
#include "bench/machine.h"
#include "bench/paired_times.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

constexpr int64_t kHeads = 12;
constexpr int64_t kHeadDim = 64;

struct DenseCase {
  bool training = false;
  bool sum = false;
  double dropout = 0.0;
  int64_t batch = 1;
  int64_t tokens = 512;
  int64_t examples = 1;
};

std::vector<int32_t> ExampleIds(const DenseCase& c) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < c.tokens; ++i) {
    ids.push_back(static_cast<int32_t>(i * c.examples / c.tokens));
  }
  return ids;
}

// Query, key, value.
std::vector<torch::Tensor> Leaves(const DenseCase& c, bool by_token) {
  std::vector<torch::Tensor> leaves;
  for (int i = 0; i < 3; ++i) {
    // Layout of projections, or the one that matmul prefers.
    leaves.push_back((by_token
                          ? torch::randn({c.batch, c.tokens, kHeads, kHeadDim})
                                .transpose(1, 2)
                          : torch::randn({c.batch, kHeads, c.tokens, kHeadDim}))
                         .requires_grad_(c.training));
  }
  return leaves;
}

class KernelSide {
 public:
  explicit KernelSide(const DenseCase& c)
      : case_(c), leaves_(Leaves(c, /*by_token=*/true)) {
    const AttentionInputs attention(std::vector<AttentionPattern>(
        static_cast<size_t>(c.batch),
        PatternFromExampleIds({}, ExampleIds(c), {},
                              {.relative_pos_max_distance = 0})));
    input_.pattern =
        attention.Softmax(QuerySide::kGlobal, c.batch, 0, c.tokens, 84);
    const torch::Tensor none = torch::empty({c.batch, kHeads, 0, kHeadDim});
    input_.operands = {.query = leaves_[0],
                       .own_key = leaves_[1],
                       .own_value = leaves_[2],
                       .other_key = none,
                       .other_value = none};
    input_.dropout = c.dropout;
    if (c.sum) {
      input_.residual.mode = ResidualAttention::kSum;
      input_.residual.storage = ScoreStorage::kReverse;
      SparseAttentionInput first = input_;
      for (torch::Tensor* tensor :
           {&first.operands.query, &first.operands.own_key,
            &first.operands.own_value}) {
        *tensor = torch::randn_like(*tensor).requires_grad_(c.training);
      }
      first_ = SparseAttention(first, AttentionImplementation::kKernel);
      Carry(first_);
      if (c.training) {
        leaves_.push_back(first_.scores.own);
      }
      score_gradient_ = torch::ones_like(first_.scores.own);
    }
    context_gradient_ = torch::ones_like(input_.operands.query);
  }

  void Run() {
    const SparseAttentionOutput output =
        SparseAttention(input_, AttentionImplementation::kKernel);
    benchmark::DoNotOptimize(output.context.data_ptr());
    if (!case_.training) {
      if (case_.sum) {
        Carry(output);
      }
      return;
    }
    std::vector<torch::Tensor> roots = {output.context};
    std::vector<torch::Tensor> gradients = {context_gradient_};
    if (case_.sum) {
      roots.push_back(output.scores.own);
      gradients.push_back(score_gradient_);
    }
    const std::vector<torch::Tensor> found =
        torch::autograd::grad(roots, leaves_, gradients);
    if (case_.sum) {
      score_gradient_ = found.back();
    }
  }

 private:
  void Carry(const SparseAttentionOutput& output) {
    input_.previous = output.scores;
  }

  const DenseCase case_;
  std::vector<torch::Tensor> leaves_;
  SparseAttentionInput input_;
  SparseAttentionOutput first_;
  torch::Tensor context_gradient_, score_gradient_;
};

class MatmulSide {
 public:
  explicit MatmulSide(const DenseCase& c)
      : case_(c), leaves_(Leaves(c, /*by_token=*/false)) {
    if (c.sum) {
      previous_ = torch::randn({c.batch, kHeads, c.tokens, c.tokens})
                      .requires_grad_(c.training);
      leaves_.push_back(previous_);
      score_gradient_ = torch::ones_like(previous_);
    }
    if (c.examples > 1) {
      const torch::Tensor ids = torch::tensor(ExampleIds(c));
      mask_ = torch::zeros({c.tokens, c.tokens})
                  .masked_fill(ids.unsqueeze(0).ne(ids.unsqueeze(1)), -1e4);
    }
    context_gradient_ = torch::ones_like(leaves_[0]);
  }

  void Run() {
    const double scale = 1.0 / std::sqrt(static_cast<double>(kHeadDim));
    torch::Tensor scores =  // [batch, heads, tokens, tokens]
        torch::matmul(leaves_[0] * scale, leaves_[1].transpose(-2, -1));
    if (case_.sum) {
      scores = scores + previous_;
    }
    const torch::Tensor masked = mask_.defined() ? scores + mask_ : scores;
    torch::Tensor weights = torch::softmax(masked, -1);
    if (case_.dropout > 0.0) {
      weights = torch::dropout(weights, case_.dropout, /*train=*/true);
    }
    const torch::Tensor context = torch::matmul(weights, leaves_[2]);
    benchmark::DoNotOptimize(context.data_ptr());
    if (!case_.training) {
      return;
    }
    std::vector<torch::Tensor> roots = {context};
    std::vector<torch::Tensor> gradients = {context_gradient_};
    if (case_.sum) {
      roots.push_back(scores);
      gradients.push_back(score_gradient_);
    }
    benchmark::DoNotOptimize(torch::autograd::grad(roots, leaves_, gradients));
  }

 private:
  const DenseCase case_;
  std::vector<torch::Tensor> leaves_;
  torch::Tensor previous_, mask_;
  torch::Tensor context_gradient_, score_gradient_;
};

void Dense(benchmark::State& state, DenseCase c) {
  c.batch = state.range(0);
  c.tokens = state.range(1);
  c.examples = state.range(2);
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(c.training);
  KernelSide kernel(c);
  MatmulSide matmul(c);
  const auto [kernel_times, matmul_times] =
      MeasureByTurns(state, kernel, matmul);
  state.counters["speedup"] = MedianRatio(matmul_times.wall, kernel_times.wall);
  state.counters["cpu_speedup"] =
      MedianRatio(matmul_times.cpu, kernel_times.cpu);
  state.counters["kernel_ms"] = 1e3 * Median(kernel_times.wall);
  state.counters["matmul_ms"] = 1e3 * Median(matmul_times.wall);
}

void RegisterAll() {
  for (const bool training : {false, true}) {
    for (const bool sum : {false, true}) {
      for (const int dropout : {0, 10}) {
        if (dropout > 0 && !training) {
          continue;
        }
        const DenseCase c = {
            .training = training, .sum = sum, .dropout = dropout / 100.0};
        auto* family = AddBenchmark(
            std::string("Dense/") + (training ? "training" : "forward") +
                "/residual:" + (sum ? "sum" : "off") +
                "/dropout:" + std::to_string(dropout),
            [=](benchmark::State& state) { Dense(state, c); });
        family->ArgNames({"batch", "tokens", "examples", "threads"})
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
        for (const int64_t threads : {1, 2}) {
          for (const int64_t batch : {1, 8}) {
            family->Args({batch, 512, 1, threads});
          }
          family->Args({8, 128, 1, threads});
          family->Args({8, 512, 8, threads});
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
