// Rows of weights and of gradients of scores. They begin at a vector's border,
// and whole vectors of them may be written; of other rows only what counts is
// touched. Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <cstdint>

#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "base/lanes-inl.h"
#include "base/random.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_GRADIENTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_GRADIENTS_INL_H_
#undef ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_GRADIENTS_INL_H_
#else
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_SCORE_GRADIENTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// Constants of one query for the gradients of its row of scores.
struct RowGradient {
  float factor;       // of the scores, as in Exponent
  float highest;      // idem
  float inverse_sum;  // of the exponentials
  float delta;        // context . context gradient
  float inverse_divisor;
  float gate = 1.0f;
  // Dropout, as in Exponent; element 0 is at key `key`.
  uint32_t threshold = 0;
  float kept = 1.0f;
  DropoutRow dropout = {};
  int64_t key = 0;
};

// Rows, all at the same key. With p = 2^(factor * (score - highest)) *
// inverse_sum, the exponent at most 0 (scores that were brought back by
// subtraction may be above the highest by their rounding):
//
//   weight   = p * dropout
//   inner    = p * (product * dropout - delta) / divisor
//   gradient = inner + carried_gradient
//   previous_gradient = gradient
//
// A gated row differs: with previous = score - own, p has own + gate * previous
// for its score, and
//
//   previous_gradient = gate * inner + carried_gradient
//   gate gradient    += inner * previous
//
// where p is 0 below 2^kLowestExponent * inverse_sum. `product` is context
// gradient . value. Null: carried_gradient (0; it may be previous_gradient),
// previous_gradient (not wanted), undone (not wanted; else it gets score - own,
// with own the part of this layer in the score, and may be `scores`).
struct RowsOfGradients {
  const float* scores;
  const float* own;
  float* undone;
  const float* products;
  const float* carried_gradient;
  float* weights;
  float* gradients;
  float* previous_gradient;
};

// Returns element i of the logits times the divisor, after it has undone the
// layer. `previous` is set for a gated row alone.
template <bool kGated, typename VectorLanes>
HWY_INLINE FloatVector Logit(int64_t i, const VectorLanes& lanes,
                             const RowGradient& row,
                             const RowsOfGradients& rows,
                             FloatVector* previous) {
  const FloatVector score = lanes.Load(rows.scores + i);
  if constexpr (kGated) {
    const FloatVector own = lanes.Load(rows.own + i);
    *previous = hn::Sub(score, own);
    if (rows.undone != nullptr) {
      lanes.Store(*previous, rows.undone + i);
    }
    return hn::MulAdd(hn::Set(FloatTag(), row.gate), *previous, own);
  }
  if (rows.undone != nullptr) {
    lanes.Store(hn::Sub(score, lanes.Load(rows.own + i)), rows.undone + i);
  }
  return score;
}

// Returns p (RowsOfGradients) of scores that are logits times the divisor.
template <bool kGated>
HWY_INLINE FloatVector Probability(FloatVector score, const RowGradient& row) {
  const FloatTag tag;
  const FloatVector exponent = AtMostZero(hn::Mul(
      hn::Set(tag, row.factor), hn::Sub(score, hn::Set(tag, row.highest))));
  const FloatVector p = hn::Mul(Exp2(exponent), hn::Set(tag, row.inverse_sum));
  if constexpr (kGated) {
    // The gate's gradient multiplies p by a previous score, which may be as low
    // as the lowest float of a hidden key: what Exp2 leaves would count.
    return hn::IfThenZeroElse(hn::Lt(exponent, hn::Set(tag, kLowestExponent)),
                              p);
  }
  return p;
}

// The given elements; other lanes of the same vectors of weights and gradients,
// and all between elements.begin and end, become 0. `gate_gradient` is of gated
// rows alone.
template <bool kDropout, bool kGated>
HWY_INLINE void Differentiate(const SomeElements& elements,
                              const RowGradient& row,
                              const RowsOfGradients& rows,
                              FloatVector* gate_gradient) {
  const FloatTag tag;
  FloatVector gate_sum = *gate_gradient;
  const auto differentiate = [&](int64_t i, auto lanes) HWY_ATTR {
    FloatVector previous;
    const FloatVector score = Logit<kGated>(i, lanes, row, rows, &previous);
    const FloatVector p = Probability<kGated>(score, row);
    FloatVector product = lanes.Load(rows.products + i);
    FloatVector weight = p;
    if constexpr (kDropout) {
      const FloatVector kept =
          DropoutFactors(row.dropout, static_cast<uint32_t>(row.key + i),
                         row.threshold, row.kept);
      product = hn::Mul(product, kept);
      weight = hn::Mul(p, kept);
    }
    hn::Store(lanes.Choose(weight, hn::Zero(tag)), tag, rows.weights + i);
    const FloatVector centred =
        hn::Mul(hn::Sub(product, hn::Set(tag, row.delta)),
                hn::Set(tag, row.inverse_divisor));
    FloatVector gradient, previous_gradient;
    if constexpr (kGated) {
      const FloatVector inner = hn::Mul(p, centred);
      const FloatVector carried = rows.carried_gradient != nullptr
                                      ? lanes.Load(rows.carried_gradient + i)
                                      : hn::Zero(tag);
      gradient = hn::Add(inner, carried);
      previous_gradient = hn::MulAdd(hn::Set(tag, row.gate), inner, carried);
      gate_sum = hn::Add(gate_sum,
                         lanes.Choose(hn::Mul(inner, previous), hn::Zero(tag)));
    } else {
      if (rows.carried_gradient != nullptr) {
        gradient =
            hn::MulAdd(p, centred, lanes.Load(rows.carried_gradient + i));
      } else {
        gradient = hn::Mul(p, centred);
      }
      previous_gradient = gradient;
    }
    hn::Store(lanes.Choose(gradient, hn::Zero(tag)), tag, rows.gradients + i);
    if (rows.previous_gradient != nullptr) {
      lanes.Store(previous_gradient, rows.previous_gradient + i);
    }
  };
  ForEachVector(elements, differentiate, [&](int64_t i) HWY_ATTR {
    hn::Store(hn::Zero(tag), tag, rows.weights + i);
    hn::Store(hn::Zero(tag), tag, rows.gradients + i);
  });
  *gate_gradient = gate_sum;
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
