#include "base/linear.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/apply_linear.h"
#include "base/bfloat16.h"
#include "base/check_tensor.h"
#include "base/matrix_product.h"
#include "base/random.h"
#include "base/row_chunks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using OptionalTensor = c10::optional<torch::Tensor>;

torch::Tensor AsRows(const torch::Tensor& tensor) {
  // LibTorch cannot tell how many rows a tensor without columns has.
  return tensor.dim() == 2 ? tensor : tensor.reshape({-1, tensor.size(-1)});
}

LinearInput Factor(const torch::Tensor& value, bool rounded) {
  if (rounded && !value.is_cpu() && value.scalar_type() == torch::kFloat32) {
    return {.value = value.to(torch::kBFloat16), .is_rounded = true};
  }
  if (!IsFloatOnCpu(value)) {
    return {.value = value};
  }
  return {.value = value,
          .operand = rounded ? ToBfloat16(value) : value.detach()};
}

// A hash of numbers on the diagonal of a weight, which tells that it was
// written to where LibTorch counts no version: p.data().add_(...), data_ptr,
// another tensor over the same memory. 10 us for a weight that is in no cache,
// where rounding it takes 400 us and a hash of all its numbers longer.
uint64_t HashOfSome(const torch::Tensor& weight) {
  constexpr int64_t kMost = 256;
  const torch::Tensor matrix = AsRows(weight);
  const auto* const data = matrix.data_ptr<float>();
  const int64_t count = std::min(matrix.numel(), kMost);
  uint64_t hash = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * matrix.size(0) / count;
    const int64_t column = i * matrix.size(1) / count;
    hash = Mix64(hash +
                 std::bit_cast<uint32_t>(
                     data[row * matrix.stride(0) + column * matrix.stride(1)]));
  }
  return hash;
}

// Rounds [rows, n] float32 into `to`, of the same shape, whose rows are
// contiguous. Returns the sums of the columns, as ColumnSums has them.
torch::Tensor RoundAndAdd(const torch::Tensor& matrix,
                          const torch::Tensor& to) {
  const torch::Tensor from =
      matrix.stride(1) == 1 ? matrix : matrix.contiguous();
  const int64_t columns = from.size(1);
  return ForEachRowChunk(from.size(0), 1, columns, [&](const RowChunk& chunk) {
    kernels::RoundAndAddRows(
        {.rows = chunk.end - chunk.begin,
         .columns = columns,
         .from = from.data_ptr<float>() + chunk.begin * from.stride(0),
         .from_stride = from.stride(0),
         .to =
             static_cast<uint16_t*>(to.data_ptr()) + chunk.begin * to.stride(0),
         .to_stride = to.stride(0),
         .sums = chunk.sums});
  })[0];
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  // `input` and `weight` for their gradients only.
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& weight,
                           const OptionalTensor& bias,
                           const torch::Tensor& input_operand,
                           const torch::Tensor& weight_operand) {
    context->save_for_backward({input_operand, weight_operand});
    context->saved_data["has_bias"] = bias.has_value();
    std::vector<int64_t> shape = input.sizes().vec();
    shape.back() = weight.size(0);
    // Not view(): the result of an autograd function must be no view if others
    // are to change it in place.
    return {at::_unsafe_view(
        MatrixProduct(AsRows(input_operand), weight_operand.t(),
                      bias.value_or(torch::Tensor())),
        shape)};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("linear layers of float32 on the CPU", "float64");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor gradient = AsRows(gradients[0]);
    const bool has_bias = context->saved_data["has_bias"].toBool();
    Variables result(5);
    torch::Tensor operand;
    if (has_bias && IsRounded(saved[1])) {
      operand = EmptyBfloat16(gradient.sizes());
      result[2] = RoundAndAdd(gradient, operand);
    } else {
      operand = Factor(gradient, IsRounded(saved[1])).operand;
      result[2] = has_bias ? ColumnSums(gradient) : torch::Tensor();
    }
    if (context->needs_input_grad(0)) {
      result[0] = MatrixProduct(operand, saved[1]).view(saved[0].sizes());
    }
    if (context->needs_input_grad(1)) {
      result[1] = MatrixProduct(operand.t(), AsRows(saved[0]));
    }
    return result;
  }
};

