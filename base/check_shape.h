#ifndef ETC_BASE_CHECK_SHAPE_H_
#define ETC_BASE_CHECK_SHAPE_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

// Throws c10::Error unless `tensor` has the shape {a, b, ...}:
//
//   ETC_CHECK_SHAPE(previous, {batch, heads, queries, keys});
//
//   previous should be {batch, heads, queries, keys} = [2, 3, 5, 7],
//   but is [2, 3, 7, 5]
#define ETC_CHECK_SHAPE(tensor, ...)                                           \
  do {                                                                         \
    const torch::Tensor& etc_checked = (tensor);                               \
    const std::vector<int64_t> etc_expected = __VA_ARGS__;                     \
    TORCH_CHECK(etc_checked.defined(), #tensor, " should be ", #__VA_ARGS__,   \
                " = ", at::IntArrayRef(etc_expected), ", but is undefined");   \
    TORCH_CHECK(etc_checked.sizes() == at::IntArrayRef(etc_expected), #tensor, \
                " should be ", #__VA_ARGS__, " = ",                            \
                at::IntArrayRef(etc_expected), ", but is ",                    \
                etc_checked.sizes());                                          \
  } while (false)

#endif  // ETC_BASE_CHECK_SHAPE_H_
