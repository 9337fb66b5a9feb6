// Attention in which not everything is visible, by the fused kernels: causal,
// windowed, padded, packed and by any mask, against an unrestricted pattern of
// the same number of visible pairs.
//
//   Restricted/<case>/<forward|training>/residual:<off|sum>/tokens:T/threads:N
//
//   causal      T queries see the keys up to their own;
//               unrestricted: T / 2 keys
//   window      T queries see 129 keys up to their own;
//               unrestricted: ETC's window of radius 64, without global tokens
//   padded      T keys, a quarter of them padding in front of the first token;
//               unrestricted: as many keys as are left
//   holes       the same, and one of 64 keys a hole
//   prefix      T queries see the first T / 4 keys and those up to their own,
//               by a mask; unrestricted: as many keys as are seen on average
//   packed      T tokens of 8 documents;
//               unrestricted: 8 examples of T / 8
//   rows        each query sees the keys of one of 8 masks, in runs of 16 to 64
//               keys; unrestricted: as many keys as one sees
//   most_runs   4 of every 8 keys, the most runs of a mask that goes to the
//               kernels (MostRuns), against the blocked backend
//   etc_causal  ETC, 64 global tokens as a prefix, radius 84, to the past
//               alone; unrestricted: radius 42
//   etc_padded  ETC, radius 84, a quarter of T long tokens is padding in front;
//               unrestricted: T less those
//   etc_holes   the same, and one of 64 tokens a hole
//
// 12 heads of 64 features. With `sum` a layer takes the scores of the one
// below, adds its own and carries them on, in one buffer
// (ScoreStorage::kReverse). The two sides take turns, three in every iteration,
// so that other load on the machine meets both:
//
//   time_ratio  median of restricted time / unrestricted time, for a visible
//               pair
//   cpu_ratio   the same of CPU time
//   restricted_ms, unrestricted_ms  medians
//   pairs       visible pairs of the restricted side / of the other

#include <benchmark/benchmark.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern_builders.h"
#include "attention/sparse_attention.h"
#include "bench/machine.h"
#include "bench/paired_times.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

constexpr int64_t kHeads = 12;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kGlobals = 64;
constexpr int64_t kRadius = 84;
constexpr int64_t kWindowKeys = 129;

struct Mode {
  bool training = false;
  bool sum = false;
};

torch::Tensor Tokens(const SoftmaxPattern& pattern, int64_t length,
                     bool training) {
  return torch::randn({pattern.batch, length, kHeads, kHeadDim})
      .transpose(1, 2)
      .requires_grad_(training);
}

SparseAttentionInput MakeInput(const SoftmaxPattern& pattern,
                               const Mode& mode) {
  SparseAttentionInput input;
  input.operands = {
      .query = Tokens(pattern, pattern.queries, mode.training),
      .own_key = Tokens(pattern, pattern.own_keys, mode.training),
      .own_value = Tokens(pattern, pattern.own_keys, mode.training),
      .other_key = Tokens(pattern, pattern.other_keys, mode.training),
      .other_value = Tokens(pattern, pattern.other_keys, mode.training)};
  input.pattern = pattern;
  if (mode.sum) {
    input.residual.mode = ResidualAttention::kSum;
    input.residual.storage = ScoreStorage::kReverse;
  }
  return input;
}

// One layer, again and again.
class Side {
 public:
  Side(const SoftmaxPattern& pattern, const Mode& mode,
       AttentionImplementation implementation)
      : mode_(mode),
        implementation_(implementation),
        input_(MakeInput(pattern, mode)) {
    input_.operands.ForEachTensor([&](const torch::Tensor& tensor) {
      if (tensor.defined()) {
        leaves_.push_back(tensor);
      }
    });
    if (mode.sum) {
      first_ = SparseAttention(MakeInput(pattern, mode), implementation_);
      Carry(first_);
      score_gradients_ = {torch::ones_like(first_.scores.own),
                          torch::ones_like(first_.scores.other)};
      if (mode.training) {
        leaves_.insert(leaves_.end(), {first_.scores.own, first_.scores.other});
      }
    }
    context_gradient_ = torch::ones_like(input_.operands.query);
  }

