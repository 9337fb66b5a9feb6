#include "attention/dropout_factors.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>

#include "base/random.h"
#include "base/to_device.h"

namespace etc {
namespace {

constexpr int64_t kLow32 = 0xffffffff;

// DropoutRow of each query of one block, each [B, heads, T, 1], 32-bit numbers
// in int64.
struct DropoutRows {
  torch::Tensor first, second;
};

DropoutRows DropoutRowsOf(const AttentionProblem& problem,
                          const HeadRange& heads, int block) {
  const SoftmaxPattern& pattern = problem.pattern;
  torch::Tensor rows = torch::empty(
      {2, pattern.batch, heads.count, pattern.queries, 1}, torch::kInt64);
  auto values = rows.accessor<int64_t, 5>();
  for (int64_t b = 0; b < pattern.batch; ++b) {
    for (int64_t h = 0; h < heads.count; ++h) {
      const uint64_t head_seed = kernels::DropoutHeadSeed(
          problem.dropout_seed, b, problem.first_head + heads.begin + h);
      for (int64_t i = 0; i < pattern.queries; ++i) {
        const kernels::DropoutRow row =
            kernels::MakeDropoutRow(head_seed, i, block);
        values[0][b][h][i][0] = row.first;
        values[1][b][h][i][0] = row.second;
      }
    }
  }
  rows = ToDevice(rows, problem.operands.query.device());
  return {.first = rows[0], .second = rows[1]};
}

// kernels::DropoutNumber of keys, [T or 1, columns]: [B, heads, T, columns]. In
// int64, of whose products only the low half counts.
torch::Tensor DropoutNumbers(const DropoutRows& rows,
                             const torch::Tensor& keys) {
  torch::Tensor x = torch::bitwise_xor(keys, rows.first);
  const auto fold = [&x](int64_t bits) {
    x.bitwise_xor_(torch::bitwise_right_shift(x, bits));
  };
  fold(16);
  x.mul_(int64_t{kernels::kDropoutMultiplier1}).bitwise_and_(kLow32);
  fold(15);
  x.add_(rows.second).bitwise_and_(kLow32);
  x.mul_(int64_t{kernels::kDropoutMultiplier2}).bitwise_and_(kLow32);
  fold(16);
  return x;
}

}  // namespace

ScorePair DropoutFactors(const AttentionProblem& problem,
                         const HeadRange& heads) {
  if (problem.dropout == 0.0) {
    return {};
  }
  const torch::NoGradGuard no_grad;
  const SoftmaxPattern& pattern = problem.pattern;
  const torch::Tensor& query = problem.operands.query;
  const auto factors = [&](int block, const torch::Tensor& keys) {
    return DropoutNumbers(DropoutRowsOf(problem, heads, block), keys)
        .ge(int64_t{kernels::DropoutThreshold(problem.dropout)})
        .to(ScoreType(query))
        .mul_(1.0 / (1.0 - problem.dropout));
  };
  const torch::TensorOptions integers = query.options().dtype(torch::kInt64);
  torch::Tensor own_keys =
      torch::arange(pattern.own_columns(), integers).unsqueeze(0);
  if (pattern.window.is_restricted()) {
    own_keys = own_keys +
               torch::arange(pattern.queries, integers).unsqueeze(1) -
               pattern.window.before;
  }
  return {.own = factors(0, own_keys.bitwise_and(kLow32)),
          .other = factors(
              1, torch::arange(pattern.other_keys, integers).unsqueeze(0))};
}

}  // namespace etc
