// Rows of scores on their way from products to exponentials. Such a row begins
// at a vector's border, and whole vectors of it may be read and written; of
// other rows, of which nothing else is known, only what counts is touched.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <cstdint>
#include <limits>

#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "base/lanes-inl.h"
#include "base/random.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_ROWS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_ROWS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_ROWS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// No finite score is smaller.
inline constexpr float kLowest = std::numeric_limits<float>::lowest();

// Selects the scores to carry on, given a row of scores and the previous ones.
enum class Carry {
  kNothing,
  kScores,
  kPreviousPlusScores,
  kPreviousMinusScores,
  // Carries the sum; the row gets scores + gate * previous.
  kGatedPreviousPlusScores
};

// Rows of the previous scores and of those to carry on, at element 0 of a row
// of scores; both null: nothing is carried.
struct CarryRows {
  const float* previous = nullptr;
  float* carried = nullptr;
  bool subtract = false;
  bool is_gated = false;
  float gate = 1.0f;

  HWY_INLINE Carry kind() const {
    if (carried == nullptr) {
      return Carry::kNothing;
    }
    if (previous == nullptr) {
      return Carry::kScores;
    }
    if (subtract) {
      return Carry::kPreviousMinusScores;
    }
    return is_gated ? Carry::kGatedPreviousPlusScores
                    : Carry::kPreviousPlusScores;
  }
};

// Relative scores of the keys of a row: one for all, or one for each, of which
// whole vectors may be read.
struct SameScore {
  float score;
  HWY_INLINE FloatVector operator()(int64_t) const {
    return hn::Set(FloatTag(), score);
  }
};
struct StoredScores {
  const float* scores;  // at element 0 of a row of scores
  HWY_INLINE FloatVector operator()(int64_t i) const {
    return hn::LoadU(FloatTag(), scores + i);
  }
};

// row[i] += relative(i), then carries it on, for the given elements i; other
// lanes of the same vectors are undefined then. `most` becomes the largest of
// those elements and of its own lanes; NaN may or may not be seen.
template <Carry kCarry, typename Relative>
HWY_INLINE void CompleteScores(const SomeElements& elements,
                               const Relative& relative, const CarryRows& carry,
                               float* HWY_RESTRICT row, FloatVector* most) {
  const FloatTag tag;
  FloatVector largest = *most;
  const auto complete = [&](int64_t i, auto lanes) HWY_ATTR {
    FloatVector score = hn::Add(hn::Load(tag, row + i), relative(i));
    if constexpr (kCarry == Carry::kPreviousPlusScores) {
      score = hn::Add(lanes.Load(carry.previous + i), score);
    } else if constexpr (kCarry == Carry::kPreviousMinusScores) {
      score = hn::Sub(lanes.Load(carry.previous + i), score);
    }
    if constexpr (kCarry == Carry::kGatedPreviousPlusScores) {
      const FloatVector previous = lanes.Load(carry.previous + i);
      lanes.Store(hn::Add(previous, score), carry.carried + i);
      score = hn::MulAdd(hn::Set(tag, carry.gate), previous, score);
    } else if constexpr (kCarry != Carry::kNothing) {
      lanes.Store(score, carry.carried + i);
    }
    hn::Store(score, tag, row + i);
    largest = hn::Max(largest, lanes.Choose(score, hn::Set(tag, kLowest)));
  };
  ForEachVector(elements, complete, [](int64_t) {});
  *most = largest;
}

template <typename Relative>
HWY_INLINE void CompleteScores(const SomeElements& elements,
                               const Relative& relative, const CarryRows& carry,
                               float* row, FloatVector* most) {
  switch (carry.kind()) {
    case Carry::kNothing:
      return CompleteScores<Carry::kNothing>(elements, relative, carry, row,
                                             most);
    case Carry::kScores:
      return CompleteScores<Carry::kScores>(elements, relative, carry, row,
                                            most);
    case Carry::kPreviousPlusScores:
      return CompleteScores<Carry::kPreviousPlusScores>(elements, relative,
                                                        carry, row, most);
    case Carry::kPreviousMinusScores:
      return CompleteScores<Carry::kPreviousMinusScores>(elements, relative,
                                                         carry, row, most);
    case Carry::kGatedPreviousPlusScores:
      return CompleteScores<Carry::kGatedPreviousPlusScores>(elements, relative,
                                                             carry, row, most);
  }
}

// The parameters of the weight of a score, 2^(factor * (score - highest)). A
// dropout threshold (base/random.h) multiplies it by 0 or `kept`.
struct Exponent {
  float factor;
  float highest;  // of the scores of the row
  uint32_t threshold = 0;
  float kept = 1.0f;
};

// Turns elements of a row into weights, and adds the exponentials, before
// dropout, to `sum`. Element 0 is at key `key` of `dropout`. Other lanes of the
// same vectors, and all between elements.begin and end, become 0.
template <bool kDropout>
HWY_INLINE void Exponentiate(const SomeElements& elements,
                             const Exponent& exponent, DropoutRow dropout,
                             int64_t key, float* HWY_RESTRICT row,
                             FloatVector* sum) {
  const FloatTag tag;
  const FloatVector a = hn::Set(tag, exponent.factor);
  const FloatVector highest = hn::Set(tag, exponent.highest);
  FloatVector total = *sum;
  const auto exponentiate = [&](int64_t i, auto lanes) HWY_ATTR {
    // Not factor * score - factor * highest, which is above 0 where the
    // products are so large that their rounding is.
    FloatVector p = Exp2(hn::Mul(a, hn::Sub(hn::Load(tag, row + i), highest)));
    p = lanes.Choose(p, hn::Zero(tag));
    total = hn::Add(total, p);
    if constexpr (kDropout) {
      p = hn::Mul(p, DropoutFactors(dropout, static_cast<uint32_t>(key + i),
                                    exponent.threshold, exponent.kept));
    }
    hn::Store(p, tag, row + i);
  };
  ForEachVector(elements, exponentiate, [&](int64_t i) HWY_ATTR {
    hn::Store(hn::Zero(tag), tag, row + i);
  });
  *sum = total;
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