// Several layers of one input, in bfloat16.
class RoundedLayersFunction
    : public torch::autograd::Function<RoundedLayersFunction> {
 public:
  // `input`, `weights` and `biases` for their gradients, operands for products.
  static Variables forward(Context* context, const torch::Tensor& input,
                           at::TensorList weights, at::TensorList biases,
                           const torch::Tensor& input_operand,
                           at::TensorList weight_operands) {
    Variables saved = weight_operands.vec();
    saved.push_back(input_operand);
    context->save_for_backward(saved);
    const torch::Tensor rows = AsRows(input_operand);
    std::vector<int64_t> shape = input.sizes().vec();
    Variables outputs;
    for (size_t i = 0; i < weights.size(); ++i) {
      shape.back() = weights[i].size(0);
      outputs.push_back(at::_unsafe_view(
          MatrixProduct(rows, weight_operands[i].t(), biases[i]), shape));
    }
    return outputs;
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("linear layers of float32 on the CPU", "float64");
    Variables operands = context->get_saved_variables();
    const torch::Tensor input = operands.back();
    operands.pop_back();
    const size_t layers = operands.size();
    const torch::Tensor weights = torch::cat(operands);  // [all outputs, n]
    const torch::Tensor rows = AsRows(input);
    const torch::Tensor gradient =
        EmptyBfloat16({rows.size(0), weights.size(0)});
    std::vector<int64_t> outputs;
    for (const torch::Tensor& operand : operands) {
      outputs.push_back(operand.size(0));
    }
    const Variables parts = gradient.split_with_sizes(outputs, /*dim=*/1);
    // Gradients of the input, weights, biases, and operands.
    Variables result(2 + 3 * layers);
    bool are_wanted = false;  // those of weights
    for (size_t i = 0; i < layers; ++i) {
      result[1 + layers + i] = RoundAndAdd(AsRows(gradients[i]), parts[i]);
      are_wanted = are_wanted || context->needs_input_grad(1 + i);
    }
    if (context->needs_input_grad(0)) {
      result[0] = MatrixProduct(gradient, weights).view(input.sizes());
    }
    if (are_wanted) {
      const Variables of_weights =
          MatrixProduct(gradient.t(), rows).split_with_sizes(outputs);
      std::copy(of_weights.begin(), of_weights.end(), result.begin() + 1);
    }
    return result;
  }
};

}  // namespace

// The copies are tensors of normal mode also where the first product is
// computed in InferenceMode: training may follow, and autograd keeps none of
// the latter.
class RoundedWeights {
 public:
  torch::Tensor Of(const torch::Tensor& weight) {
    const c10::InferenceMode normal_mode(false);
    if (weight.is_inference()) {
      return ToBfloat16(weight);
    }
    // Held while rounding, so that threads that begin together round once.
    const std::lock_guard<std::mutex> lock(mutex_);
    Copy& copy = CopyOf(weight);
    const auto version = static_cast<uint32_t>(weight._version());
    const uint64_t hash = HashOfSome(weight);
    if (!copy.bfloat16.defined() || copy.version != version ||
        copy.data != weight.data_ptr() || copy.hash != hash) {
      copy.version = version;
      copy.data = weight.data_ptr();
      copy.hash = hash;
      copy.bfloat16 = ToBfloat16(weight);
    }
    return copy.bfloat16;
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    copies_.clear();
  }

 private:
  struct Copy {
    torch::Tensor weight;  // that it is of
    uint32_t version = 0;
    const void* data = nullptr;
    uint64_t hash = 0;  // HashOfSome
    torch::Tensor bfloat16;
  };

