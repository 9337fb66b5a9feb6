#include "attention/backends/cpu/cpu_backend.h"

#include <torch/types.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "attention/backends/cpu/backward_pass.h"
#include "attention/backends/cpu/head_view.h"
#include "attention/backends/cpu/kernels/attention_tile.h"
#include "base/large_pages.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// `tensor`, or a copy whose rows have adjacent elements.
torch::Tensor WithAdjacentElements(const torch::Tensor& tensor) {
  return tensor.size(-1) == 1 || tensor.stride(-1) == 1 ? tensor
                                                        : tensor.contiguous();
}

torch::Tensor ContiguousOrUndefined(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

// The queries of all heads, divided into tiles.
struct Tiles {
  explicit Tiles(const AttentionSizes& sizes)
      : heads(sizes.heads),
        queries(sizes.queries),
        length(TileLength(queries, sizes.batch * heads)),
        of_head((queries + length - 1) / length),
        count(sizes.batch * heads * of_head) {}

  int64_t Batch(int64_t tile) const { return tile / of_head / heads; }
  int64_t Head(int64_t tile) const { return tile / of_head % heads; }
  int64_t Begin(int64_t tile) const { return tile % of_head * length; }
  int64_t End(int64_t tile) const {
    return std::min(Begin(tile) + length, queries);
  }

  int64_t heads, queries;
  int64_t length;   // of a tile
  int64_t of_head;  // tiles
  int64_t count;
};

// Scores alone; context and the rest are null.
kernels::ForwardResults ScoresOf(const AttentionProblem& problem, int64_t batch,
                                 int64_t head) {
  kernels::ForwardResults results;
  results.previous[0] = ScoreRowsOf(problem.previous.own, batch, head);
  results.previous[1] = ScoreRowsOf(problem.previous.other, batch, head);
  results.carried[0] = ScoreRowsToWrite(problem.carried.own, batch, head);
  results.carried[1] = ScoreRowsToWrite(problem.carried.other, batch, head);
  return results;
}

}  // namespace

std::string CpuBackend::UnsupportedReason(
    const AttentionProblem& problem) const {
  std::string reason;
  problem.operands.ForEachTensor([&](const torch::Tensor& tensor) {
    if (!reason.empty() || !tensor.defined()) {
      return;
    }
    if (tensor.scalar_type() != torch::kFloat32 &&
        tensor.scalar_type() != torch::kBFloat16) {
      reason = absl::StrCat("a tensor is ", c10::toString(tensor.scalar_type()),
                            ", not Float or BFloat16");
    } else if (!tensor.device().is_cpu()) {
      reason = absl::StrCat("a tensor is on ", tensor.device().str(),
                            ", not on the CPU");
    }
  });
  problem.previous.ForEachTensor([&](const torch::Tensor& scores) {
    if (reason.empty() && scores.defined() &&
        (scores.scalar_type() != torch::kFloat32 ||
         !scores.device().is_cpu())) {
      reason = "previous scores are not Float on the CPU";
    }
  });
  if (!reason.empty()) {
    return reason;
  }
  if (problem.pattern.runs == nullptr) {
    return "masks or relative ids are explicit tensors, not patterns";
  }
  return problem.dropout_factors.defined() ? "dropout factors are given" : "";
}

void CpuBackend::Prepare(AttentionProblem* problem) const {
  // The kernels copy what they read into tiles anyway; this is one more copy of
  // what is small beside the scores, and leaves them one type to know.
  problem->operands.ForEachTensor([](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = WithAdjacentElements(tensor.to(torch::kFloat32));
    }
  });
  problem->previous.ForEachTensor(
      [](torch::Tensor& scores) { scores = ContiguousOrUndefined(scores); });
  CheckRelativeTable(*problem);
}

ScorePair CpuBackend::NewScores(const AttentionProblem& problem) const {
  const AttentionSizes sizes(problem);
  const auto scores = [&](int64_t columns) {
    return WithLargePages(
        torch::empty({sizes.batch, sizes.heads, sizes.queries, columns},
                     problem.operands.query.options()));
  };
  return {.own = scores(sizes.own_columns), .other = scores(sizes.other_keys)};
}

AttentionForward CpuBackend::Forward(const AttentionProblem& problem) const {
  const AttentionSizes sizes(problem);
  const torch::TensorOptions options = problem.operands.query.options();
  // Heads of a token side by side, as the output projection wants them.
  const torch::Tensor context = torch::empty_strided(
      {sizes.batch, sizes.heads, sizes.queries, sizes.value_dim},
      {sizes.queries * sizes.heads * sizes.value_dim, sizes.value_dim,
       sizes.heads * sizes.value_dim, 1},
      options);
  SoftmaxSums sums;
  sums.row_max =
      torch::empty({sizes.batch, sizes.heads, sizes.queries}, options);
  sums.row_inverse_sum = torch::empty_like(sums.row_max);
  const AttentionForward forward = {
      .context = context,
      .scores = problem.carried,
      .saved = {sums.row_max, sums.row_inverse_sum}};
  const Tiles tiles(sizes);
  if (tiles.count == 0 ||
      (context.numel() == 0 && !problem.carried.defined())) {
    return forward;
  }
  ForEachTask(
      tiles.count, kernels::ForwardWorkspaceSize(HeadOf(problem, 0, 0)),
      [&](int64_t tile, float* workspace) {
        const int64_t batch = tiles.Batch(tile);
        const int64_t head = tiles.Head(tile);
        kernels::ForwardResults results = ScoresOf(problem, batch, head);
        results.context = HeadRows(context, batch, head);
        results.context_stride = context.stride(2);
        results.row_max = VectorOfHead(sums.row_max, batch, head);
        results.row_inverse_sum =
            VectorOfHead(sums.row_inverse_sum, batch, head);
        kernels::ForwardTile(HeadOf(problem, batch, head), tiles.Begin(tile),
                             tiles.End(tile), results, workspace);
      });
  return forward;
}

void CpuBackend::RecomputeScores(const AttentionProblem& problem,
                                 bool subtract) const {
  const Tiles tiles{AttentionSizes(problem)};
  if (tiles.count == 0) {
    return;
  }
  ForEachTask(
      tiles.count, kernels::ForwardWorkspaceSize(HeadOf(problem, 0, 0)),
      [&](int64_t tile, float* workspace) {
        const int64_t batch = tiles.Batch(tile);
        const int64_t head = tiles.Head(tile);
        kernels::ForwardResults results = ScoresOf(problem, batch, head);
        results.subtract = subtract;
        kernels::ForwardTile(HeadOf(problem, batch, head), tiles.Begin(tile),
                             tiles.End(tile), results, workspace);
      });
}

AttentionOperands CpuBackend::Backward(const AttentionProblem& problem,
                                       const AttentionForward& forward,
                                       const torch::Tensor& context_gradient,
                                       const ScoreGradients& scores) const {
  const torch::Tensor gradient = context_gradient.defined()
                                     ? WithAdjacentElements(context_gradient)
                                     : torch::zeros_like(forward.context);
  ScoreGradients contiguous = scores;
  contiguous.carried.own = ContiguousOrUndefined(scores.carried.own);
  contiguous.carried.other = ContiguousOrUndefined(scores.carried.other);
  return RunBackwardPass({.problem = problem,
                          .context = forward.context,
                          .sums = {.row_max = forward.saved[0],
                                   .row_inverse_sum = forward.saved[1]},
                          .context_gradient = gradient,
                          .scores = contiguous});
}

}  // namespace etc
