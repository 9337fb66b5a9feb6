// Rows of weights and score gradients against the definition in double, on
// every SIMD target this CPU has: runs that begin and end at every place of a
// vector, shorter and longer than one, and any elements between two. Rows that
// come from outside lie between pages that may not be touched. Tolerance: 20
// ulp of 1, as weights and gradients are below 4 and an exponent of up to 15 is
// itself rounded.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "tests/attention/backends/cpu/kernels/score_gradients_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/backends/cpu/kernels/reference.h"
#include "attention/backends/cpu/kernels/score_gradients-inl.h"
#include "base/random.h"
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"
#include "tests/support/each_target.h"
#include "tests/support/element_bits.h"
#include "tests/support/guarded_buffer.h"

#ifndef ETC_TESTS_SCORE_GRADIENTS_CALL_
#define ETC_TESTS_SCORE_GRADIENTS_CALL_
namespace etc::kernels {

// Arguments and outputs of a call. Pointers are at element 0; all but weights
// and gradients have elements from the first to the last of `bits` only.
struct Call {
  const ElementBits* bits;
  bool gated;
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
  float gate_gradient;  // is set
};

}  // namespace etc::kernels
#endif  // ETC_TESTS_SCORE_GRADIENTS_CALL_

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// factor, highest, inverse sum, delta, inverse divisor and gate are 0.7, -1,
// 0.5, 0.25, 0.125 (1 of a gated row) and 0.375; element 0 is key 7 of dropout.
template <bool kGated>
void DifferentiateAs(Call* of) {
  const Call& call = *of;
  const RowGradient row = {
      .factor = 0.7f,
      .highest = -1.0f,
      .inverse_sum = 0.5f,
      .delta = 0.25f,
      .inverse_divisor = kGated ? 1.0f : 0.125f,
      .gate = 0.375f,
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
  FloatVector sum = hn::Zero(FloatTag());
  const SomeElements elements = {call.bits->begin(), call.bits->end(),
                                 call.bits->words(), ElementBits::kFirst};
  if (call.dropout > 0.0) {
    Differentiate<true, kGated>(elements, row, rows, &sum);
  } else {
    Differentiate<false, kGated>(elements, row, rows, &sum);
  }
  of->gate_gradient = hn::GetLane(hn::SumOfLanes(FloatTag(), sum));
}

void CallDifferentiate(Call* call) {
  return call->gated ? DifferentiateAs<true>(call)
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

  // A call on random rows of [begin, end), and what it found.
  struct Rows {
    Rows(ScoreGradientsTest* test, int64_t count)
        : scores(test->Random(count, 5.0f)),
          own(test->Random(count, 5.0f)),
          products(test->Random(count, 5.0f)),
          carried(test->Random(count, 5.0f)),
          undone(Zeros(count)),
          previous(Zeros(count)) {}

    Call Make(const ElementBits& bits, bool with_all) {
      const int64_t begin = bits.begin();
      return {.bits = &bits,
              .dropout = with_all ? 0.3 : 0.0,
              .key = MakeDropoutRow(DropoutHeadSeed(5, 1, 2), 77, 1),
              .scores = scores.data() - begin,
              .own = own.data() - begin,
              .undone = with_all ? undone.data() - begin : nullptr,
              .products = products.data() - begin,
              .carried = with_all ? carried.data() - begin : nullptr,
              .weights = weights.get(),
              .gradients = gradients.get(),
              .previous = with_all ? previous.data() - begin : nullptr};
    }

    GuardedBuffer scores, own, products, carried, undone, previous;
    hwy::AlignedFreeUniquePtr<float[]> weights = Threes();
    hwy::AlignedFreeUniquePtr<float[]> gradients = Threes();
  };

  // The factor of dropout of element i.
  static double FactorAt(const Call& call, int64_t i) {
    return call.dropout > 0.0
               ? DropoutFactor(call.key, static_cast<uint32_t>(7 + i),
                               call.dropout)
               : 1.0;
  }

  static double Probability(double score) {
    return 0.5 * std::exp2(std::min(0.0, 0.7 * (score + 1.0)));
  }

  void ExpectGatedDefinition(const ElementBits& bits, bool with_all) {
    const int64_t begin = bits.begin();
    const int64_t end = bits.end();
    Rows rows(this, end - begin);
    for (int64_t i = 0; i < end - begin; ++i) {
      rows.scores[i] -= 5.0f;
    }
    // A key that was hidden before has no part in the gate's gradient.
    if (begin < end) {
      rows.scores[end - begin - 1] = std::numeric_limits<float>::lowest();
    }
    Call call = rows.Make(bits, with_all);
    call.gated = true;
    HWY_DYNAMIC_DISPATCH(CallDifferentiate)(&call);
    double gate_gradient = 0.0;
    double magnitude = 1.0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i - begin;
      if (!bits.Has(i)) {
        ASSERT_EQ(rows.previous[k], 0.0f) << i;
        ASSERT_EQ(rows.undone[k], 0.0f) << i;
        continue;
      }
      const double below = static_cast<double>(rows.scores[k]) - rows.own[k];
      const GatedKeyGradient expected = DifferentiateGatedReference(
          Probability(rows.own[k] + 0.375 * below), rows.products[k],
          FactorAt(call, i), 0.25, 0.375, below,
          with_all ? rows.carried[k] : 0.0);
      // The score is rounded before it is an exponent.
      ASSERT_NEAR(rows.weights[i], expected.weight, 2 * kTolerance) << i;
      ASSERT_NEAR(rows.gradients[i], expected.score, 4 * kTolerance) << i;
      if (with_all) {
        ASSERT_NEAR(rows.previous[k], expected.previous, 4 * kTolerance) << i;
        ASSERT_EQ(rows.undone[k], rows.scores[k] - rows.own[k]) << i;
      }
      gate_gradient += expected.gate;
      magnitude += std::abs(expected.gate);
    }
    ASSERT_NEAR(call.gate_gradient, gate_gradient, kTolerance * magnitude);
  }

  void ExpectDefinition(const ElementBits& bits, bool with_all) {
    const int64_t begin = bits.begin();
    const int64_t end = bits.end();
    Rows rows(this, end - begin);
    for (int64_t i = 0; i < end - begin; ++i) {
      rows.scores[i] -= 5.0f;  // a tenth of them above the largest
    }
    Call call = rows.Make(bits, with_all);
    HWY_DYNAMIC_DISPATCH(CallDifferentiate)(&call);
    for (int64_t i = 0; i < kColumns; ++i) {
      if (!bits.Has(i)) {
        // Zeros in the vectors of the run; no others have changed.
        ASSERT_TRUE(rows.weights[i] == 0.0f ||
                    (rows.weights[i] == 3.0f && (i < begin || i >= end)));
        ASSERT_EQ(rows.gradients[i], rows.weights[i]);
        if (i >= begin && i < end) {
          ASSERT_EQ(rows.previous[i - begin], 0.0f) << i;
          ASSERT_EQ(rows.undone[i - begin], 0.0f) << i;
        }
        continue;
      }
      const int64_t k = i - begin;
      const KeyGradient expected = DifferentiateReference(
          Probability(rows.scores[k]), rows.products[k], FactorAt(call, i),
          0.25, 8.0, with_all ? rows.carried[k] : 0.0);
      ASSERT_NEAR(rows.weights[i], expected.weight, kTolerance) << i;
      ASSERT_NEAR(rows.gradients[i], expected.score, kTolerance) << i;
      if (with_all) {
        ASSERT_EQ(rows.previous[k], rows.gradients[i]);
        ASSERT_EQ(rows.undone[k], rows.scores[k] - rows.own[k]);
      }
    }
  }
};

TEST_P(ScoreGradientsTest, AreThoseOfTheDefinition) {
  for (const int64_t begin : {0, 1, 3, 4, 7, 8, 15, 16, 17}) {
    for (const int64_t count : {0, 1, 2, 4, 7, 9, 15, 16, 17, 31, 40, 47}) {
      for (const int kind : ElementBits::kKinds) {
        const ElementBits bits(begin, begin + count, kind);
        for (const bool with_all : {false, true}) {
          ExpectDefinition(bits, with_all);
          ExpectGatedDefinition(bits, with_all);
        }
      }
    }
  }
}

ETC_INSTANTIATE_FOR_EACH_TARGET(ScoreGradientsTest);

}  // namespace
}  // namespace etc::kernels
#endif  // HWY_ONCE
