// Rows of weights and score gradients against the definition in double, on
// every SIMD target this CPU has: runs that begin and end at every place of a
// vector, shorter and longer than one. Rows that come from outside lie between
// pages that may not be touched. Tolerance: 20 ulp of 1, as weights and
// gradients are below 4 and an exponent of up to 15 is itself rounded.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "tests/attention/backends/cpu/kernels/score_gradients_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/backends/cpu/kernels/reference.h"
#include "attention/backends/cpu/kernels/score_gradients-inl.h"
#include "base/random.h"
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"
#include "tests/support/each_target.h"
#include "tests/support/guarded_buffer.h"

#ifndef ETC_TESTS_SCORE_GRADIENTS_CALL_
#define ETC_TESTS_SCORE_GRADIENTS_CALL_
namespace etc::kernels {

// Arguments and outputs of a call. Pointers are at element 0; all but weights
// and gradients have elements [begin, end) only.
struct Call {
  int64_t begin;
  int64_t end;
  bool alone;
  double dropout;
  DropoutRow key;
  const float* scores;
  const float* own;
  float* undone;
  const float* products;
  const float* carried;
  float* weights;
  float* gradients;
  float* previous;
};

}  // namespace etc::kernels
#endif  // ETC_TESTS_SCORE_GRADIENTS_CALL_

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// factor, highest, inverse sum, delta and inverse divisor are 0.7, -1, 0.5,
// 0.25 and 0.125; element 0 is key 7 of dropout.
template <bool kAlone>
void DifferentiateAs(const Call& call) {
  const RowGradient row = {
      .factor = 0.7f,
      .highest = -1.0f,
      .inverse_sum = 0.5f,
      .delta = 0.25f,
      .inverse_divisor = 0.125f,
      .threshold = DropoutThreshold(call.dropout),
      .kept = static_cast<float>(1.0 / (1.0 - call.dropout)),
      .dropout = call.key,
      .key = 7};
  const RowsOfGradients rows = {.scores = call.scores,
                                .own = call.own,
                                .undone = call.undone,
                                .products = call.products,
                                .carried_gradient = call.carried,
                                .weights = call.weights,
                                .gradients = call.gradients,
                                .previous_gradient = call.previous};
  if (call.dropout > 0.0) {
    Differentiate<kAlone, true>(call.begin, call.end, row, rows);
  } else {
    Differentiate<kAlone, false>(call.begin, call.end, row, rows);
  }
}

void CallDifferentiate(const Call& call) {
  return call.alone ? DifferentiateAs<true>(call)
                    : DifferentiateAs<false>(call);
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {
namespace {

HWY_EXPORT(CallDifferentiate);

constexpr double kTolerance = 20 * 0x1p-23;
constexpr int64_t kColumns = 64;

class ScoreGradientsTest : public EachTargetTest {
 protected:
  // A row of kColumns elements, all 3.
  static hwy::AlignedFreeUniquePtr<float[]> Threes() {
    auto row = hwy::AllocateAligned<float>(kColumns);
    std::fill_n(row.get(), kColumns, 3.0f);
    return row;
  }

  void ExpectDefinition(int64_t begin, int64_t end, bool alone, bool with_all) {
    const int64_t count = end - begin;
    GuardedBuffer scores = Random(count, 5.0f), own = Random(count, 5.0f),
                  products = Random(count, 5.0f), carried = Random(count, 5.0f),
                  undone = Zeros(count), previous = Zeros(count);
    for (int64_t i = 0; i < count; ++i) {
      scores[i] -= 5.0f;  // a tenth of them above the largest
    }
    const auto weights = Threes(), gradients = Threes();
    const DropoutRow key = MakeDropoutRow(DropoutHeadSeed(5, 1, 2), 77, 1);
    const double dropout = with_all ? 0.3 : 0.0;
    const Call call = {
        .begin = begin,
        .end = end,
        .alone = alone,
        .dropout = dropout,
        .key = key,
        .scores = scores.data() - begin,
        .own = own.data() - begin,
        .undone = with_all ? undone.data() - begin : nullptr,
        .products = products.data() - begin,
        .carried = with_all ? carried.data() - begin : nullptr,
        .weights = weights.get(),
        .gradients = gradients.get(),
        .previous = with_all ? previous.data() - begin : nullptr};
    HWY_DYNAMIC_DISPATCH(CallDifferentiate)(call);
    for (int64_t i = 0; i < kColumns; ++i) {
      if (i < begin || i >= end) {
        // Only lanes of the run's own vectors may have changed, to 0.
        ASSERT_TRUE(weights[i] == 3.0f || (alone && weights[i] == 0.0f));
        ASSERT_EQ(gradients[i], weights[i]);
        continue;
      }
      const int64_t k = i - begin;
      const KeyGradient expected = DifferentiateReference(
          0.5 * std::exp2(std::min(
                    0.0, 0.7 * (static_cast<double>(scores[k]) + 1.0))),
          products[k],
          with_all ? DropoutFactor(key, static_cast<uint32_t>(7 + i), dropout)
                   : 1.0,
          0.25, 8.0, with_all ? carried[k] : 0.0);
      ASSERT_NEAR(weights[i], expected.weight, kTolerance) << i;
      ASSERT_NEAR(gradients[i], expected.score, kTolerance) << i;
      if (with_all) {
        ASSERT_EQ(previous[k], gradients[i]);
        ASSERT_EQ(undone[k], scores[k] - own[k]);
      }
    }
  }
};

TEST_P(ScoreGradientsTest, AreThoseOfTheDefinition) {
  for (const int64_t begin : {0, 1, 3, 4, 7, 8, 15, 16, 17}) {
    for (const int64_t count : {0, 1, 2, 4, 7, 9, 15, 16, 17, 31, 40, 47}) {
      for (const bool alone : {false, true}) {
        for (const bool with_all : {false, true}) {
          ExpectDefinition(begin, begin + count, alone, with_all);
        }
      }
    }
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(ScoreGradientsTest);

}  // namespace
}  // namespace etc::kernels
#endif  // HWY_ONCE