  void Run() {
    const SparseAttentionOutput output =
        SparseAttention(input_, implementation_);
    benchmark::DoNotOptimize(output.context.data_ptr());
    if (!mode_.training) {
      if (mode_.sum) {
        Carry(output);
      }
      return;
    }
    std::vector<torch::Tensor> roots = {output.context};
    std::vector<torch::Tensor> gradients = {context_gradient_};
    if (mode_.sum) {
      roots.insert(roots.end(), {output.scores.own, output.scores.other});
      gradients.insert(gradients.end(), score_gradients_.begin(),
                       score_gradients_.end());
    }
    const std::vector<torch::Tensor> found =
        torch::autograd::grad(roots, leaves_, gradients);
    benchmark::DoNotOptimize(found[0].data_ptr());
    if (mode_.sum) {
      score_gradients_ = {found[found.size() - 2], found.back()};
    }
  }

 private:
  void Carry(const SparseAttentionOutput& output) {
    input_.previous = output.scores;
  }

  const Mode mode_;
  const AttentionImplementation implementation_;
  SparseAttentionInput input_;
  SparseAttentionOutput first_;
  std::vector<torch::Tensor> leaves_;
  torch::Tensor context_gradient_;
  std::vector<torch::Tensor> score_gradients_;
};

// The patterns of a case, and the backend of the second.
struct Patterns {
  SoftmaxPattern restricted, unrestricted;
  AttentionImplementation of_unrestricted = AttentionImplementation::kKernel;
};

int64_t VisiblePairs(const SoftmaxPattern& pattern) {
  const SoftmaxMasks masks = pattern.masks(torch::kCPU);
  return masks.own_mask.sum().item<int64_t>() +
         masks.other_mask.sum().item<int64_t>();
}

SoftmaxPattern AllKeys(int64_t batch, int64_t queries, int64_t keys) {
  return AllKeysPattern({.queries = queries, .keys = keys, .batch = batch});
}

// [1, length]: padding in front, and holes.
torch::Tensor PaddedTokens(int64_t length, bool holes) {
  const torch::Tensor position = torch::arange(length);
  const torch::Tensor behind = position.ge(length / 4);
  return (holes ? behind.logical_and(position.remainder(64).ne(0)) : behind)
      .unsqueeze(0);
}

// [tokens, tokens]: rows of eight kinds, in runs of 16 to 64 keys with gaps of
// 16.
torch::Tensor RandomMask(int64_t tokens) {
  torch::manual_seed(3);
  std::vector<torch::Tensor> kinds;
  for (int kind = 0; kind < 8; ++kind) {
    torch::Tensor row = torch::zeros({tokens}, torch::kBool);
    int64_t begin = 2 * kind;
    while (begin < tokens) {
      const int64_t size =
          std::min(tokens - begin, torch::randint(16, 65, {1}).item<int64_t>());
      row.narrow(0, begin, size).fill_(true);
      begin += size + 16;
    }
    kinds.push_back(row);
  }
  return torch::stack(kinds).index_select(0, torch::randint(0, 8, {tokens}));
}

SoftmaxPattern EtcPattern(const AttentionInputs& inputs, int64_t longs,
                          int64_t globals, int64_t radius) {
  return inputs.Softmax(QuerySide::kLong, 1, longs, globals, radius);
}

Patterns MaskPatterns(const std::string& name,
                      const KeyPatternOptions& square) {
  const int64_t tokens = square.queries;
  if (name == "padded" || name == "holes") {
    const torch::Tensor mask = PaddedTokens(tokens, name == "holes");
    return {OnlyKeys(AllKeysPattern(square), mask),
            AllKeys(1, tokens, mask.sum().item<int64_t>())};
  }
  torch::Tensor mask;
  if (name == "prefix") {
    mask = torch::ones({tokens, tokens}, torch::kBool).tril();
    mask.narrow(1, 0, tokens / 4).fill_(true);
  } else if (name == "rows") {
    mask = RandomMask(tokens);
  } else {
    mask = torch::arange(tokens).remainder(8).lt(4).unsqueeze(0);
    return {PatternFromMask(mask, square), DensePattern(mask, square),
            AttentionImplementation::kBlocked};
  }
  return {PatternFromMask(mask, square),
          AllKeys(1, tokens, mask.sum().item<int64_t>() / tokens)};
}

