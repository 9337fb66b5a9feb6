// Sparse attention by the fused kernels: what they serve, and their dropout.

#include <c10/util/Exception.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attention/backends/cpu/kernel_function.h"
#include "attention/backends/joint_softmax.h"
#include "attention/relative_position.h"
#include "attention/sparse_attention.h"
#include "base/check_shape.h"
#include "base/random.h"

namespace etc {
namespace {

void CheckRelativeTable(const KernelProblem& problem) {
  const int64_t distance = (*problem.runs)[0].max_distance;
  const RelativeTable& table = problem.relative;
  TORCH_CHECK(table.embedding.defined() && table.bias.defined(),
              "relative ids are given, but there is no relative table");
  const int64_t ids = table.embedding.size(0);
  const int64_t heads = problem.query.size(1);
  const int64_t head_dim = problem.query.size(3);
  ETC_CHECK_SHAPE(table.embedding, {ids, heads, head_dim});
  ETC_CHECK_SHAPE(table.bias, {ids, heads});
  TORCH_CHECK(ids >= RelativeVocabSize(distance),
              "the relative table should have at least ",
              RelativeVocabSize(distance), " ids for a distance of ", distance,
              ", but has ", ids);
}

KernelProblem MakeProblem(const SparseAttentionInput& input) {
  const bool is_long = input.side == QuerySide::kLong;
  const int64_t own = input.query.size(2);
  const int64_t other = input.other_key.size(2);
  KernelProblem problem = {
      .side = input.side,
      .query = WithAdjacentElements(input.query),
      .own_key = WithAdjacentElements(input.own_key),
      .own_value = WithAdjacentElements(input.own_value),
      .other_key = WithAdjacentElements(input.other_key),
      .other_value = WithAdjacentElements(input.other_value),
      .own_previous = ContiguousOrUndefined(input.own_previous),
      .other_previous = ContiguousOrUndefined(input.other_previous),
      .runs = input.attention->Runs(input.query.size(0), is_long ? own : other,
                                    is_long ? other : own, input.local_radius),
      .local_radius = input.local_radius,
      .divisor = ScoreDivisor(input),
      .dropout = input.dropout};
  if (!problem.runs->empty() && (*problem.runs)[0].max_distance > 0) {
    problem.relative = {
        .embedding = ContiguousOrUndefined(input.relative.embedding),
        .bias = ContiguousOrUndefined(input.relative.bias)};
    CheckRelativeTable(problem);
  }
  if (input.dropout > 0.0) {
    problem.dropout_seed = DrawKernelDropoutSeed();
  }
  return problem;
}

// [B, N, queries, columns] of factors; `key_of(i, column)` is the key.
template <typename KeyOf>
torch::Tensor DropoutFactors(uint64_t seed, const SparseAttentionInput& input,
                             int64_t columns, int block, const KeyOf& key_of) {
  const int64_t queries = input.query.size(2);
  torch::Tensor factors =
      torch::empty({input.query.size(0), input.query.size(1), queries, columns},
                   torch::kFloat32);
  auto accessor = factors.accessor<float, 4>();
  for (int64_t b = 0; b < factors.size(0); ++b) {
    for (int64_t h = 0; h < factors.size(1); ++h) {
      const uint64_t head_seed = kernels::DropoutHeadSeed(seed, b, h);
      for (int64_t i = 0; i < queries; ++i) {
        const kernels::DropoutRow row =
            kernels::MakeDropoutRow(head_seed, i, block);
        for (int64_t c = 0; c < columns; ++c) {
          accessor[b][h][i][c] = kernels::DropoutFactor(
              row, static_cast<uint32_t>(key_of(i, c)), input.dropout);
        }
      }
    }
  }
  return factors;
}

// What may be bfloat16.
std::vector<torch::Tensor*> Operands(SparseAttentionInput* input) {
  std::vector<torch::Tensor*> operands;
  for (torch::Tensor* tensor :
       {&input->query, &input->own_key, &input->own_value, &input->other_key,
        &input->other_value, &input->relative.embedding,
        &input->relative.bias}) {
    if (tensor->defined()) {
      operands.push_back(tensor);
    }
  }
  return operands;
}

}  // namespace

std::string UnsupportedReason(const SparseAttentionInput& input) {
  SparseAttentionInput operands = input;
  for (const torch::Tensor* tensor : Operands(&operands)) {
    if (tensor->scalar_type() != torch::kFloat32 &&
        tensor->scalar_type() != torch::kBFloat16) {
      return absl::StrCat("a tensor is ", c10::toString(tensor->scalar_type()),
                          ", not Float or BFloat16");
    }
    if (!tensor->device().is_cpu()) {
      return absl::StrCat("a tensor is on ", tensor->device().str(),
                          ", not on the CPU");
    }
  }
  for (const torch::Tensor& scores :
       {input.own_previous, input.other_previous}) {
    if (scores.defined() && (scores.scalar_type() != torch::kFloat32 ||
                             !scores.device().is_cpu())) {
      return "previous scores are not Float on the CPU";
    }
  }
  if (input.attention->has_tensors()) {
    return "masks or relative ids are explicit tensors, not patterns";
  }
  if (input.own_dropout_factors.defined()) {
    return "dropout factors are given";
  }
  return "";
}

uint64_t DrawKernelDropoutSeed() {
  return static_cast<uint64_t>(
      torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kInt64)
          .item<int64_t>());
}

void MaterializeKernelDropout(uint64_t seed, SparseAttentionInput* input) {
  const bool is_long = input->side == QuerySide::kLong;
  const int64_t radius = input->local_radius;
  input->own_dropout_factors = DropoutFactors(
      seed, *input, is_long ? 2 * radius + 1 : input->query.size(2), 0,
      [&](int64_t i, int64_t c) { return is_long ? i + c - radius : c; });
  input->other_dropout_factors =
      DropoutFactors(seed, *input, input->other_key.size(2), 1,
                     [](int64_t, int64_t c) { return c; });
}

SparseAttentionOutput KernelSparseAttention(const SparseAttentionInput& input) {
  CheckSparseAttentionShapes(input);
  const std::string reason = UnsupportedReason(input);
  TORCH_CHECK(reason.empty(),
              "the attention kernels do not serve this: ", reason);
  TORCH_CHECK(input.dropout >= 0.0 && input.dropout < 1.0,
              "dropout should be in [0, 1), but is ", input.dropout);
  // The kernels copy what they read into tiles anyway; one more copy of what is
  // small beside the scores, and they need to know one type only.
  SparseAttentionInput in_float = input;
  for (torch::Tensor* tensor : Operands(&in_float)) {
    *tensor = tensor->to(torch::kFloat32);
  }
  SparseAttentionOutput output = DifferentiableKernel(
      MakeProblem(in_float), input.residual != ResidualAttention::kOff,
      input.storage, input.live);
  output.context = output.context.to(input.query.scalar_type());
  return output;
}

}  // namespace etc
