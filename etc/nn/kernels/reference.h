#ifndef ETC_ETC_NN_KERNELS_REFERENCE_H_
#define ETC_ETC_NN_KERNELS_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "etc/nn/kernels/bias_gelu.h"
#include "etc/nn/kernels/residual_norm.h"

namespace etc::kernels {

// The definitions that the kernels are tested against, in double, element by
// element or row by row. Not for speed.

// kTanh: x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3); kErf:
// x / 2 (1 + erf(x / sqrt(2))), by erfc, which is precise for negative x.
inline double GeluReference(GeluForm form, double x) {
  if (form == GeluForm::kErf) {
    return 0.5 * x * std::erfc(-x * M_SQRT1_2);
  }
  const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(u));
}

inline double GeluDerivativeReference(GeluForm form, double x) {
  if (form == GeluForm::kErf) {
    return 0.5 * std::erfc(-x * M_SQRT1_2) +
           x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
  }
  const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  const double slope = std::sqrt(2.0 / M_PI) * (1.0 + 3 * 0.044715 * x * x);
  const double t = std::tanh(u);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope;
}

// The factor of dropout of one element.
inline double ResidualDropoutReference(uint64_t seed, double probability,
                                       int64_t row, int64_t column) {
  return static_cast<double>(DropoutFactor(MakeDropoutRow(seed, row, 0),
                                           static_cast<uint32_t>(column),
                                           probability));
}

// One row of sums.
inline std::vector<double> ResidualSumReference(const ResidualRows& rows,
                                                int64_t row) {
  std::vector<double> sum;
  for (int64_t c = 0; c < rows.columns; ++c) {
    const int64_t i = row * rows.columns + c;
    const double bias =
        rows.bias == nullptr ? 0.0 : static_cast<double>(rows.bias[c]);
    sum.push_back(
        static_cast<double>(rows.residual[i]) +
        ResidualDropoutReference(rows.dropout_seed, rows.dropout, row, c) *
            (static_cast<double>(rows.change[i]) + bias));
  }
  return sum;
}

// A row of zero mean and unit variance (but for epsilon), before the norm's
// weight and bias.
struct NormalRow {
  std::vector<double> values;
  double mean = 0.0;
  double inverse_deviation = 0.0;
};
inline NormalRow NormalRowReference(const std::vector<double>& sum,
                                    double epsilon) {
  const double count = static_cast<double>(sum.size());
  NormalRow row = {.values = sum};
  for (const double x : sum) {
    row.mean += x / count;
  }
  double variance = 0.0;
  for (const double x : sum) {
    variance += (x - row.mean) * (x - row.mean) / count;
  }
  row.inverse_deviation = 1.0 / std::sqrt(variance + epsilon);
  for (double& x : row.values) {
    x = (x - row.mean) * row.inverse_deviation;
  }
  return row;
}

// The gradient of the sum from that of the normal row, `gradient`.
inline std::vector<double> NormalRowGradientReference(
    const NormalRow& row, const std::vector<double>& gradient) {
  const double count = static_cast<double>(gradient.size());
  double mean = 0.0;
  double slope = 0.0;
  for (size_t c = 0; c < gradient.size(); ++c) {
    mean += gradient[c] / count;
    slope += gradient[c] * row.values[c] / count;
  }
  std::vector<double> result;
  for (size_t c = 0; c < gradient.size(); ++c) {
    result.push_back(row.inverse_deviation *
                     (gradient[c] - mean - row.values[c] * slope));
  }
  return result;
}

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_REFERENCE_H_
