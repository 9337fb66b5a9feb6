// Rows of scores against scalar loops in double, on every SIMD target this CPU
// has: runs that begin and end at every place of a vector, shorter and longer
// than one, and any elements between two. Rows of scores are whole vectors;
// previous and carried scores lie between pages that may not be touched.
// Tolerances: sums are exact to one rounding; exponentials 3 ulp (the
// polynomial, and the rounding of a difference of up to 30), sums of n terms n
// ulp more.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "tests/attention/backends/cpu/kernels/score_rows_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "attention/backends/cpu/kernels/reference.h"
#include "attention/backends/cpu/kernels/score_rows-inl.h"
#include "base/random.h"
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"
#include "tests/support/each_target.h"
#include "tests/support/element_bits.h"
#include "tests/support/guarded_buffer.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Each key's relative score is `relative`, or if that is null 0.25.
float CallComplete(const ElementBits& bits, const float* relative,
                   const float* previous, float* carried, bool subtract,
                   bool gated, float* row) {
  const SomeElements elements = {bits.begin(), bits.end(), bits.words(),
                                 ElementBits::kFirst};
  const CarryRows carry = {.previous = previous,
                           .carried = carried,
                           .subtract = subtract,
                           .is_gated = gated,
                           .gate = 0.375f};
  FloatVector most = hn::Set(FloatTag(), kLowest);
  if (relative == nullptr) {
    CompleteScores(elements, SameScore{0.25f}, carry, row, &most);
  } else {
    CompleteScores(elements, StoredScores{relative}, carry, row, &most);
  }
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), most));
}

float CallExponentiate(const ElementBits& bits, float factor, float highest,
                       double dropout, DropoutRow key, float* row) {
  const SomeElements elements = {bits.begin(), bits.end(), bits.words(),
                                 ElementBits::kFirst};
  const Exponent exponent = {.factor = factor,
                             .highest = highest,
                             .threshold = DropoutThreshold(dropout),
                             .kept = static_cast<float>(1.0 / (1.0 - dropout))};
  FloatVector sum = hn::Zero(FloatTag());
  if (dropout > 0.0) {
    Exponentiate<true>(elements, exponent, key, 7, row, &sum);
  } else {
    Exponentiate<false>(elements, exponent, key, 7, row, &sum);
  }
  return hn::GetLane(hn::SumOfLanes(FloatTag(), sum));
}

