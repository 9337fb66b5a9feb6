#ifndef ETC_TESTS_SUPPORT_EXACTNESS_H_
#define ETC_TESTS_SUPPORT_EXACTNESS_H_

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "tests/support/tensor_matchers.h"

namespace etc {

// Expects tensors to be off from exact ones by at most `times` as much as those
// of a reference in the same precision, plus 1e-6 of the largest exact element:
// for sums of other order and length, beside those of LibTorch 2, or of an
// OpenBLAS without AVX, which happen to be more exact.
inline void ExpectAsExact(const std::vector<torch::Tensor>& actual,
                          const std::vector<torch::Tensor>& reference,
                          const std::vector<torch::Tensor>& exact, double times,
                          const char* what) {
  ASSERT_EQ(actual.size(), exact.size());
  double largest = 0.0;
  for (const torch::Tensor& tensor : exact) {
    if (tensor.defined() && tensor.numel() > 0) {
      largest = std::max(largest, tensor.abs().max().item<double>());
    }
  }
  const double floor = 1e-6 * largest;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), exact[i].defined()) << what << " " << i;
    if (!exact[i].defined()) {
      continue;
    }
    ASSERT_EQ(actual[i].sizes(), exact[i].sizes()) << what << " " << i;
    EXPECT_LE(MaxError(actual[i], exact[i]),
              times * MaxError(reference[i], exact[i]) + floor)
        << what << " " << i << ", floor " << floor;
  }
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_EXACTNESS_H_