Patterns KeyPatterns(const std::string& name, int64_t tokens) {
  const KeyPatternOptions square = {
      .queries = tokens, .keys = tokens, .batch = 1};
  if (name == "causal") {
    return {CausalPattern(square), AllKeys(1, tokens, tokens / 2)};
  }
  if (name == "window") {
    return {
        WindowPattern(square, {.before = kWindowKeys - 1}),
        EtcPattern(AttentionInputs::Everything(0), tokens, 0, kWindowKeys / 2)};
  }
  if (name == "packed") {
    const torch::Tensor ids =
        torch::arange(tokens).mul(8).div(tokens, "floor").add(1).unsqueeze(0);
    return {OnlyDocuments(AllKeysPattern(square), ids, ids),
            AllKeys(8, tokens / 8, tokens / 8)};
  }
  return MaskPatterns(name, square);
}

Patterns EtcPatterns(const std::string& name, int64_t tokens) {
  const AttentionInputs everything = AttentionInputs::Everything(0);
  if (name == "etc_causal") {
    AttentionPattern prefix = UnrestrictedPattern(tokens, kGlobals, kRadius, 0);
    prefix.hard_g2l = true;
    const AttentionInputs inputs(std::vector<AttentionPattern>{prefix});
    return {EtcPattern(inputs.Causal(), tokens, kGlobals, kRadius),
            EtcPattern(everything, tokens, kGlobals, kRadius / 2)};
  }
  const torch::Tensor mask = PaddedTokens(tokens, name == "etc_holes");
  return {
      EtcPattern(AttentionInputs::Padded(mask, {}, 0), tokens, kGlobals,
                 kRadius),
      EtcPattern(everything, mask.sum().item<int64_t>(), kGlobals, kRadius)};
}

void Restricted(benchmark::State& state, const std::string& name,
                const Mode& mode) {
  const int64_t tokens = state.range(0);
  at::set_num_threads(static_cast<int>(state.range(1)));
  torch::manual_seed(1);
  const torch::AutoGradMode gradients(mode.training);
  const Patterns patterns = name.starts_with("etc_")
                                ? EtcPatterns(name, tokens)
                                : KeyPatterns(name, tokens);
  const double pairs = static_cast<double>(VisiblePairs(patterns.restricted)) /
                       static_cast<double>(VisiblePairs(patterns.unrestricted));
  Side restricted(patterns.restricted, mode, AttentionImplementation::kKernel);
  Side unrestricted(patterns.unrestricted, mode, patterns.of_unrestricted);
  const auto [restricted_times, unrestricted_times] =
      MeasureByTurns(state, restricted, unrestricted);
  state.counters["time_ratio"] =
      MedianRatio(restricted_times.wall, unrestricted_times.wall) / pairs;
  state.counters["cpu_ratio"] =
      MedianRatio(restricted_times.cpu, unrestricted_times.cpu) / pairs;
  state.counters["restricted_ms"] = 1e3 * Median(restricted_times.wall);
  state.counters["unrestricted_ms"] = 1e3 * Median(unrestricted_times.wall);
  state.counters["pairs"] = pairs;
}

void RegisterAll() {
  for (const char* name :
       {"causal", "window", "padded", "holes", "prefix", "packed", "rows",
        "most_runs", "etc_causal", "etc_padded", "etc_holes"}) {
    for (const bool training : {false, true}) {
      for (const bool sum : {false, true}) {
        const Mode mode = {.training = training, .sum = sum};
        AddBenchmark(
            std::string("Restricted/") + name + "/" +
                (training ? "training" : "forward") +
                "/residual:" + (sum ? "sum" : "off"),
            [=](benchmark::State& state) { Restricted(state, name, mode); })
            ->ArgNames({"tokens", "threads"})
            ->Args({1024, 1})
            ->Args({4096, 1})
            ->Args({4096, 2})
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
