#ifndef ETC_BASE_LINEAR_H_
#define ETC_BASE_LINEAR_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

namespace etc {

// Operand precision of linear layers, forward and backward. With kBfloat16,
// float32 operands are rounded to bfloat16 for the product; sums, results,
// weights and their gradients stay float32: twice as fast with AVX512-BF16 or
// AMX (Bfloat16ProductsOfThisCpu). On other devices than the CPU LibTorch
// rounds the product, too, as its autocast does, before the bias is added in
// float32. Operands of other dtypes are taken as they are.
enum class LinearPrecision { kFloat32, kBfloat16 };

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

// A factor, and its operand of MatrixProduct, which may serve several products:
// itself or its rounded copy. Undefined if it is not float32 on the CPU.
struct LinearInput {
  torch::Tensor value;    // [..., n]
  torch::Tensor operand;  // idem, without gradient
  // True if `value` is rounded from float32 and the product must be returned in
  // float32: on other devices than the CPU.
  bool is_rounded = false;
};

// `value` as a factor beside `other`, in the same precision; without operand if
// either has to be.
LinearInput FactorBeside(const LinearInput& other, const torch::Tensor& value);

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

class RoundedWeights;

// x W^T + bias of several linear layers in one precision: MatrixProduct where
// that can be, else LibTorch's own. Keeps bfloat16 copies of weights until they
// change (by LibTorch's count of their versions); weights made in InferenceMode
// have no such count and are rounded for every product. Several threads may
// compute at once, while none sets the precision or changes a weight. A copy
// has the precision and rounds for itself.
class LinearProducts {
 public:
  LinearProducts();
  LinearProducts(const LinearProducts& other);
  LinearProducts& operator=(const LinearProducts& other);
  ~LinearProducts();

  // Products of the CPU throw c10::Error where it has none in that precision.
  void set_precision(LinearPrecision precision);
  LinearPrecision precision() const { return precision_; }
  // The dtype of the operand of such a value, or of the value where it has
  // none.
  torch::ScalarType OperandType(const torch::Tensor& value) const;

  LinearInput Input(const torch::Tensor& value) const;
  LinearInput Weight(const torch::Tensor& weight) const;

  // input weight^T + bias, [..., outputs]. Differentiable in input, weight and
  // bias; once only (c10::Error) where operands are defined. Keeps the operands
  // for it.
  //
  //   weight:   [outputs, n]
  //   bias:     [outputs], or undefined
  static torch::Tensor Apply(const LinearInput& input,
                             const LinearInput& weight,
                             const torch::Tensor& bias = {});
  torch::Tensor Apply(const LinearInput& input,
                      const torch::nn::Linear& layer) const {
    return Apply(input, Weight(layer->weight), layer->bias);
  }

 private:
  LinearPrecision precision_ = LinearPrecision::kFloat32;
  std::unique_ptr<RoundedWeights> rounded_;
};

}  // namespace etc

#endif  // ETC_BASE_LINEAR_H_
