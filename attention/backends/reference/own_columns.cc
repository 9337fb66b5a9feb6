#include "attention/backends/reference/own_columns.h"

#include <vector>

namespace etc {

OwnColumns::OwnColumns(const torch::Tensor& queries, int64_t begin,
                       int64_t count, const KeyWindow& window) {
  if (!window.is_restricted()) {
    return;
  }
  const torch::TensorOptions options = queries.options();
  const torch::Tensor query = queries.unsqueeze(1);
  const torch::Tensor column =
      torch::arange(begin, begin + count, options).unsqueeze(0) - query +
      window.before;
  const torch::Tensor key =
      query +
      torch::arange(-window.before, window.after + 1, options).unsqueeze(0) -
      begin;
  in_window_ = column.ge(0).logical_and(column.lt(window.columns()));
  column_ = column.masked_fill(in_window_.logical_not(), 0);
  in_keys_ = key.ge(0).logical_and(key.lt(count));
  key_ = key.masked_fill(in_keys_.logical_not(), 0);
}

torch::Tensor OwnColumns::ToDense(const torch::Tensor& windows) const {
  if (!key_.defined()) {
    return windows;
  }
  std::vector<int64_t> shape = windows.sizes().vec();
  shape.back() = column_.size(1);
  return windows.gather(-1, column_.expand(shape))
      .masked_fill(in_window_.logical_not(), 0);
}

torch::Tensor OwnColumns::FromDense(const torch::Tensor& dense) const {
  if (!key_.defined()) {
    return dense;
  }
  std::vector<int64_t> shape = dense.sizes().vec();
  shape.back() = key_.size(1);
  return dense.gather(-1, key_.expand(shape))
      .masked_fill(in_keys_.logical_not(), 0);
}

}  // namespace etc
