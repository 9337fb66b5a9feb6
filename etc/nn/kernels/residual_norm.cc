#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/nn/kernels/residual_norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/backends/cpu/kernels/softmax_rows-inl.h"
#include "base/lanes-inl.h"
#include "etc/nn/kernels/residual_norm.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

// Dropout of one row.
struct RowDropout {
  HWY_INLINE RowDropout(double probability, uint64_t seed, int64_t row)
      : key(MakeDropoutRow(seed, row, 0)),
        threshold(DropoutThreshold(probability)),
        kept(static_cast<float>(1.0 / (1.0 - probability))) {}
  HWY_INLINE FloatVector Factors(int64_t column) const {
    return DropoutFactors(key, static_cast<uint32_t>(column), threshold, kept);
  }
  DropoutRow key;
  uint32_t threshold;
  float kept;
};

// sum = residual + dropout(change + bias); returns the total of the row.
template <bool kDropout>
HWY_INLINE float SumRow(const ResidualRows& rows, int64_t row,
                        float* HWY_RESTRICT sum) {
  const int64_t columns = rows.columns;
  const float* const change = rows.change + row * columns;
  const RowDropout dropout(rows.dropout, rows.dropout_seed,
                           rows.first_row + row);
  FloatVector total = hn::Zero(FloatTag());
  ForEachVector(0, columns, [&](int64_t c, auto lanes) HWY_ATTR {
    FloatVector x = lanes.Load(change + c);
    if (rows.bias != nullptr) {
      x = hn::Add(x, lanes.Load(rows.bias + c));
    }
    if constexpr (kDropout) {
      x = hn::Mul(x, dropout.Factors(c));
    }
    if (rows.residual != nullptr) {
      x = hn::Add(x, lanes.Load(rows.residual + row * columns + c));
    }
    lanes.Store(x, sum + c);
    total = hn::Add(total, x);
  });
  return hn::GetLane(hn::SumOfLanes(FloatTag(), total));
}

HWY_INLINE float SumRow(const ResidualRows& rows, int64_t row, float* sum) {
  return rows.dropout > 0.0 ? SumRow<true>(rows, row, sum)
                            : SumRow<false>(rows, row, sum);
}

void ResidualSumImpl(const ResidualRows& rows, int64_t begin, int64_t end,
                     float* sum) {
  for (int64_t r = begin; r < end; ++r) {
    SumRow(rows, r, sum + r * rows.columns);
  }
}

// The mean of (x - mean)^2.
HWY_INLINE float Variance(const float* row, int64_t columns, float mean) {
  const FloatTag tag;
  const FloatVector middle = hn::Set(tag, mean);
  FloatVector total = hn::Zero(tag);
  ForEachVector(0, columns, [&](int64_t c, auto lanes) HWY_ATTR {
    const FloatVector x =
        lanes.Choose(hn::Sub(lanes.Load(row + c), middle), hn::Zero(tag));
    total = hn::MulAdd(x, x, total);
  });
  return hn::GetLane(hn::SumOfLanes(tag, total)) / static_cast<float>(columns);
}

void ResidualNormImpl(const ResidualRows& rows, int64_t begin, int64_t end,
                      const NormResults& results) {
  const FloatTag tag;
  const int64_t columns = rows.columns;
  for (int64_t r = begin; r < end; ++r) {
    float* const sum = results.sum + r * columns;
    float* const output = results.output + r * columns;
    const float mean = SumRow(rows, r, sum) / static_cast<float>(columns);
    const float inverse =
        1.0f / std::sqrt(Variance(sum, columns, mean) + results.epsilon);
    const FloatVector middle = hn::Set(tag, mean);
    const FloatVector scale = hn::Set(tag, inverse);
    ForEachVector(0, columns, [&](int64_t c, auto lanes) HWY_ATTR {
      const FloatVector normal =
          hn::Mul(hn::Sub(lanes.Load(sum + c), middle), scale);
      lanes.Store(hn::MulAdd(normal, lanes.Load(results.weight + c),
                             lanes.Load(results.norm_bias + c)),
                  output + c);
    });
    if (results.mean != nullptr) {
      results.mean[r] = mean;
      results.inverse_deviation[r] = inverse;
    }
  }
}

// Turns the gradient of a row's sum into those of the dropped change and of the
// bias.
template <bool kDropout>
HWY_INLINE void DropRow(const DroppedGradient& gradient, int64_t row,
                        const float* HWY_RESTRICT sum_gradient) {
  float* const change =
      kDropout ? gradient.change + row * gradient.columns : nullptr;
  const RowDropout dropout(gradient.dropout, gradient.dropout_seed,
                           gradient.first_row + row);
  ForEachVector(0, gradient.columns, [&](int64_t c, auto lanes) HWY_ATTR {
    FloatVector x = lanes.Load(sum_gradient + c);
    if constexpr (kDropout) {
      x = hn::Mul(x, dropout.Factors(c));
      lanes.Store(x, change + c);
    }
    if (gradient.bias != nullptr) {
      lanes.Store(hn::Add(lanes.Load(gradient.bias + c), x), gradient.bias + c);
    }
  });
}

