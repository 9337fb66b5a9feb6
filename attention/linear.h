#ifndef ETC_ATTENTION_LINEAR_H_
#define ETC_ATTENTION_LINEAR_H_

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace etc {

// What the operands of linear layers are, forward and backward. With kBfloat16
// float32 operands are rounded to bfloat16 for the product; sums, results,
// weights and their gradients stay float32. That is oneDNN's on the CPU, twice
// as fast with AVX512-BF16 or AMX (Bfloat16ProductsOfThisCpu); operands of
// other dtypes or devices are taken as they are.
enum class LinearPrecision { kFloat32, kBfloat16 };

// A copy of float32 values on the CPU, rounded to the nearest; contiguous.
torch::Tensor ToBfloat16(const torch::Tensor& values);

// a b + bias, summed in float32.
//
//   a:        [m, k] bfloat16, rows or columns contiguous (transposed matrices
//             cost nothing)
//   b:        [k, n] idem
//   bias:     [n] float32; may be undefined
//   returns:  [m, n] float32
//
// On the CPU; not differentiable. Throws c10::Error for other shapes and
// dtypes, and on a CPU that has no such products.
torch::Tensor Bfloat16Product(const torch::Tensor& a, const torch::Tensor& b,
                              const torch::Tensor& bias = {});

// A factor with its rounded copy, which may serve several products.
struct LinearInput {
  torch::Tensor value;     // [..., n]
  torch::Tensor bfloat16;  // idem; undefined in float32
};

// input weight^T + bias by the rounded copies, [..., outputs] float32. Weight
// [outputs, n], bias [outputs] or undefined. Differentiable in the values and
// the bias, once (c10::Error); keeps the rounded copies.
torch::Tensor Bfloat16Linear(const LinearInput& input,
                             const LinearInput& weight,
                             const torch::Tensor& bias = {});

// x W^T + bias of several linear layers in one precision. Keeps bfloat16
// copies of weights until they change (by LibTorch's count of their versions).
// Not for several threads at once.
class LinearProducts {
 public:
  // Throws c10::Error on a CPU that has no such products.
  void set_precision(LinearPrecision precision);
  LinearPrecision precision() const { return precision_; }

  LinearInput Input(const torch::Tensor& value) const;

  // [..., outputs].
  torch::Tensor Apply(const LinearInput& input, const torch::Tensor& weight,
                      const torch::Tensor& bias = {});
  torch::Tensor Apply(const LinearInput& input,
                      const torch::nn::Linear& layer) {
    return Apply(input, layer->weight, layer->bias);
  }

  // The rounded copy of a weight; undefined in float32.
  torch::Tensor Rounded(const torch::Tensor& weight);

 private:
  struct Copy {
    torch::Tensor weight;  // that it is of
    uint32_t version;
    const void* data;
    torch::Tensor bfloat16;
  };

  LinearPrecision precision_ = LinearPrecision::kFloat32;
  std::vector<Copy> copies_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_LINEAR_H_
