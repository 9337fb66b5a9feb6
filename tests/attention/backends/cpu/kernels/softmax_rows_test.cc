// Runs of score rows against scalar loops in double, on every SIMD target this
// CPU has. Lengths straddle 4, 8 and 16 lanes, so that each tail is run; every
// run lies between pages that may not be touched, so that reads and writes
// beyond it end the test. Tolerances: sums of n terms n ulp.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "tests/attention/backends/cpu/kernels/softmax_rows_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "base/random.h"
#include "hwy/highway.h"
#include "tests/support/each_target.h"
#include "tests/support/guarded_buffer.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

void CallAddToRun(float summand, int64_t count, float* row) {
  AddToRun(summand, count, row);
}
float CallRunSum(const float* row, int64_t count) { return RunSum(row, count); }

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {
namespace {

HWY_EXPORT(CallAddToRun);
HWY_EXPORT(CallRunSum);

constexpr int64_t kCounts[] = {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 169};
constexpr double kUlp = 0x1p-23;

// The place of a run between guards.
class SoftmaxRowsTest : public EachTargetTest {
 protected:
  // In [-5, 5).
  GuardedBuffer Scores(int64_t count) { return Random(count, 5.0f); }
  static std::vector<float> Copy(GuardedBuffer* buffer) {
    return std::vector<float>(buffer->data(), buffer->data() + buffer->size());
  }
};

TEST_P(SoftmaxRowsTest, AddsToAll) {
  for (const int64_t count : kCounts) {
    GuardedBuffer row = Scores(count);
    const std::vector<float> scores = Copy(&row);
    HWY_DYNAMIC_DISPATCH(CallAddToRun)(0.75f, count, row.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(row[i], scores[i] + 0.75f);
    }
  }
}

TEST_P(SoftmaxRowsTest, AddsUp) {
  for (const int64_t count : kCounts) {
    GuardedBuffer row = Scores(count);
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) {
      sum += row[i];
    }
    EXPECT_NEAR(HWY_DYNAMIC_DISPATCH(CallRunSum)(row.data(), count), sum,
                static_cast<double>(count) * 5 * kUlp);
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(SoftmaxRowsTest);

// 3 heads x 40 queries x 2 blocks x 200 keys: the share of dropped weights, and
// of pairs of neighbours (keys, queries, blocks, heads) dropped together, lies
// within 5 standard deviations of what independent draws give.
TEST(DropoutTest, DropsIndependently) {
  constexpr double kProbability = 0.25;
  const auto dropped = [](int64_t head, int64_t query, int block, int64_t key) {
    return DropoutFactor(
               MakeDropoutRow(DropoutHeadSeed(9, 0, head), query, block),
               static_cast<uint32_t>(key), kProbability) == 0.0f;
  };
  double n = 0.0;
  double single = 0.0;
  double pairs[4] = {};
  for (int64_t head = 0; head < 3; ++head) {
    for (int64_t query = 0; query < 40; ++query) {
      for (int64_t key = 0; key < 200; ++key) {
        n += 1.0;
        if (!dropped(head, query, 0, key)) {
          continue;
        }
        single += 1.0;
        pairs[0] += dropped(head, query, 0, key + 1);
        pairs[1] += dropped(head, query + 1, 0, key);
        pairs[2] += dropped(head, query, 1, key);
        pairs[3] += dropped(head + 1, query, 0, key);
      }
    }
  }
  const auto expect_share = [&](double count, double share) {
    EXPECT_NEAR(count / n, share, 5 * std::sqrt(share * (1 - share) / n));
  };
  expect_share(single, kProbability);
  for (const double pair : pairs) {
    expect_share(pair, kProbability * kProbability);
  }
}

}  // namespace
}  // namespace etc::kernels
#endif  // HWY_ONCE
