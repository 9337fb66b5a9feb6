#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_REFERENCE_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_REFERENCE_H_

#include <cmath>
#include <cstdint>

namespace etc::kernels {

// The definitions of the kernels' building blocks, in one scalar loop each and
// in double, that they are tested against. Not for speed. (The definition of a
// whole tile is attention/backends/reference/dense_attention.h.)

// c [rows][columns] += a [rows][depth] * b [depth][columns], where a(r, k) is
// a[r * a_row_stride + k * a_depth_stride].
inline void MultiplyAddReference(int64_t rows, int64_t columns, int64_t depth,
                                 const float* a, int64_t a_row_stride,
                                 int64_t a_depth_stride, const float* b,
                                 int64_t b_stride, double* c) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < columns; ++v) {
      for (int64_t k = 0; k < depth; ++k) {
        c[r * columns + v] +=
            static_cast<double>(a[r * a_row_stride + k * a_depth_stride]) *
            static_cast<double>(b[k * b_stride + v]);
      }
    }
  }
}

// row[i] = 2^(factor * (scores[i] - highest)); returns their sum.
inline double ExponentiateReference(int64_t count, const float* scores,
                                    double factor, double highest,
                                    double* row) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    row[i] = std::exp2(factor * (static_cast<double>(scores[i]) - highest));
    sum += row[i];
  }
  return sum;
}

// One key of a row: the weight and the gradient of its score, with `factor`
// that of dropout and `product` = context gradient . value.
struct KeyGradient {
  double weight;
  double score;
};
inline KeyGradient DifferentiateReference(double probability, double product,
                                          double factor, double delta,
                                          double divisor,
                                          double carried_gradient) {
  return {.weight = probability * factor,
          .score = probability * (product * factor - delta) / divisor +
                   carried_gradient};
}

// The same of a gated head: own + gate * previous is the logit.
struct GatedKeyGradient {
  double weight;
  double score;     // of own
  double previous;  // of previous
  double gate;      // this key's part
};
inline GatedKeyGradient DifferentiateGatedReference(
    double probability, double product, double factor, double delta,
    double gate, double previous, double carried_gradient) {
  const double inner = probability * (product * factor - delta);
  return {.weight = probability * factor,
          .score = inner + carried_gradient,
          .previous = gate * inner + carried_gradient,
          .gate = inner * previous};
}

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_REFERENCE_H_
