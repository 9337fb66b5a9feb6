#ifndef ETC_ETC_NN_KERNELS_BIAS_GELU_H_
#define ETC_ETC_NN_KERNELS_BIAS_GELU_H_

#include <cstdint>

namespace etc::kernels {

// Rows of activations: a bias for each column, then gelu (Hendrycks and Gimpel
// 2016; doc/model.md 0),
//
//   kTanh:  gelu(x) = x / (1 + exp(-2 u)),   u = sqrt(2 / pi) (x + 0.044715
//   x^3) kErf:   gelu(x) = x (1 + erf(x / sqrt(2))) / 2
//
// Plain pointers, no allocation, no threads, float32; nothing is checked. Rows
// are contiguous, `columns` apart. Buffers must not overlap, but for those that
// are said to.

enum class GeluForm { kTanh, kErf };

// Output is float, or uint16_t for bfloat16.
template <typename Output>
struct BiasGeluInput {
  const float* input = nullptr;  // [rows][columns], without the bias
  const float* bias = nullptr;   // [columns]
  Output* output = nullptr;      // [rows][columns]
};
// output = gelu(input + bias); of 16 bits: rounded to bfloat16, to the nearest.
void BiasGelu(GeluForm form, int64_t rows, int64_t columns,
              const BiasGeluInput<float>& data);
void BiasGelu(GeluForm form, int64_t rows, int64_t columns,
              const BiasGeluInput<uint16_t>& data);

template <typename Output>
struct BiasGeluRows {
  const float* input = nullptr;            // [rows][columns], without the bias
  const float* bias = nullptr;             // [columns]
  const float* output_gradient = nullptr;  // [rows][columns]
  Output* output = nullptr;  // [rows][columns], as BiasGelu has it
  // [rows][columns]; may be `output_gradient`.
  Output* input_gradient = nullptr;
  float* bias_gradient = nullptr;  // [columns]; added to
};
// Computes the gradients, and the output once more, which backward needs.
void BiasGeluGradient(GeluForm form, int64_t rows, int64_t columns,
                      const BiasGeluRows<float>& data);
void BiasGeluGradient(GeluForm form, int64_t rows, int64_t columns,
                      const BiasGeluRows<uint16_t>& data);

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_BIAS_GELU_H_
