// One layer's sparse attention, long and global side, by each implementation;
// and dense attention over as many tokens, as LibTorch has it.
//
//   Attention/<reference|blocked|kernel|dense>/<forward|training>/
//     residual:<off|sum>/<fp32|bf16>/long:L/global:G/radius:r/threads:T
//
// Heads are those of the base model, 12 of 64 features; the pattern has no
// borders. With `sum` the layer is the second of a stack, so that it takes
// scores and carries them on: the kernel in one buffer
// (ScoreStorage::kReverse), the others in tensors. `dense` is softmax(Q K^T /
// sqrt(d)) V over L + G tokens without relative positions, one head at a time,
// as whole batches of heads would not fit into memory. bf16: factors of
// products are rounded; scores are float32.
//
// The process keeps the memory it frees, as realetc does, unless the
// environment has ETC_GIVE_MEMORY_BACK: then it goes back to the system, as in
// any program that leaves malloc as it is, and names have "/given_back" behind
// fp32 or bf16.
//
//   of_gemm            share of this process's sgemm rate, at the same number
//                      of threads, that the useful work reaches: 4 d FLOP for
//                      each score that is not masked (of sparse attention, for
//                      dense too), 3.5 times that in training
//   tokens_per_second  long tokens
//   peak_bytes         beside inputs and their gradients; the scores that are
//                      carried in and their gradients count

#include <benchmark/benchmark.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"
#include "base/process_memory.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

constexpr int64_t kHeads = 12;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kMaxDistance = 12;

struct Variant {
  AttentionImplementation implementation = AttentionImplementation::kKernel;
  bool dense = false;
  bool training = false;
  bool sum = false;
  bool bf16 = false;
};

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

torch::Tensor Leaf(std::vector<int64_t> shape, bool bf16 = false) {
  return torch::randn(shape)
      .to(bf16 ? torch::kBFloat16 : torch::kFloat32)
      .requires_grad_(true);
}

SparseAttentionInput MakeInput(const Variant& variant, QuerySide side,
                               int64_t longs, int64_t globals, int64_t radius,
                               const AttentionInputs& attention) {
  const int64_t own = side == QuerySide::kLong ? longs : globals;
  const int64_t other = side == QuerySide::kLong ? globals : longs;
  const auto tokens = [&](int64_t length) {
    return Leaf({1, kHeads, length, kHeadDim});
  };
  SparseAttentionInput input;
  input.operands = {.query = tokens(own),
                    .own_key = tokens(own),
                    .own_value = tokens(own),
                    .other_key = tokens(other),
                    .other_value = tokens(other),
                    .relative = {.embedding = Leaf({32, kHeads, kHeadDim}),
                                 .bias = Leaf({32, kHeads})}};
  input.pattern = attention.Softmax(side, 1, longs, globals, radius);
  input.precision =
      variant.bf16 ? LinearPrecision::kBfloat16 : LinearPrecision::kFloat32;
  if (variant.sum) {
    input.residual.mode = ResidualAttention::kSum;
    input.residual.storage = ScoreStorage::kReverse;
  }
  return input;
}

// One side of a layer, again and again.
class Layer {
 public:
  Layer(const Variant& variant, QuerySide side, int64_t longs, int64_t globals,
        int64_t radius, const AttentionInputs& attention)
      : variant_(variant),
        input_(MakeInput(variant, side, longs, globals, radius, attention)) {
    input_.operands.ForEachTensor(
        [&](const torch::Tensor& tensor) { leaves_.push_back(tensor); });
    if (variant.sum) {
      const torch::AutoGradMode gradients(variant.training);
      // A layer of other tensors, which get no gradient.
      first_ = SparseAttention(
          MakeInput(variant, side, longs, globals, radius, attention),
          variant.implementation);
      Carry(first_);
      score_bytes_ = static_cast<double>(first_.scores.own->nbytes() +
                                         first_.scores.other->nbytes());
      if (variant.training) {
        leaves_.insert(leaves_.end(), {first_.scores.own, first_.scores.other});
      }
    }
    context_gradient_ = torch::ones_like(input_.operands.query);
  }

  // Bytes of the scores that it takes, which are there before it runs.
  double score_bytes() const { return score_bytes_; }

  // A training step leaves the buffer as it was; a forward pass adds to it, and
  // the next one goes on from there. The first step is that of a last layer,
  // whose scores have no gradients; the next one takes those that it leaves.
  void Run() {
    const SparseAttentionOutput output =
        SparseAttention(input_, variant_.implementation);
    benchmark::DoNotOptimize(output.context.data_ptr());
    if (!variant_.training) {
      if (variant_.sum) {
        Carry(output);
      }
      return;
    }
    std::vector<torch::Tensor> roots = {output.context};
    std::vector<torch::Tensor> gradients = {context_gradient_};
    if (!score_gradients_.empty()) {
      roots.insert(roots.end(), {output.scores.own, output.scores.other});
      gradients.insert(gradients.end(), score_gradients_.begin(),
                       score_gradients_.end());
    }
    // Not backward(), which would add to the leaves' gradients too.
    const std::vector<torch::Tensor> found =
        torch::autograd::grad(roots, leaves_, gradients);
    benchmark::DoNotOptimize(found[0].data_ptr());
    if (variant_.sum) {
      // The gradients that the layer below would get.
      score_gradients_ = {found[found.size() - 2], found.back()};
    }
  }

