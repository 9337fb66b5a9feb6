#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/nn/kernels/smoothed_loss.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include <cmath>

#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "etc/nn/kernels/smoothed_loss.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

constexpr double kLog2E = 1.4426950408889634;
// Elements that are summed in float32: errors do not grow with the columns.
constexpr int64_t kSummedAtOnce = 512;

HWY_INLINE float Largest(const float* row, int64_t columns) {
  const FloatTag tag;
  FloatVector most = hn::Set(tag, row[0]);
  const int64_t lanes = Lanes();
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    most = hn::Max(most, hn::LoadU(tag, row + c));
  }
  float largest = hn::GetLane(hn::MaxOfLanes(tag, most));
  for (; c < columns; ++c) {
    largest = row[c] > largest ? row[c] : largest;
  }
  return largest;
}

struct RowSums {
  double logits = 0;
  double exponentials = 0;
};

// row = exp(row - most); returns the sums of both.
HWY_INLINE RowSums Exponentiate(float most, int64_t columns, float* row) {
  const FloatTag tag;
  const FloatVector scale = hn::Set(tag, static_cast<float>(kLog2E));
  const FloatVector largest = hn::Set(tag, most);
  RowSums sums;
  for (int64_t begin = 0; begin < columns; begin += kSummedAtOnce) {
    const int64_t count =
        columns - begin < kSummedAtOnce ? columns - begin : kSummedAtOnce;
    float* const part = row + begin;
    sums.logits += static_cast<double>(RunSum(part, count));
    ForEachVector(0, count, [&](int64_t i, auto lanes) HWY_ATTR {
      const FloatVector below = hn::Sub(lanes.Load(part + i), largest);
      lanes.Store(Exp2(hn::Mul(below, scale)), part + i);
    });
    sums.exponentials += static_cast<double>(RunSum(part, count));
  }
  return sums;
}

// row = row * factor - summand.
HWY_INLINE void ScaleAndSubtract(float factor, float summand, int64_t columns,
                                 float* row) {
  const FloatTag tag;
  ForEachVector(0, columns, [&](int64_t i, auto lanes) HWY_ATTR {
    lanes.Store(hn::MulSub(lanes.Load(row + i), hn::Set(tag, factor),
                           hn::Set(tag, summand)),
                row + i);
  });
}

void LossImpl(const SmoothedLossRows& rows, int64_t begin, int64_t end) {
  const auto columns = static_cast<double>(rows.columns);
  for (int64_t r = begin; r < end; ++r) {
    float* const row = rows.logits + r * rows.columns;
    const int64_t target = rows.targets[r];
    const auto logit = static_cast<double>(row[target]);
    const float most = Largest(row, rows.columns);
    const RowSums sums = Exponentiate(most, rows.columns, row);
    const double nll =
        static_cast<double>(most) + std::log(sums.exponentials) - logit;
    rows.nll[r] = nll;
    rows.loss[r] = nll + rows.smoothing * (logit - sums.logits / columns);
    ScaleAndSubtract(static_cast<float>(1.0 / sums.exponentials),
                     static_cast<float>(rows.smoothing / columns), rows.columns,
                     row);
    row[target] -= static_cast<float>(1.0 - rows.smoothing);
  }
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(LossImpl);

void SmoothedLoss(const SmoothedLossRows& rows, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LossImpl)(rows, begin, end);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
