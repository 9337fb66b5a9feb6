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
//   gradient = p * (product * dropout - delta) / divisor + carried_gradient
//
// `product` is context gradient . value. Null: carried_gradient (0; it may be
// previous_gradient), previous_gradient (not wanted; else it gets a copy of the
// gradient), undone (not wanted; else it gets score - own, with own the part of
// this layer in the score, and may be `scores`).
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

// Elements [begin, end). kAlone: other lanes of the same vectors of weights and
// gradients become 0; else they stay as they are.
template <bool kAlone, bool kDropout>
HWY_INLINE void Differentiate(int64_t begin, int64_t end,
                              const RowGradient& row,
                              const RowsOfGradients& rows) {
  const FloatTag tag;
  const auto keep = [&](auto lanes, FloatVector value, float* to) HWY_ATTR {
    hn::Store(lanes.Choose(value, kAlone ? hn::Zero(tag) : hn::Load(tag, to)),
              tag, to);
  };
  ForEachVector(begin, end, [&](int64_t i, auto lanes) HWY_ATTR {
    const FloatVector score = lanes.Load(rows.scores + i);
    if (rows.undone != nullptr) {
      lanes.Store(hn::Sub(score, lanes.Load(rows.own + i)), rows.undone + i);
    }
    const FloatVector p = hn::Mul(
        Exp2(AtMostZero(hn::Mul(hn::Set(tag, row.factor),
                                hn::Sub(score, hn::Set(tag, row.highest))))),
        hn::Set(tag, row.inverse_sum));
    FloatVector product = lanes.Load(rows.products + i);
    FloatVector weight = p;
    if constexpr (kDropout) {
      const FloatVector kept =
          DropoutFactors(row.dropout, static_cast<uint32_t>(row.key + i),
                         row.threshold, row.kept);
      product = hn::Mul(product, kept);
      weight = hn::Mul(p, kept);
    }
    keep(lanes, weight, rows.weights + i);
    const FloatVector centred =
        hn::Mul(hn::Sub(product, hn::Set(tag, row.delta)),
                hn::Set(tag, row.inverse_divisor));
    FloatVector gradient;
    if (rows.carried_gradient != nullptr) {
      gradient = hn::MulAdd(p, centred, lanes.Load(rows.carried_gradient + i));
    } else {
      gradient = hn::Mul(p, centred);
    }
    keep(lanes, gradient, rows.gradients + i);
    if (rows.previous_gradient != nullptr) {
      lanes.Store(gradient, rows.previous_gradient + i);
    }
  });
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