int64_t CallLanes() { return Lanes(); }

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {
namespace {

HWY_EXPORT(CallComplete);
HWY_EXPORT(CallExponentiate);
HWY_EXPORT(CallLanes);

constexpr double kUlp = 0x1p-23;
constexpr int64_t kColumns = 64;

class ScoreRowsTest : public EachTargetTest {
 protected:
  // Calls function(bits) for runs within a row of kColumns, whole and in parts.
  static void ForEachRun(
      const std::function<void(const ElementBits&)>& function) {
    for (const int64_t begin : {0, 1, 3, 4, 7, 8, 15, 16, 17}) {
      for (const int64_t count : {0, 1, 2, 4, 7, 9, 15, 16, 17, 31, 40, 47}) {
        for (const int kind : ElementBits::kKinds) {
          function(ElementBits(begin, begin + count, kind));
        }
      }
    }
  }

  // kColumns scores in [-5, 5).
  hwy::AlignedFreeUniquePtr<float[]> Scores() {
    auto row = hwy::AllocateAligned<float>(kColumns);
    GuardedBuffer random = Random(kColumns, 5.0f);
    std::copy_n(random.data(), kColumns, row.get());
    return row;
  }

  static std::vector<float> Copy(const float* row) {
    return std::vector<float>(row, row + kColumns);
  }
};

TEST_P(ScoreRowsTest, CompletesScoresAsTheDefinition) {
  enum class Mode { kOff, kFirst, kSum, kBack, kGated };
  ForEachRun([&](const ElementBits& bits) {
    const int64_t begin = bits.begin();
    const int64_t end = bits.end();
    for (const Mode mode :
         {Mode::kOff, Mode::kFirst, Mode::kSum, Mode::kBack, Mode::kGated}) {
      for (const bool stored : {false, true}) {
        const auto row = Scores(), relative = Scores();
        const std::vector<float> products = Copy(row.get());
        // Exactly as large as the run, between pages that may not be touched.
        GuardedBuffer previous = Random(end - begin, 5.0f);
        GuardedBuffer carried = Zeros(end - begin);
        const float largest = HWY_DYNAMIC_DISPATCH(CallComplete)(
            bits, stored ? relative.get() : nullptr,
            mode == Mode::kOff || mode == Mode::kFirst
                ? nullptr
                : previous.data() - begin,
            mode == Mode::kOff ? nullptr : carried.data() - begin,
            mode == Mode::kBack, mode == Mode::kGated, row.get());
        float expected_largest = std::numeric_limits<float>::lowest();
        for (int64_t i = begin; i < end; ++i) {
          if (!bits.Has(i)) {
            ASSERT_EQ(carried[i - begin], 0.0f) << i;
            continue;
          }
          float expected = products[i] + (stored ? relative[i] : 0.25f);
          if (mode == Mode::kSum) {
            expected = previous[i - begin] + expected;
          } else if (mode == Mode::kBack) {
            expected = previous[i - begin] - expected;
          }
          float to_carry = mode == Mode::kOff ? 0.0f : expected;
          if (mode == Mode::kGated) {
            const float below = previous[i - begin];
            to_carry = below + expected;
            // Rounded once or twice.
            ASSERT_NEAR(row[i], expected + 0.375 * below, 2e-6) << i;
            expected = row[i];
          }
          ASSERT_EQ(row[i], expected) << i;
          ASSERT_EQ(carried[i - begin], to_carry);
          expected_largest = std::max(expected_largest, expected);
        }
        ASSERT_EQ(largest, expected_largest) << begin << " to " << end;
      }
    }
  });
}

TEST_P(ScoreRowsTest, ExponentiatesAndDropsAsTheDefinition) {
  const float factor = 1.442695f;
  const DropoutRow key = MakeDropoutRow(DropoutHeadSeed(5, 1, 2), 77, 1);
  const int64_t lanes = HWY_DYNAMIC_DISPATCH(CallLanes)();
  ForEachRun([&](const ElementBits& bits) {
    const int64_t begin = bits.begin();
    const int64_t end = bits.end();
    for (const double dropout : {0.0, 0.3}) {
      const auto row = Scores();
      const std::vector<float> scores = Copy(row.get());
      std::vector<float> seen;
      for (int64_t i = begin; i < end; ++i) {
        if (bits.Has(i)) {
          seen.push_back(scores[i]);
        }
      }
      const float highest =
          seen.empty() ? 0.0f : *std::max_element(seen.begin(), seen.end());
      std::vector<double> expected(seen.size());
      const auto count = static_cast<int64_t>(seen.size());
      const double sum = ExponentiateReference(count, seen.data(), factor,
                                               highest, expected.data());
      const float actual = HWY_DYNAMIC_DISPATCH(CallExponentiate)(
          bits, factor, highest, dropout, key, row.get());
      EXPECT_NEAR(actual, sum, static_cast<double>(count + 3) * kUlp * sum);
      // Vectors of the run, others of which are not touched.
      const int64_t first = begin / lanes * lanes;
      const int64_t last = (end + lanes - 1) / lanes * lanes;
      size_t n = 0;
      for (int64_t i = 0; i < kColumns; ++i) {
        if (bits.Has(i)) {
          const double weight =
              expected[n++] *
              (dropout > 0.0
                   ? DropoutFactor(key, static_cast<uint32_t>(7 + i), dropout)
                   : 1.0);
          // An exponent of up to 15 is itself rounded to 2^-21.
          ASSERT_NEAR(row[i], weight, 11 * kUlp * weight) << i;
        } else {
          const bool cleared = begin < end && i >= first && i < last;
          ASSERT_EQ(row[i], cleared ? 0.0f : scores[i]) << i;
        }
      }
    }
  });
}

TEST_P(ScoreRowsTest, ExponentiatesExactlyAtWholeNumbersAndAtTheEnds) {
  const auto row = Scores();
  row[0] = 0.0f;
  row[1] = -1.0f;
  row[2] = -124.0f;
  row[3] = std::numeric_limits<float>::lowest();
  row[4] = std::numeric_limits<float>::quiet_NaN();
  row[5] = -std::numeric_limits<float>::infinity();
  HWY_DYNAMIC_DISPATCH(CallExponentiate)
  (ElementBits(0, 6, ElementBits::kAll), 1.0f, 0.0f, 0.0, {}, row.get());
  EXPECT_EQ(row[0], 1.0f);
  EXPECT_EQ(row[1], 0.5f);
  EXPECT_EQ(row[2], 0x1p-124f);
  EXPECT_TRUE(std::isnan(row[4]));
  for (const int64_t i : {3, 5}) {
    EXPECT_GE(row[i], 0.0f) << i;
    EXPECT_LE(row[i], 0x1p-124f) << i;
  }
}

// The product with the factor is rounded by more than 64 here; the largest
// exponent must be 0 all the same, and the others keep their distance below it.
TEST_P(ScoreRowsTest, ExponentiatesScoresOfABillion) {
  const float factor = 1.442695f / 24.0f;
  const float highest = 1000000512.0f;
  const auto row = Scores();
  for (int64_t i = 0; i < kColumns; ++i) {
    row[i] = highest - 64.0f * static_cast<float>(i % 9);
  }
  HWY_DYNAMIC_DISPATCH(CallExponentiate)
  (ElementBits(0, kColumns, ElementBits::kAll), factor, highest, 0.0, {},
   row.get());
  for (int64_t i = 0; i < kColumns; ++i) {
    const double weight = std::exp2(-64.0 * static_cast<double>(factor) *
                                    static_cast<double>(i % 9));
    ASSERT_NEAR(row[i], weight, 20 * kUlp * weight) << i;
  }
  EXPECT_EQ(row[0], 1.0f);
}

ETC_INSTANTIATE_FOR_EACH_TARGET(ScoreRowsTest);

}  // namespace
}  // namespace etc::kernels
#endif  // HWY_ONCE
