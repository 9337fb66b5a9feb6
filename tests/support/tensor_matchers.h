#ifndef ETC_TESTS_SUPPORT_TENSOR_MATCHERS_H_
#define ETC_TESTS_SUPPORT_TENSOR_MATCHERS_H_

#include <gtest/gtest.h>
#include <torch/types.h>

#include <sstream>
#include <string>
#include <vector>

namespace etc {

// Largest absolute difference; infinite where one of them is not finite and
// the other differs.
inline double MaxError(const torch::Tensor& actual,
                       const torch::Tensor& expected) {
  if (actual.numel() == 0) {
    return 0.0;
  }
  const torch::Tensor a = actual.to(torch::kFloat64);
  const torch::Tensor e = expected.to(torch::kFloat64);
  return a.sub(e)
      .abs()
      .nan_to_num(std::numeric_limits<double>::infinity())
      .max()
      .item<double>();
}

// Succeeds if shapes agree and no element is off by more than `atol`. The
// failure message has the first index that is off farthest.
inline testing::AssertionResult IsClose(const torch::Tensor& actual,
                                        const torch::Tensor& expected,
                                        double atol) {
  if (actual.defined() != expected.defined()) {
    return testing::AssertionFailure()
           << "one of the tensors is undefined, the other is not";
  }
  if (!actual.defined()) {
    return testing::AssertionSuccess();
  }
  std::ostringstream message;
  if (actual.sizes() != expected.sizes()) {
    message << "shape is " << actual.sizes() << ", expected "
            << expected.sizes();
    return testing::AssertionFailure() << message.str();
  }
  const double error = MaxError(actual, expected);
  if (error <= atol) {
    return testing::AssertionSuccess();
  }
  const torch::Tensor difference =
      actual.to(torch::kFloat64)
          .sub(expected.to(torch::kFloat64))
          .abs()
          .nan_to_num(std::numeric_limits<double>::infinity())
          .flatten();
  int64_t flat = difference.argmax().item<int64_t>();
  message << "error " << error << " > " << atol << " at flat index " << flat
          << " of shape " << actual.sizes() << ": "
          << actual.flatten()[flat].item<double>() << ", expected "
          << expected.flatten()[flat].item<double>();
  return testing::AssertionFailure() << message.str();
}

// A 2-D integer tensor from rows of digits: {"110", "011"}.
inline torch::Tensor FromDigits(const std::vector<std::string>& rows) {
  std::vector<int64_t> values;
  for (const std::string& row : rows) {
    for (const char digit : row) {
      values.push_back(digit - '0');
    }
  }
  return torch::tensor(values, torch::kInt64)
      .reshape({static_cast<int64_t>(rows.size()), -1});
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TENSOR_MATCHERS_H_
