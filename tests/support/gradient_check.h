#ifndef ETC_TESTS_SUPPORT_GRADIENT_CHECK_H_
#define ETC_TESTS_SUPPORT_GRADIENT_CHECK_H_

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sanitizers.h"

namespace etc {

// Compares the gradients of a scalar with central differences,
//
//   (f(x + h) - f(x - h)) / 2h,   h = 1e-5
//
// element by element (`max_elements` of each variable, evenly spread; a few
// under a sanitizer, which sees the same accesses in each). The variables are
// float64 leaves that `function` reads; it must be smooth, and is called twice
// for each element. With |f| and its third derivative around 1 the differences
// are good to about 1e-9.
inline testing::AssertionResult GradientsMatchDifferences(
    const std::function<torch::Tensor()>& function,
    const std::vector<std::pair<std::string, torch::Tensor>>& variables,
    double atol = 1e-7, int64_t max_elements = kSanitized ? 3 : 60) {
  std::vector<torch::Tensor> leaves;
  for (const auto& [name, variable] : variables) {
    if (variable.scalar_type() != torch::kFloat64 ||
        !variable.requires_grad()) {
      return testing::AssertionFailure()
             << name << " should be a float64 leaf that requires a gradient";
    }
    leaves.push_back(variable);
  }
  const std::vector<torch::Tensor> gradients = torch::autograd::grad(
      {function()}, leaves, {}, c10::nullopt, false, /*allow_unused=*/true);
  constexpr double kStep = 1e-5;
  for (size_t v = 0; v < leaves.size(); ++v) {
    if (!gradients[v].defined()) {
      return testing::AssertionFailure()
             << variables[v].first << " has no gradient";
    }
    const torch::Tensor flat = leaves[v].detach().view(-1);
    const torch::Tensor gradient = gradients[v].contiguous().view(-1);
    const int64_t stride = std::max<int64_t>(1, flat.numel() / max_elements);
    for (int64_t i = 0; i < flat.numel(); i += stride) {
      const torch::NoGradGuard no_grad;
      const double value = flat[i].item<double>();
      flat[i] = value + kStep;
      const double above = function().item<double>();
      flat[i] = value - kStep;
      const double below = function().item<double>();
      flat[i] = value;
      const double expected = (above - below) / (2 * kStep);
      const double actual = gradient[i].item<double>();
      if (!(std::abs(actual - expected) <= atol)) {
        return testing::AssertionFailure()
               << variables[v].first << "[" << i << "]: gradient " << actual
               << ", difference quotient " << expected;
      }
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_GRADIENT_CHECK_H_
