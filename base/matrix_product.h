#ifndef ETC_BASE_MATRIX_PRODUCT_H_
#define ETC_BASE_MATRIX_PRODUCT_H_

#include <torch/types.h>

#include <cstdint>

#include "base/product_tile.h"

namespace etc {

// Returns true of what is multiplied here.
bool IsFloatOnCpu(const torch::Tensor& tensor);
// Returns true of operands in bfloat16.
bool IsRounded(const torch::Tensor& operand);

// Bfloat16 on the CPU, not initialised.
torch::Tensor EmptyBfloat16(at::IntArrayRef sizes);

// A copy of float32 values on the CPU, rounded to the nearest; contiguous.
torch::Tensor ToBfloat16(const torch::Tensor& values);

// The code of a product. kAmx: base/amx_product.h, for bfloat16 on a CPU with
// AMX, where it is twice as fast as oneDNN 2.6; kAuto: kAmx where it can be.
enum class ProductCode { kAuto, kOnednn, kAmx };

// a b + bias, summed in float32, by oneDNN: it uses the widest registers of the
// CPU where LibTorch's own BLAS may not (Debian's OpenBLAS reaches half of
// oneDNN's rate on a Zen 5); or by AMX. The same at any number of threads.
//
//   a:        [m, k] float32 or bfloat16, rows or columns contiguous
//             (transposed matrices cost nothing)
//   b:        [k, n] of the same dtype, idem
//   bias:     [n] float32; may be undefined
//   returns:  [m, n] float32
//
// CPU only; not differentiable. Throws c10::Error for other shapes and dtypes,
// for bfloat16 on a CPU that has no such products, and for kAmx in float32 or
// without AMX.
torch::Tensor MatrixProduct(const torch::Tensor& a, const torch::Tensor& b,
                            const torch::Tensor& bias = {},
                            ProductCode code = ProductCode::kAuto);

// The same product without a bias, up to rounding, given tile by tile to
// `finish` instead of being kept, each element once. For operations that would
// read it right after it is written.
void ForEachProductTile(const torch::Tensor& a, const torch::Tensor& b,
                        const FinishTile& finish,
                        ProductCode code = ProductCode::kAuto);

// The gradients of both factors of a product.
struct ProductGradients {
  torch::Tensor input;   // [rows, n]
  torch::Tensor weight;  // [outputs, n]
};

// Gradients of input weight^T, summed in float32, by operands of one precision;
// of other dtypes and devices in those, by LibTorch. Not differentiable.
//
//   input:     [rows, n]
//   weight:    [outputs, n]
//   gradient:  that of the product, [rows, outputs]
ProductGradients GradientsOfProduct(const torch::Tensor& input,
                                    const torch::Tensor& weight,
                                    const torch::Tensor& gradient);

}  // namespace etc

#endif  // ETC_BASE_MATRIX_PRODUCT_H_
