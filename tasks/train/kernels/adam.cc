#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tasks/train/kernels/adam.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/kernels/lanes-inl.h"
#include "hwy/highway.h"
#include "tasks/train/kernels/adam.h"

#ifndef ETC_TASKS_TRAIN_KERNELS_ADAM_ROW_
#define ETC_TASKS_TRAIN_KERNELS_ADAM_ROW_
namespace etc::kernels {
// Elements whose squares are summed in float.
inline constexpr int64_t kSquaresRow = 1024;
}  // namespace etc::kernels
#endif  // ETC_TASKS_TRAIN_KERNELS_ADAM_ROW_

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE FloatVector SetFrom(double value) {
  return hn::Set(FloatTag(), static_cast<float>(value));
}

// A vector of elements: all of its lanes, or the first few.
struct Part {
  int64_t first;
  int64_t count;

  HWY_INLINE FloatVector Load(const float* from) const {
    return count == Lanes() ? hn::LoadU(FloatTag(), from + first)
                            : LoadLanes(from + first, 0, count);
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
    if (count == Lanes()) {
      hn::StoreU(vector, FloatTag(), to + first);
    } else {
      StoreLanes(vector, 0, count, to + first);
    }
  }
};

template <typename Function>
HWY_INLINE void ForEachPart(int64_t begin, int64_t end,
                            const Function& function) {
  const int64_t lanes = Lanes();
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    function(Part{i, lanes});
  }
  if (i < end) {
    function(Part{i, end - i});
  }
}

struct Means {
  FloatVector mean;
  FloatVector mean_square;
};

HWY_INLINE Means NextMeans(const AdamStep& step, const AdamElements& elements,
                           Part part) {
  const FloatVector gradient =
      hn::Mul(part.Load(elements.gradient), SetFrom(step.gradient_factor));
  const FloatVector mean =
      hn::MulAdd(SetFrom(1.0 - step.beta1), gradient,
                 hn::Mul(SetFrom(step.beta1), part.Load(elements.mean)));
  const FloatVector mean_square =
      hn::MulAdd(hn::Mul(SetFrom(1.0 - step.beta2), gradient), gradient,
                 hn::Mul(SetFrom(step.beta2), part.Load(elements.mean_square)));
  part.Store(mean, elements.mean);
  part.Store(mean_square, elements.mean_square);
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
  ForEachPart(0, elements.count, [&](Part part) HWY_ATTR {
    const Means means = NextMeans(step, elements, part);
    const FloatVector parameter = part.Load(elements.parameter);
    part.Store(hn::NegMulAdd(SetFrom(step.rate),
                             Direction(step, means, parameter), parameter),
               elements.parameter);
  });
}

SquaredNorms UpdateMeansImpl(const AdamStep& step,
                             const AdamElements& elements) {
  const FloatTag tag;
  SquaredNorms norms;
  for (int64_t begin = 0; begin < elements.count; begin += kSquaresRow) {
    FloatVector parameters = hn::Zero(tag);
    FloatVector directions = hn::Zero(tag);
    ForEachPart(begin, std::min(begin + kSquaresRow, elements.count),
                [&](Part part) HWY_ATTR {
                  const Means means = NextMeans(step, elements, part);
                  const FloatVector parameter = part.Load(elements.parameter);
                  // Beyond the end both are 0.
                  const FloatVector direction =
                      Direction(step, means, parameter);
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
  ForEachPart(0, elements.count, [&](Part part) HWY_ATTR {
    const Means means = {.mean = part.Load(elements.mean),
                         .mean_square = part.Load(elements.mean_square)};
    const FloatVector parameter = part.Load(elements.parameter);
    part.Store(hn::NegMulAdd(SetFrom(step.rate),
                             Direction(step, means, parameter), parameter),
               elements.parameter);
  });
}

double SquaredNormImpl(int64_t count, const float* values) {
  const FloatTag tag;
  double norm = 0.0;
  for (int64_t begin = 0; begin < count; begin += kSquaresRow) {
    FloatVector squares = hn::Zero(tag);
    ForEachPart(begin, std::min(begin + kSquaresRow, count),
                [&](Part part) HWY_ATTR {
                  const FloatVector x = part.Load(values);
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
