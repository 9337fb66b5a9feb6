#ifndef ETC_ETC_NN_KERNELS_BIAS_GELU_H_
#define ETC_ETC_NN_KERNELS_BIAS_GELU_H_

#include <cstdint>

#include "base/product_tile.h"

namespace etc::kernels {

// Rows of activations: a bias for each column, then gelu (Hendrycks and Gimpel
// 2016; doc/model.md 0),
//
//   kTanh:  gelu(x) = x / (1 + exp(-2 u))
//           with u = sqrt(2 / pi) (x + 0.044715 x^3)
//   kErf:   gelu(x) = x (1 + erf(x / sqrt(2))) / 2
//
// Plain pointers, no allocation, no threads, float32; nothing is checked. Rows
// are contiguous, `columns` apart. Buffers must not overlap, but for those that
// are said to.

enum class GeluForm { kTanh, kErf };

struct BiasGeluInput {
  const float* input = nullptr;  // [rows][columns], without the bias
  const float* bias = nullptr;   // [columns]
  float* output = nullptr;       // [rows][columns]
};
// output = gelu(input + bias).
void BiasGelu(GeluForm form, int64_t rows, int64_t columns,
              const BiasGeluInput& data);

struct BiasGeluRows {
  const float* input = nullptr;            // [rows][columns], without the bias
  const float* bias = nullptr;             // [columns]
  const float* output_gradient = nullptr;  // [rows][columns]
  float* output = nullptr;  // [rows][columns], as BiasGelu has it
  // [rows][columns]; may be `output_gradient`.
  float* input_gradient = nullptr;
  float* bias_gradient = nullptr;  // [columns]; added to
};
// Computes the gradients, and the output once more, which backward needs.
void BiasGeluGradient(GeluForm form, int64_t rows, int64_t columns,
                      const BiasGeluRows& data);

// The same of a tile of a product (base/product_tile.h), with matrices of
// bfloat16, each number rounded to the nearest. Pointers are to the tile's
// first column, those of matrices to its first element.
struct RoundedGelu {
  const float* bias = nullptr;
  uint16_t* input = nullptr;   // with the bias; null: not wanted
  uint16_t* output = nullptr;  // gelu of the input that is not rounded
  int64_t stride = 0;          // of rows of both matrices
};
void BiasGeluOfTile(GeluForm form, const ProductTile& tile,
                    const RoundedGelu& data);

struct RoundedGeluGradient {
  const uint16_t* input = nullptr;  // of RoundedGelu
  uint16_t* output = nullptr;       // gelu of the rounded input
  uint16_t* input_gradient = nullptr;
  int64_t stride = 0;              // of rows of the three matrices
  float* bias_gradient = nullptr;  // of the tile alone; set
};
// The tile is of the output's gradient.
void BiasGeluGradientOfTile(GeluForm form, const ProductTile& tile,
                            const RoundedGeluGradient& data);

}  // namespace etc::kernels

#endif  // ETC_ETC_NN_KERNELS_BIAS_GELU_H_
