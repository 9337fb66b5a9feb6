#include <torch/types.h>

#include <algorithm>

#include "attention/backends/cpu/kernel_head.h"
#include "attention/backends/cpu/kernel_passes.h"
#include "base/large_pages.h"
#include "base/parallel_tasks.h"

namespace etc {
namespace {

// Scores alone; context and the rest are null.
kernels::ForwardResults ScoresOf(const KernelProblem& problem, int64_t batch,
                                 int64_t head) {
  const KernelSizes sizes(problem);
  kernels::ForwardResults results;
  results.previous[0] = {HeadRows(problem.own_previous, batch, head),
                         sizes.own_columns};
  results.previous[1] = {HeadRows(problem.other_previous, batch, head),
                         sizes.others};
  results.carried[0] = {HeadRows(problem.own_carried, batch, head),
                        sizes.own_columns};
  results.carried[1] = {HeadRows(problem.other_carried, batch, head),
                        sizes.others};
  return results;
}

// Calls results_of(batch, head) for each tile, and the kernel.
template <typename ResultsOf>
void ForEachTile(const KernelProblem& problem, const ResultsOf& results_of) {
  const KernelSizes sizes(problem);
  const int64_t heads = sizes.batch * sizes.heads;
  const int64_t length = TileLength(sizes.queries, heads);
  const int64_t tiles = (sizes.queries + length - 1) / length;
  if (heads * tiles == 0) {
    return;
  }
  ForEachTask(heads * tiles,
              kernels::ForwardWorkspaceSize(HeadOf(problem, 0, 0)),
              [&](int64_t task, float* workspace) {
                const int64_t batch = task / tiles / sizes.heads;
                const int64_t head = task / tiles % sizes.heads;
                const int64_t begin = task % tiles * length;
                kernels::ForwardTile(HeadOf(problem, batch, head), begin,
                                     std::min(begin + length, sizes.queries),
                                     results_of(batch, head), workspace);
              });
}

}  // namespace

ScorePair NewScores(const KernelProblem& problem) {
  const KernelSizes sizes(problem);
  const auto scores = [&](int64_t columns) {
    return WithLargePages(
        torch::empty({sizes.batch, sizes.heads, sizes.queries, columns},
                     problem.query.options()));
  };
  return {.own = scores(sizes.own_columns), .other = scores(sizes.others)};
}

KernelForward RunKernelForward(const KernelProblem& problem) {
  const KernelSizes sizes(problem);
  const torch::TensorOptions options = problem.query.options();
  KernelForward forward;
  // Heads of a token side by side, as the output projection wants them.
  forward.context = torch::empty_strided(
      {sizes.batch, sizes.heads, sizes.queries, sizes.value_dim},
      {sizes.queries * sizes.heads * sizes.value_dim, sizes.value_dim,
       sizes.heads * sizes.value_dim, 1},
      options);
  forward.row_max =
      torch::empty({sizes.batch, sizes.heads, sizes.queries}, options);
  forward.row_inverse_sum = torch::empty_like(forward.row_max);
  if (forward.context.numel() == 0 && !problem.own_carried.defined()) {
    return forward;
  }
  ForEachTile(problem, [&](int64_t batch, int64_t head) {
    const int64_t row = (batch * sizes.heads + head) * sizes.queries;
    kernels::ForwardResults results = ScoresOf(problem, batch, head);
    results.context = HeadRows(forward.context, batch, head);
    results.context_stride = forward.context.stride(2);
    results.row_max = forward.row_max.data_ptr<float>() + row;
    results.row_inverse_sum = forward.row_inverse_sum.data_ptr<float>() + row;
    return results;
  });
  return forward;
}

void RunKernelScores(const KernelProblem& problem, bool subtract) {
  ForEachTile(problem, [&](int64_t batch, int64_t head) {
    kernels::ForwardResults results = ScoresOf(problem, batch, head);
    results.subtract = subtract;
    return results;
  });
}

}  // namespace etc