  Copy& CopyOf(const torch::Tensor& weight) {
    const auto copy =
        std::find_if(copies_.begin(), copies_.end(),
                     [&](const Copy& c) { return c.weight.is_same(weight); });
    return copy != copies_.end() ? *copy
                                 : copies_.emplace_back(Copy{.weight = weight});
  }

  std::mutex mutex_;
  std::vector<Copy> copies_;
};

LinearProducts::LinearProducts()
    : rounded_(std::make_unique<RoundedWeights>()) {}

LinearProducts::LinearProducts(const LinearProducts& other) : LinearProducts() {
  precision_ = other.precision_;
}

LinearProducts& LinearProducts::operator=(const LinearProducts& other) {
  set_precision(other.precision_);
  return *this;
}

LinearProducts::~LinearProducts() = default;

void LinearProducts::set_precision(LinearPrecision precision) {
  precision_ = precision;
  rounded_->Clear();
}

LinearInput FactorBeside(const LinearInput& other, const torch::Tensor& value) {
  return other.is_rounded || other.operand.defined()
             ? Factor(value, other.is_rounded || IsRounded(other.operand))
             : LinearInput{.value = value};
}

torch::ScalarType LinearProducts::OperandType(
    const torch::Tensor& value) const {
  return precision_ == LinearPrecision::kBfloat16 && IsFloatOnCpu(value)
             ? torch::kBFloat16
             : value.scalar_type();
}

LinearInput LinearProducts::Input(const torch::Tensor& value) const {
  return Factor(value, precision_ == LinearPrecision::kBfloat16);
}

LinearInput LinearProducts::Weight(const torch::Tensor& weight) const {
  return precision_ == LinearPrecision::kBfloat16 && IsFloatOnCpu(weight)
             ? LinearInput{.value = weight, .operand = rounded_->Of(weight)}
             : Input(weight);
}

torch::Tensor LinearProducts::Apply(const LinearInput& input,
                                    const LinearInput& weight,
                                    const torch::Tensor& bias) {
  if (input.is_rounded || weight.is_rounded) {
    const torch::Tensor product =
        torch::matmul(input.value, weight.value.t()).to(torch::kFloat32);
    return bias.defined() ? product + bias : product;
  }
  if (!input.operand.defined() || !weight.operand.defined()) {
    return torch::linear(input.value, weight.value, bias);
  }
  TORCH_CHECK(input.value.size(-1) == weight.value.size(1),
              "input should be [..., ", weight.value.size(1), "], but is ",
              input.value.sizes());
  return LinearFunction::apply(
      input.value, weight.value,
      bias.defined() ? OptionalTensor(bias) : OptionalTensor(), input.operand,
      weight.operand)[0];
}

std::vector<torch::Tensor> LinearProducts::ApplyEach(
    const LinearInput& input,
    const std::vector<torch::nn::Linear>& layers) const {
  const bool have_biases = std::all_of(
      layers.begin(), layers.end(),
      [](const torch::nn::Linear& layer) { return layer->bias.defined(); });
  if (layers.size() < 2 || !have_biases || !input.operand.defined() ||
      !IsRounded(input.operand)) {
    std::vector<torch::Tensor> outputs;
    for (const torch::nn::Linear& layer : layers) {
      outputs.push_back(Apply(input, layer));
    }
    return outputs;
  }
  Variables weights, biases, operands;
  for (const torch::nn::Linear& layer : layers) {
    const LinearInput weight = Weight(layer->weight);
    weights.push_back(weight.value);
    biases.push_back(layer->bias);
    operands.push_back(weight.operand);
  }
  return RoundedLayersFunction::apply(input.value, at::TensorList(weights),
                                      at::TensorList(biases), input.operand,
                                      at::TensorList(operands));
}

torch::Tensor ApplyLinear(const torch::Tensor& input,
                          const torch::Tensor& weight,
                          const torch::Tensor& bias) {
  const LinearProducts products;
  return LinearProducts::Apply(products.Input(input), products.Input(weight),
                               bias);
}

}  // namespace etc