HWY_INLINE void DropRow(const DroppedGradient& gradient, int64_t row,
                        const float* sum_gradient) {
  if (gradient.dropout > 0.0) {
    DropRow<true>(gradient, row, sum_gradient);
  } else if (gradient.bias != nullptr) {
    DropRow<false>(gradient, row, sum_gradient);
  }
}

void ResidualSumGradientImpl(const DroppedGradient& gradient, int64_t begin,
                             int64_t end, const float* sum_gradient) {
  for (int64_t r = begin; r < end; ++r) {
    DropRow(gradient, r, sum_gradient + r * gradient.columns);
  }
}

// Let n be the normal row, g = output gradient * weight and <> the mean of a
// row:
//
//   sum gradient = inverse deviation * (g - <g> - n <g n>)
void ResidualNormGradientImpl(const NormGradient& norm,
                              const DroppedGradient& dropped, int64_t begin,
                              int64_t end) {
  const FloatTag tag;
  const int64_t columns = dropped.columns;
  const float share = 1.0f / static_cast<float>(columns);
  for (int64_t r = begin; r < end; ++r) {
    const float* const sum = norm.sum + r * columns;
    const float* const output_gradient = norm.output_gradient + r * columns;
    float* const sum_gradient = norm.sum_gradient + r * columns;
    const FloatVector middle = hn::Set(tag, norm.mean[r]);
    const FloatVector scale = hn::Set(tag, norm.inverse_deviation[r]);
    FloatVector total = hn::Zero(tag);
    FloatVector product = hn::Zero(tag);
    ForEachVector(0, columns, [&](int64_t c, auto lanes) HWY_ATTR {
      const FloatVector normal =
          hn::Mul(hn::Sub(lanes.Load(sum + c), middle), scale);
      const FloatVector gradient = lanes.Load(output_gradient + c);
      lanes.Store(
          hn::MulAdd(gradient, normal, lanes.Load(norm.weight_gradient + c)),
          norm.weight_gradient + c);
      lanes.Store(hn::Add(gradient, lanes.Load(norm.norm_bias_gradient + c)),
                  norm.norm_bias_gradient + c);
      const FloatVector weighted =
          hn::Mul(gradient, lanes.Load(norm.weight + c));
      total = hn::Add(total, weighted);
      product = hn::MulAdd(weighted, normal, product);
    });
    const FloatVector mean =
        hn::Mul(hn::SumOfLanes(tag, total), hn::Set(tag, share));
    const FloatVector slope =
        hn::Mul(hn::SumOfLanes(tag, product), hn::Set(tag, share));
    ForEachVector(0, columns, [&](int64_t c, auto lanes) HWY_ATTR {
      const FloatVector normal =
          hn::Mul(hn::Sub(lanes.Load(sum + c), middle), scale);
      const FloatVector centred = hn::MulSub(lanes.Load(output_gradient + c),
                                             lanes.Load(norm.weight + c), mean);
      lanes.Store(hn::Mul(hn::NegMulAdd(normal, slope, centred), scale),
                  sum_gradient + c);
    });
    DropRow(dropped, r, sum_gradient);
  }
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(ResidualSumImpl);
HWY_EXPORT(ResidualNormImpl);
HWY_EXPORT(ResidualSumGradientImpl);
HWY_EXPORT(ResidualNormGradientImpl);

void ResidualSum(const ResidualRows& rows, int64_t begin, int64_t end,
                 float* sum) {
  HWY_DYNAMIC_DISPATCH(ResidualSumImpl)(rows, begin, end, sum);
}

void ResidualNorm(const ResidualRows& rows, int64_t begin, int64_t end,
                  const NormResults& results) {
  HWY_DYNAMIC_DISPATCH(ResidualNormImpl)(rows, begin, end, results);
}

void ResidualSumGradient(const DroppedGradient& gradient, int64_t begin,
                         int64_t end, const float* sum_gradient) {
  HWY_DYNAMIC_DISPATCH(ResidualSumGradientImpl)
  (gradient, begin, end, sum_gradient);
}

void ResidualNormGradient(const NormGradient& norm,
                          const DroppedGradient& dropped, int64_t begin,
                          int64_t end) {
  HWY_DYNAMIC_DISPATCH(ResidualNormGradientImpl)(norm, dropped, begin, end);
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
