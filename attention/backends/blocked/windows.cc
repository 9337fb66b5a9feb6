#include "attention/backends/blocked/windows.h"

#include <c10/util/Exception.h>

#include <vector>

namespace etc {
namespace {

// The shape of `tensor` with its last two axes replaced.
std::vector<int64_t> WithLastAxes(const torch::Tensor& tensor,
                                  const std::vector<int64_t>& last) {
  TORCH_CHECK(tensor.dim() >= 2, "a matrix is needed, but the shape is ",
              tensor.sizes());
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.resize(shape.size() - 2);
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

int64_t PaddingToMultiple(int64_t length, int64_t factor) {
  TORCH_CHECK(factor >= 1, "block_length should be at least 1, but is ",
              factor);
  return (factor - length % factor) % factor;
}

}  // namespace

// In the flat block, row a of the span begins at a C and its window at
// a (C + 1): with rows of C + 1 elements, all windows begin at column 0.

torch::Tensor SkewElementsRight(const torch::Tensor& windows) {
  TORCH_CHECK(windows.dim() >= 2, "a matrix is needed, but the shape is ",
              windows.sizes());
  const int64_t rows = windows.size(-2);
  const int64_t span = rows + windows.size(-1) - 1;
  return torch::constant_pad_nd(windows, {0, rows})
      .reshape(WithLastAxes(windows, {rows * (span + 1)}))
      .narrow(-1, 0, rows * span)
      .reshape(WithLastAxes(windows, {rows, span}));
}

torch::Tensor UnskewElementsRight(const torch::Tensor& spans) {
  TORCH_CHECK(spans.dim() >= 2 && spans.size(-1) >= spans.size(-2),
              "a span should be at least as long as its block has rows, but "
              "the shape is ",
              spans.sizes());
  const int64_t rows = spans.size(-2);
  const int64_t span = spans.size(-1);
  const torch::Tensor flat = torch::constant_pad_nd(
      spans.reshape(WithLastAxes(spans, {rows * span})), {0, rows});
  return flat.reshape(WithLastAxes(spans, {rows, span + 1}))
      .narrow(-1, 0, span - rows + 1);
}

torch::Tensor SplitIntoBlocks(const torch::Tensor& input,
                              int64_t block_length) {
  const int64_t length = input.size(2);
  const torch::Tensor padded = torch::constant_pad_nd(
      input, {0, 0, 0, PaddingToMultiple(length, block_length)});
  return padded.reshape({input.size(0), input.size(1),
                         padded.size(2) / block_length, block_length,
                         input.size(3)});
}

torch::Tensor JoinBlocks(const torch::Tensor& blocks, int64_t length) {
  return blocks
      .reshape({blocks.size(0), blocks.size(1), blocks.size(2) * blocks.size(3),
                blocks.size(4)})
      .narrow(2, 0, length);
}

torch::Tensor BlocksWithMargin(const torch::Tensor& input, int64_t block_length,
                               const KeyWindow& window) {
  const int64_t padding = PaddingToMultiple(input.size(2), block_length);
  return torch::constant_pad_nd(input,
                                {0, 0, window.before, window.after + padding})
      .unfold(2, block_length + window.columns() - 1, block_length)
      .transpose(-2, -1);
}

}  // namespace etc
