#ifndef ETC_BASE_LINEAR_H_
#define ETC_BASE_LINEAR_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace etc {

// Operand precision of linear layers, forward and backward. With kBfloat16,
// float32 operands are rounded to bfloat16 for the product; sums, results,
// weights and their gradients stay float32: for speed with AMX or, on some
// CPUs, AVX512-BF16 (Bfloat16ProductsOfThisCpu). On other devices than the CPU
// LibTorch rounds the product, too, as its autocast does, before the bias is
// added in float32. Operands of other dtypes are taken as they are.
enum class LinearPrecision { kFloat32, kBfloat16 };

// A factor of products: `value`, and `operand`, the form that MatrixProduct
// reads (itself or its bfloat16 copy), made once for several products.
// `operand` is undefined unless `value` is float32 on the CPU.
struct LinearInput {
  torch::Tensor value = {};    // [..., n]
  torch::Tensor operand = {};  // idem, without gradient
  // True if `value` is rounded from float32 and the product must be returned in
  // float32: on other devices than the CPU.
  bool is_rounded = false;
};

// `value` prepared as the other factor of a product with `other`: in the same
// precision; without operand if either has none.
LinearInput FactorBeside(const LinearInput& other, const torch::Tensor& value);

class RoundedWeights;

// x W^T + bias of several linear layers in one precision: MatrixProduct where
// that can be, else LibTorch's own. Keeps bfloat16 copies of weights until they
// change: by LibTorch's count of their versions, or by 256 numbers of each,
// which tell of writes to a weight as a whole that are not counted
// (p.data().add_(...), data_ptr, a flat buffer). After such writes to a part of
// a weight set the precision again, which forgets all copies. Weights made in
// InferenceMode are rounded for every product. Several threads may compute at
// once, while none sets the precision or changes a weight. A copy has the
// precision and rounds for itself.
class LinearProducts {
 public:
  LinearProducts();
  LinearProducts(const LinearProducts& other);
  LinearProducts& operator=(const LinearProducts& other);
  ~LinearProducts();

  // Forgets the copies of weights. Products of the CPU throw c10::Error where
  // it has none in that precision.
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

  // The same of several layers of one input, one after the other. In bfloat16
  // on the CPU their gradients are found together: that of the input is one
  // product, not a sum of one for each layer.
  std::vector<torch::Tensor> ApplyEach(
      const LinearInput& input,
      const std::vector<torch::nn::Linear>& layers) const;

 private:
  LinearPrecision precision_ = LinearPrecision::kFloat32;
  std::unique_ptr<RoundedWeights> rounded_;
};

}  // namespace etc

#endif  // ETC_BASE_LINEAR_H_