 private:
  void Carry(const SparseAttentionOutput& output) {
    input_.previous = output.scores;
  }

  const Variant variant_;
  SparseAttentionInput input_;
  SparseAttentionOutput first_;
  double score_bytes_ = 0.0;
  std::vector<torch::Tensor> leaves_;
  torch::Tensor context_gradient_;
  std::vector<torch::Tensor> score_gradients_;
};

// Dense attention of one head after the other.
class DenseHeads {
 public:
  DenseHeads(const Variant& variant, int64_t tokens) : variant_(variant) {
    for (int i = 0; i < 3; ++i) {
      qkv_.push_back(Leaf({tokens, kHeadDim}, variant.bf16));
    }
  }

  void Run() {
    for (int64_t head = 0; head < kHeads; ++head) {
      const torch::Tensor scores =
          torch::mm(qkv_[0], qkv_[1].t()) *
          (1.0 / std::sqrt(static_cast<double>(kHeadDim)));
      const torch::Tensor context =
          torch::mm(torch::softmax(scores, -1), qkv_[2]);
      benchmark::DoNotOptimize(context.data_ptr());
      if (variant_.training) {
        benchmark::DoNotOptimize(torch::autograd::grad(
            {context}, qkv_, {torch::ones_like(context)}));
      }
    }
  }

 private:
  const Variant variant_;
  std::vector<torch::Tensor> qkv_;
};

void Attention(benchmark::State& state, const Variant& variant) {
  const int64_t longs = state.range(0);
  const int64_t globals = state.range(1);
  const int64_t radius = state.range(2);
  at::set_num_threads(static_cast<int>(state.range(3)));
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(variant.training);
  const AttentionInputs attention(
      std::vector{UnrestrictedPattern(longs, globals, radius, kMaxDistance)});
  double peak = 0.0;
  double seconds = 0.0;
  double gemm_rate = 0.0;
  const auto run = [&](const auto& function) {
    const PeakMemory memory;
    function();
    if (variant.training && variant.sum) {
      function();  // with gradients of scores
    }
    peak = memory.Bytes();
    const GemmRate rate;
    seconds = MeanSeconds(state, function);
    gemm_rate = rate.Around();
  };
  if (variant.dense) {
    DenseHeads heads(variant, longs + globals);
    run([&] { heads.Run(); });
  } else {
    Layer long_side(variant, QuerySide::kLong, longs, globals, radius,
                    attention);
    Layer global_side(variant, QuerySide::kGlobal, longs, globals, radius,
                      attention);
    run([&] {
      long_side.Run();
      global_side.Run();
    });
    peak += long_side.score_bytes() + global_side.score_bytes();
  }
  const double flop = UsefulScores(longs, globals, radius) * 4.0 * kHeadDim *
                      (variant.training ? 3.5 : 1.0);
  state.counters["of_gemm"] = flop / seconds / gemm_rate;
  state.counters["tokens_per_second"] =
      benchmark::Counter(static_cast<double>(longs),
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_bytes"] = peak;
}

bool GivesMemoryBack() {
  return std::getenv("ETC_GIVE_MEMORY_BACK") != nullptr;
}

struct Implementation {
  const char* name;
  Variant variant;
  int64_t max_length;  // beyond, it would fill the memory or the day
};

void Register(const Implementation& implementation, const Variant& variant) {
  auto* family =
      AddBenchmark(std::string("Attention/") + implementation.name + "/" +
                       (variant.training ? "training" : "forward") +
                       "/residual:" + (variant.sum ? "sum" : "off") + "/" +
                       (variant.bf16 ? "bf16" : "fp32") +
                       (GivesMemoryBack() ? "/given_back" : ""),
                   [=](benchmark::State& state) { Attention(state, variant); });
  family->ArgNames({"long", "global", "radius", "threads"})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  const auto add = [&](int64_t longs, int64_t globals, int64_t radius) {
    if (longs <= implementation.max_length) {
      for (const int64_t threads : {1, 2}) {
        family->Args({longs, globals, radius, threads});
      }
    }
  };
  for (const int64_t longs :
       {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
    add(longs, longs <= 512 ? 64 : 256, 84);
  }
  add(4096, 64, 84);
  add(4096, 1024, 84);
  add(4096, 256, 169);
}

void RegisterAll() {
  for (const Implementation& implementation :
       {Implementation{"reference",
                       {.implementation = AttentionImplementation::kReference},
                       2048},
        Implementation{"blocked",
                       {.implementation = AttentionImplementation::kBlocked},
                       16384},
        Implementation{"kernel",
                       {.implementation = AttentionImplementation::kKernel},
                       65536},
        Implementation{"dense", {.dense = true}, 16384}}) {
    for (const bool training : {false, true}) {
      for (const bool sum : {false, true}) {
        for (const bool bf16 : {false, true}) {
          Variant variant = implementation.variant;
          variant.training = training;
          variant.sum = sum;
          variant.bf16 = bf16;
          const bool is_tensors =
              variant.implementation != AttentionImplementation::kKernel;
          if ((variant.dense && sum) || (is_tensors && bf16)) {
            continue;
          }
          Register(implementation, variant);
        }
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  if (!etc::GivesMemoryBack()) {
    etc::KeepFreedMemory();
  }
  etc::AddMachineContext();
  etc::RegisterAll();
  return etc::RunBenchmarks(argc, argv);
}
