#ifndef ETC_TESTS_SUPPORT_INITIAL_VALUES_H_
#define ETC_TESTS_SUPPORT_INITIAL_VALUES_H_

#include <gtest/gtest.h>
#include <torch/nn/module.h>

namespace etc {

// Expects the initial values of the official heads, which do not depend on the
// configuration: weights of a normal distribution of deviation 0.02, cut off at
// twice that, and biases of 0. The deviation of a normal distribution cut off
// so is 0.88 of the whole one's; `head` should have weights enough for it to
// show.
inline void ExpectFixedInitialValues(const torch::nn::Module& head) {
  for (const auto& parameter : head.named_parameters()) {
    if (parameter.key().ends_with("weight")) {
      EXPECT_NEAR(parameter.value().std().item<double>(), 0.0176, 0.0008);
      EXPECT_LE(parameter.value().abs().max().item<double>(), 0.0401);
    } else {
      EXPECT_TRUE(parameter.value().eq(0).all().item<bool>());
    }
  }
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_INITIAL_VALUES_H_
