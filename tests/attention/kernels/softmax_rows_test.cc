// Runs of score rows against scalar loops in double, on every SIMD target this
// CPU has. Lengths straddle 4, 8 and 16 lanes, so that each tail is run; every
// run lies between pages that may not be touched, so that reads and writes
// beyond it end the test. Tolerances: sums of n terms n ulp.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/attention/kernels/softmax_rows_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "attention/kernels/dropout.h"
#include "attention/kernels/reference.h"
#include "attention/kernels/softmax_rows-inl.h"
#include "hwy/highway.h"
#include "tests/support/each_target.h"
#include "tests/support/guarded_buffer.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

void CallAddToRun(float summand, int64_t count, float* row) {
  AddToRun(summand, count, row);
}
float CallRunSum(const float* row, int64_t count) { return RunSum(row, count); }
void CallDropoutRun(DropoutRow row, uint32_t key, uint32_t threshold,
                    float kept, int64_t count, float* factors) {
  DropoutRun(row, key, threshold, kept, count, factors);
}

// factor, shift, inverse sum, delta and inverse divisor are 0.7, 0.3, 0.5,
// 0.25 and 0.125. `factors` and `carried` may be null.
void CallDifferentiate(int64_t count, const float* scores,
                       const float* products, const float* factors,
                       const float* carried, float* weights, float* gradients,
                       float* previous) {
  DifferentiateRun({.factor = 0.7f,
                    .shift = 0.3f,
                    .inverse_sum = 0.5f,
                    .delta = 0.25f,
                    .inverse_divisor = 0.125f},
                   {.scores = scores,
                    .products = products,
                    .factors = factors,
                    .carried_gradient = carried,
                    .weights = weights,
                    .gradients = gradients,
                    .previous_gradient = previous},
                   count);
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {
namespace {

HWY_EXPORT(CallAddToRun);
HWY_EXPORT(CallRunSum);
HWY_EXPORT(CallDropoutRun);
HWY_EXPORT(CallDifferentiate);

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

TEST_P(SoftmaxRowsTest, DifferentiatesAsTheDefinition) {
  for (const int64_t count : kCounts) {
    for (const bool with_all : {false, true}) {
      GuardedBuffer scores = Scores(count), products = Scores(count),
                    factors = Scores(count), carried = Scores(count),
                    weights = Zeros(count), gradients = Zeros(count),
                    previous = Zeros(count);
      for (int64_t i = 0; i < count; ++i) {
        scores[i] -= 5.0f;  // below the largest
      }
      HWY_DYNAMIC_DISPATCH(CallDifferentiate)
      (count, scores.data(), products.data(),
       with_all ? factors.data() : nullptr, with_all ? carried.data() : nullptr,
       weights.data(), gradients.data(), with_all ? previous.data() : nullptr);
      for (int64_t i = 0; i < count; ++i) {
        const KeyGradient expected = DifferentiateReference(
            0.5 * std::exp2(0.7 * static_cast<double>(scores[i]) - 0.3),
            products[i], with_all ? factors[i] : 1.0, 0.25, 8.0,
            with_all ? carried[i] : 0.0);
        ASSERT_NEAR(weights[i], expected.weight, 20 * kUlp);
        ASSERT_NEAR(gradients[i], expected.score, 20 * kUlp);
        if (with_all) {
          ASSERT_EQ(previous[i], gradients[i]);
        }
      }
    }
  }
}

TEST_P(SoftmaxRowsTest, DropsAsTheDefinition) {
  constexpr double kProbability = 0.3;
  const DropoutRow key = MakeDropoutRow(DropoutHeadSeed(5, 1, 2), 77, 1);
  for (const int64_t count : kCounts) {
    GuardedBuffer factors = Zeros(count);
    HWY_DYNAMIC_DISPATCH(CallDropoutRun)
    (key, 1000, DropoutThreshold(kProbability),
     static_cast<float>(1.0 / (1.0 - kProbability)), count, factors.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(factors[i], DropoutFactor(key, static_cast<uint32_t>(1000 + i),
                                          kProbability));
    }
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
