#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/nn/kernels/adam.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "base/lanes-inl.h"
#include "etc/nn/kernels/adam.h"
#include "hwy/highway.h"

#ifndef ETC_ETC_NN_KERNELS_ADAM_ROW_
#define ETC_ETC_NN_KERNELS_ADAM_ROW_
namespace etc::kernels {
// Elements whose squares are summed in float.
inline constexpr int64_t kSquaresRow = 1024;
}  // namespace etc::kernels
#endif  // ETC_ETC_NN_KERNELS_ADAM_ROW_

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE FloatVector SetFrom(double value) {
  return hn::Set(FloatTag(), static_cast<float>(value));
}

struct Means {
  FloatVector mean;
  FloatVector mean_square;
};

// Returns the next means of the vector at element i.
template <typename SomeOrAllLanes>
HWY_INLINE Means NextMeans(const AdamStep& step, const AdamElements& elements,
                           int64_t i, SomeOrAllLanes lanes) {
  const FloatVector gradient =
      hn::Mul(lanes.Load(elements.gradient + i), SetFrom(step.gradient_factor));
  const FloatVector mean =
      hn::MulAdd(SetFrom(1.0 - step.beta1), gradient,
                 hn::Mul(SetFrom(step.beta1), lanes.Load(elements.mean + i)));
  const FloatVector mean_square = hn::MulAdd(
      hn::Mul(SetFrom(1.0 - step.beta2), gradient), gradient,
      hn::Mul(SetFrom(step.beta2), lanes.Load(elements.mean_square + i)));
  lanes.Store(mean, elements.mean + i);
  lanes.Store(mean_square, elements.mean_square + i);
  return {.mean = mean, .mean_square = mean_square};
}

HWY_INLINE FloatVector Direction(const AdamStep& step, const Means& means,
                                 FloatVector parameter) {
  const FloatVector divisor =
      hn::MulAdd(SetFrom(step.root_factor), hn::Sqrt(means.mean_square),
                 SetFrom(step.epsilon));
  return hn::MulAdd(SetFrom(step.decay), parameter,
                    hn::Div(means.mean, divisor));
}

void UpdateParameterImpl(const AdamStep& step, const AdamElements& elements) {
  ForEachVector(0, elements.count, [&](int64_t i, auto lanes) HWY_ATTR {
    const Means means = NextMeans(step, elements, i, lanes);
    const FloatVector parameter = lanes.Load(elements.parameter + i);
    lanes.Store(hn::NegMulAdd(SetFrom(step.rate),
                              Direction(step, means, parameter), parameter),
                elements.parameter + i);
  });
}

SquaredNorms UpdateMeansImpl(const AdamStep& step,
                             const AdamElements& elements) {
  const FloatTag tag;
  SquaredNorms norms;
  for (int64_t begin = 0; begin < elements.count; begin += kSquaresRow) {
    FloatVector parameters = hn::Zero(tag);
    FloatVector directions = hn::Zero(tag);
    ForEachVector(
        begin, std::min(begin + kSquaresRow, elements.count),
        [&](int64_t i, auto lanes) HWY_ATTR {
          const Means means = NextMeans(step, elements, i, lanes);
          const FloatVector parameter = lanes.Load(elements.parameter + i);
          // Beyond the end both are 0.
          const FloatVector direction = Direction(step, means, parameter);
          parameters = hn::MulAdd(parameter, parameter, parameters);
          directions = hn::MulAdd(direction, direction, directions);
        });
    norms.parameter +=
        static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, parameters)));
    norms.direction +=
        static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, directions)));
  }
  return norms;
}

void MoveParameterImpl(const AdamStep& step, const AdamElements& elements) {
  ForEachVector(0, elements.count, [&](int64_t i, auto lanes) HWY_ATTR {
    const Means means = {.mean = lanes.Load(elements.mean + i),
                         .mean_square = lanes.Load(elements.mean_square + i)};
    const FloatVector parameter = lanes.Load(elements.parameter + i);
    lanes.Store(hn::NegMulAdd(SetFrom(step.rate),
                              Direction(step, means, parameter), parameter),
                elements.parameter + i);
  });
}

double SquaredNormImpl(int64_t count, const float* values) {
  const FloatTag tag;
  double norm = 0.0;
  for (int64_t begin = 0; begin < count; begin += kSquaresRow) {
    FloatVector squares = hn::Zero(tag);
    ForEachVector(begin, std::min(begin + kSquaresRow, count),
                  [&](int64_t i, auto lanes) HWY_ATTR {
                    const FloatVector x = lanes.Load(values + i);
                    squares = hn::MulAdd(x, x, squares);
                  });
    norm += static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, squares)));
  }
  return norm;
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(UpdateParameterImpl);
HWY_EXPORT(UpdateMeansImpl);
HWY_EXPORT(MoveParameterImpl);
HWY_EXPORT(SquaredNormImpl);

void UpdateParameter(const AdamStep& step, const AdamElements& elements) {
  HWY_DYNAMIC_DISPATCH(UpdateParameterImpl)(step, elements);
}

SquaredNorms UpdateMeans(const AdamStep& step, const AdamElements& elements) {
  return HWY_DYNAMIC_DISPATCH(UpdateMeansImpl)(step, elements);
}

void MoveParameter(const AdamStep& step, const AdamElements& elements) {
  HWY_DYNAMIC_DISPATCH(MoveParameterImpl)(step, elements);
}

double SquaredNorm(int64_t count, const float* values) {
  return HWY_DYNAMIC_DISPATCH(SquaredNormImpl)(count, values);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
