#include <torch/types.h>

#include <algorithm>

#include "attention/kernel_head.h"
#include "attention/kernel_passes.h"
#include "attention/large_pages.h"
#include "attention/parallel_tasks.h"

namespace etc {
namespace {

kernels::ForwardResults ResultsOf(const KernelProblem& problem,
                                  const KernelForward& forward, int64_t batch,
                                  int64_t head) {
  const KernelSizes sizes(problem);
  const int64_t row = (batch * sizes.heads + head) * sizes.queries;
  return {.context = HeadRows(forward.context, batch, head),
          .context_stride = forward.context.stride(2),
          .row_max = forward.row_max.data_ptr<float>() + row,
          .row_inverse_sum = forward.row_inverse_sum.data_ptr<float>() + row,
          .previous = {{HeadRows(problem.own_previous, batch, head),
                        sizes.own_columns},
                       {HeadRows(problem.other_previous, batch, head),
                        sizes.others}},
          .carried = {
              {HeadRows(forward.own_scores, batch, head), sizes.own_columns},
              {HeadRows(forward.other_scores, batch, head), sizes.others}}};
}

}  // namespace

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
  if (problem.carry) {
    forward.own_scores = WithLargePages(torch::empty(
        {sizes.batch, sizes.heads, sizes.queries, sizes.own_columns}, options));
    forward.other_scores = WithLargePages(torch::empty(
        {sizes.batch, sizes.heads, sizes.queries, sizes.others}, options));
  }
  forward.row_max =
      torch::empty({sizes.batch, sizes.heads, sizes.queries}, options);
  forward.row_inverse_sum = torch::empty_like(forward.row_max);
  if (forward.context.numel() == 0 && !problem.carry) {
    return forward;
  }

  const int64_t length = TileLength(sizes.queries);
  const int64_t tiles = (sizes.queries + length - 1) / length;
  const int64_t heads = sizes.batch * sizes.heads;
  if (heads * tiles == 0) {
    return forward;
  }
  ForEachTask(heads * tiles,
              kernels::ForwardWorkspaceSize(HeadOf(problem, 0, 0)),
              [&](int64_t task, float* workspace) {
                const int64_t batch = task / tiles / sizes.heads;
                const int64_t head = task / tiles % sizes.heads;
                const int64_t begin = task % tiles * length;
                kernels::ForwardTile(HeadOf(problem, batch, head), begin,
                                     std::min(begin + length, sizes.queries),
                                     ResultsOf(problem, forward, batch, head),
                                     workspace);
              });
  return forward;
}

}  // namespace etc
