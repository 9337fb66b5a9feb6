#include "tasks/pretrain/mlm_slices.h"

#include <torch/utils.h>

#include <algorithm>
#include <limits>

#include "base/parallel_tasks.h"

namespace etc {
namespace {

constexpr int64_t kMostSliceRows = 4096;

}  // namespace

std::vector<LogitSlice> SlicesOf(int64_t rows, int64_t columns,
                                 int64_t elements) {
  std::vector<LogitSlice> slices;
  const int64_t height = std::min(rows, kMostSliceRows);
  if (height == 0) {
    return slices;
  }
  const int64_t width =
      std::clamp<int64_t>(elements / height, 1, std::max<int64_t>(columns, 1));
  for (int64_t column = 0; column < columns; column += width) {
    for (int64_t row = 0; row < rows; row += height) {
      slices.push_back({.first_row = row,
                        .rows = std::min(height, rows - row),
                        .first_column = column,
                        .columns = std::min(width, columns - column)});
    }
  }
  return slices;
}

bool IsDoneByParts(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32;
}

void ForEachSlicePart(const torch::Tensor& slice, int64_t dim,
                      const std::function<void(int64_t, int64_t)>& function) {
  const int64_t count = slice.size(dim);
  if (!IsDoneByParts(slice)) {
    function(0, count);
    return;
  }
  constexpr int64_t kElements = int64_t{1} << 16;
  const int64_t across = std::max<int64_t>(1, slice.size(1 - dim));
  const int64_t size = std::max<int64_t>(1, kElements / across);
  const auto do_part = [&](int64_t task, float*) {
    const torch::NoGradGuard no_grad;
    const int64_t begin = task * size;
    function(begin, std::min(size, count - begin));
  };
  ForEachTask((count + size - 1) / size, /*floats=*/0, do_part);
}

RunningLosses RunningLosses::Of(int64_t rows,
                                const torch::TensorOptions& floating,
                                const torch::TensorOptions& integer) {
  return {.maximum = torch::full(
              {rows}, -std::numeric_limits<double>::infinity(), floating),
          .sum = torch::zeros({rows}, floating),
          .best = torch::zeros({rows}, integer),
          .label_logit = torch::zeros({rows}, floating)};
}

RunningLosses RunningLosses::Rows(int64_t begin, int64_t size) const {
  return {maximum.narrow(0, begin, size), sum.narrow(0, begin, size),
          best.narrow(0, begin, size), label_logit.narrow(0, begin, size)};
}

// Adds columns from `first_column` on, of all rows. Labels count from that
// column. The logits are overwritten.
void RunningLosses::Add(const torch::Tensor& logits,
                        const torch::Tensor& labels,
                        int64_t first_column) const {
  const auto [here, index] = logits.max(1);
  best.copy_(torch::where(here > maximum, index + first_column, best));
  const torch::Tensor inside = (labels >= 0) & (labels < logits.size(1));
  const torch::Tensor picked =
      logits.gather(1, labels.clamp(0, logits.size(1) - 1).unsqueeze(1))
          .squeeze(1);
  label_logit.copy_(torch::where(inside, picked, label_logit));
  const torch::Tensor larger = torch::maximum(here, maximum);
  sum.mul_((maximum - larger).exp_());
  sum.add_(logits.sub_(larger.unsqueeze(1)).exp_().sum(1));
  maximum.copy_(larger);
}
LogSums Finish(const RunningLosses& running) {
  const LogSums result = {torch::empty_like(running.sum),
                          torch::empty_like(running.sum)};
  const torch::Tensor rows = running.sum.unsqueeze(1);
  ForEachSlicePart(rows, 0, [&](int64_t begin, int64_t size) {
    const RunningLosses part = running.Rows(begin, size);
    const torch::Tensor log_sums = result.log_sums.narrow(0, begin, size);
    log_sums.copy_(part.sum.log() + part.maximum);
    result.losses.narrow(0, begin, size).copy_(log_sums - part.label_logit);
  });
  return result;
}

}  // namespace etc
