#ifndef ETC_TESTS_SUPPORT_EACH_TARGET_H_
#define ETC_TESTS_SUPPORT_EACH_TARGET_H_

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <random>
#include <string>
#include <tuple>

#include "tests/support/guarded_buffer.h"

namespace etc {

// Runs a test of kernels on every SIMD target this CPU has, with buffers that
// end at, or begin behind, a page that may not be touched:
//
//   class MyTest : public EachTargetTest {};
//   TEST_P(MyTest, ...) { GuardedBuffer row = Random(17); ... }
//   ETC_INSTANTIATE_FOR_EACH_TARGET(MyTest);
class EachTargetTest
    : public testing::TestWithParam<std::tuple<int64_t, GuardedBuffer::Guard>> {
 protected:
  EachTargetTest() { hwy::SetSupportedTargetsForTest(std::get<0>(GetParam())); }
  ~EachTargetTest() override { hwy::SetSupportedTargetsForTest(0); }

  static GuardedBuffer::Guard guard() { return std::get<1>(GetParam()); }

  // `count` floats, zeros.
  static GuardedBuffer Zeros(int64_t count) {
    return GuardedBuffer(static_cast<size_t>(count), guard());
  }
  // `count` floats in [-size, size).
  GuardedBuffer Random(int64_t count, float size = 2.0f) {
    GuardedBuffer buffer = Zeros(count);
    std::uniform_real_distribution<float> uniform(-size, size);
    for (size_t i = 0; i < buffer.size(); ++i) {
      buffer[i] = uniform(random_);
    }
    return buffer;
  }

 private:
  std::mt19937 random_{11};
};

inline std::string NameOfTarget(
    const testing::TestParamInfo<EachTargetTest::ParamType>& parameters) {
  return std::string(hwy::TargetName(std::get<0>(parameters.param))) +
         (std::get<1>(parameters.param) == GuardedBuffer::Guard::kBefore
              ? "GuardBefore"
              : "GuardBehind");
}

#define ETC_INSTANTIATE_FOR_EACH_TARGET(Suite)                                 \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Targets, Suite,                                                          \
      testing::Combine(testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
                       testing::Values(::etc::GuardedBuffer::Guard::kBefore,   \
                                       ::etc::GuardedBuffer::Guard::kBehind)), \
      ::etc::NameOfTarget)

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_EACH_TARGET_H_
