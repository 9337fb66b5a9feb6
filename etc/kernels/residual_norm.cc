#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc/kernels/residual_norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "attention/kernels/softmax_rows-inl.h"
#include "etc/kernels/residual_norm.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

// Calls function(column, load, store) for each vector of a row; the last may
// not be full. load(from) and store(vector, to) touch its columns only; what
// load gives beyond them is 0.
template <typename Function>
HWY_INLINE void ForEachVector(int64_t columns, const Function& function) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    function(
        c, [&](const float* from) HWY_ATTR { return hn::LoadU(tag, from + c); },
        [&](FloatVector vector, float* to)
            HWY_ATTR { hn::StoreU(vector, tag, to + c); });
  }
  if (c < columns) {
    const int64_t rest = columns - c;
    function(
        c,
        [&](const float* from)
            HWY_ATTR { return LoadLanes(from + c, 0, rest); },
        [&](FloatVector vector, float* to)
            HWY_ATTR { StoreLanes(vector, 0, rest, to + c); });
  }
}

// What dropout needs to know of a row.
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
  const float* const residual = rows.residual + row * columns;
  const RowDropout dropout(rows.dropout, rows.dropout_seed, row);
  FloatVector total = hn::Zero(FloatTag());
  ForEachVector(columns, [&](int64_t c, auto load, auto store) HWY_ATTR {
    FloatVector x = load(change);
    if (rows.bias != nullptr) {
      x = hn::Add(x, load(rows.bias));
    }
    if constexpr (kDropout) {
      x = hn::Mul(x, dropout.Factors(c));
    }
    x = hn::Add(x, load(residual));
    store(x, sum);
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
  const int64_t lanes = Lanes();
  const FloatVector middle = hn::Set(tag, mean);
  FloatVector total = hn::Zero(tag);
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    const FloatVector x = hn::Sub(hn::LoadU(tag, row + c), middle);
    total = hn::MulAdd(x, x, total);
  }
  if (c < columns) {
    const FloatVector x =
        hn::IfThenElseZero(hn::FirstN(tag, static_cast<size_t>(columns - c)),
                           hn::Sub(LoadLanes(row + c, 0, columns - c), middle));
    total = hn::MulAdd(x, x, total);
  }
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
    ForEachVector(columns, [&](int64_t, auto load, auto store) HWY_ATTR {
      const FloatVector normal = hn::Mul(hn::Sub(load(sum), middle), scale);
      store(hn::MulAdd(normal, load(results.weight), load(results.norm_bias)),
            output);
    });
    if (results.mean != nullptr) {
      results.mean[r] = mean;
      results.inverse_deviation[r] = inverse;
    }
  }
}

// From the gradient of a row's sum to those of what was dropped.
template <bool kDropout>
HWY_INLINE void DropRow(const DroppedGradient& gradient, int64_t row,
                        const float* HWY_RESTRICT sum_gradient) {
  float* const change =
      kDropout ? gradient.change + row * gradient.columns : nullptr;
  const RowDropout dropout(gradient.dropout, gradient.dropout_seed, row);
  ForEachVector(gradient.columns,
                [&](int64_t c, auto load, auto store) HWY_ATTR {
                  FloatVector x = load(sum_gradient);
                  if constexpr (kDropout) {
                    x = hn::Mul(x, dropout.Factors(c));
                    store(x, change);
                  }
                  if (gradient.bias != nullptr) {
                    store(hn::Add(load(gradient.bias), x), gradient.bias);
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

// With n the normal row, g = output gradient * weight and <> the mean of a row:
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
    ForEachVector(columns, [&](int64_t, auto load, auto store) HWY_ATTR {
      const FloatVector normal = hn::Mul(hn::Sub(load(sum), middle), scale);
      const FloatVector gradient = load(output_gradient);
      store(hn::MulAdd(gradient, normal, load(norm.weight_gradient)),
            norm.weight_gradient);
      store(hn::Add(gradient, load(norm.norm_bias_gradient)),
            norm.norm_bias_gradient);
      const FloatVector weighted = hn::Mul(gradient, load(norm.weight));
      total = hn::Add(total, weighted);
      product = hn::MulAdd(weighted, normal, product);
    });
    const FloatVector mean =
        hn::Mul(hn::SumOfLanes(tag, total), hn::Set(tag, share));
    const FloatVector slope =
        hn::Mul(hn::SumOfLanes(tag, product), hn::Set(tag, share));
    ForEachVector(columns, [&](int64_t, auto load, auto store) HWY_ATTR {
      const FloatVector normal = hn::Mul(hn::Sub(load(sum), middle), scale);
      const FloatVector centred =
          hn::MulSub(load(output_gradient), load(norm.weight), mean);
      store(hn::Mul(hn::NegMulAdd(normal, slope, centred), scale),
            sum_gradient);
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
