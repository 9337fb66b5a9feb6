#ifndef ETC_ETC_NN_KERNELS_RESIDUAL_NORM_H_
#define ETC_ETC_NN_KERNELS_RESIDUAL_NORM_H_

#include <cstdint>

namespace etc::kernels {

// The end of a residual block, row by row:
//
//   sum    = residual + dropout(change + bias)
//   output = (sum - mean) / sqrt(variance + epsilon) * weight + norm_bias
//
// Mean and variance are of the row's sum, the variance without Bessel's
// correction (Ba et al. 2016). Dropout is a function of the seed, the row and
// the column: DropoutFactor(MakeDropoutRow(seed, row, 0), column, dropout) of
// base/random.h.
//
// Plain pointers, no allocation, no threads, float32; nothing is checked.
// Pointers are to row 0, rows contiguous, `columns` (at least 1) apart; rows
// [begin, end) are computed. Buffers must not overlap, except where stated.

struct ResidualRows {
  int64_t columns = 0;
  const float* change = nullptr;
  const float* bias = nullptr;      // [columns], or null
  const float* residual = nullptr;  // or null: zeros
  double dropout = 0.0;             // probability, in [0, 1)
  uint64_t dropout_seed = 0;
  int64_t first_row = 0;  // added to the row that dropout is a function of
};

void ResidualSum(const ResidualRows& rows, int64_t begin, int64_t end,
                 float* sum);

struct NormResults {
  float epsilon = 0.0f;
  const float* weight = nullptr;     // [columns]
  const float* norm_bias = nullptr;  // [columns]
  float* sum = nullptr;              // may be `output`
  float* output = nullptr;
  // Statistics of each row, for backward; both may be null.
  float* mean = nullptr;
  float* inverse_deviation = nullptr;  // 1 / sqrt(variance + epsilon)
};
void ResidualNorm(const ResidualRows& rows, int64_t begin, int64_t end,
                  const NormResults& results);

// The gradient of a sum's dropped part: that of `sum` times the factors of
// dropout.
struct DroppedGradient {
  int64_t columns = 0;
  double dropout = 0.0;
  uint64_t dropout_seed = 0;
  int64_t first_row = 0;  // as of ResidualRows
  // Rows of columns; null without dropout, when it is the gradient of the sum.
  float* change = nullptr;
  float* bias = nullptr;  // [columns], added to; or null
};
void ResidualSumGradient(const DroppedGradient& gradient, int64_t begin,
                         int64_t end, const float* sum_gradient);

struct NormGradient {
  // Inputs and results of ResidualNorm.
  const float* weight = nullptr;
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const float* output_gradient = nullptr;

  float* sum_gradient = nullptr;  // that of the residual
  // [columns], added to.
  float* weight_gradient = nullptr;
  float* norm_bias_gradient = nullptr;
};
void ResidualNormGradient(const NormGradient& norm,
                          const DroppedGradient& dropped, int64_t begin,
                          int64_t end);

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_RESIDUAL_NORM_H_
