#include "attention/linear.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "attention/check_shape.h"
#include "attention/kernels/bfloat16.h"
#include "attention/large_pages.h"
#include "attention/parallel_tasks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using OptionalTensor = c10::optional<torch::Tensor>;

bool IsOnCpu(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.device().is_cpu() && tensor.scalar_type() == type;
}

bool IsFloatOnCpu(const torch::Tensor& tensor) {
  return IsOnCpu(tensor, torch::kFloat32);
}

// As oneDNN takes it: rows or columns contiguous.
torch::Tensor AsMatrix(const torch::Tensor& matrix) {
  const int64_t rows = matrix.size(0);
  const int64_t columns = matrix.size(1);
  const bool by_rows = matrix.stride(1) == 1 && matrix.stride(0) >= columns;
  const bool by_columns = matrix.stride(0) == 1 && matrix.stride(1) >= rows;
  return by_rows || by_columns ? matrix : matrix.contiguous();
}

dnnl::memory::desc Describe(const torch::Tensor& matrix) {
  using Type = dnnl::memory::data_type;
  return {{matrix.size(0), matrix.size(1)},
          matrix.scalar_type() == torch::kBFloat16 ? Type::bf16 : Type::f32,
          {matrix.stride(0), matrix.stride(1)}};
}

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// result = a b + bias; none of them empty.
void Multiply(const torch::Tensor& a, const torch::Tensor& b,
              const torch::Tensor& bias, const torch::Tensor& result) {
  using Memory = dnnl::memory;
  const Memory::desc a_shape = Describe(a);
  const Memory::desc b_shape = Describe(b);
  const Memory::desc result_shape = Describe(result);
  const Memory::desc bias_shape({1, b.size(1)}, Memory::data_type::f32,
                                Memory::format_tag::ab);
  // oneDNN keeps what it made for a shape.
  const dnnl::matmul::primitive_desc plan(
      bias.defined()
          ? dnnl::matmul::desc(a_shape, b_shape, bias_shape, result_shape)
          : dnnl::matmul::desc(a_shape, b_shape, result_shape),
      Engine());
  std::unordered_map<int, Memory> arguments = {
      {DNNL_ARG_SRC, Memory(a_shape, Engine(), a.data_ptr())},
      {DNNL_ARG_WEIGHTS, Memory(b_shape, Engine(), b.data_ptr())},
      {DNNL_ARG_DST, Memory(result_shape, Engine(), result.data_ptr())}};
  if (bias.defined()) {
    arguments.emplace(DNNL_ARG_BIAS,
                      Memory(bias_shape, Engine(), bias.data_ptr()));
  }
  dnnl::stream stream(Engine());
  dnnl::matmul(plan).execute(stream, arguments);
  stream.wait();
}

void CheckCpu() {
  TORCH_CHECK(
      kernels::Bfloat16ProductsOfThisCpu() != kernels::Bfloat16Products::kNone,
      "products in bfloat16 need a CPU with AVX-512");
}

torch::Tensor AsRows(const torch::Tensor& tensor) {
  return tensor.reshape({-1, tensor.size(-1)});
}

LinearInput Factor(const torch::Tensor& value, bool rounded) {
  if (!IsFloatOnCpu(value)) {
    return {.value = value};
  }
  return {.value = value,
          .operand = rounded ? ToBfloat16(value) : value.detach()};
}

bool IsRounded(const torch::Tensor& operand) {
  return operand.scalar_type() == torch::kBFloat16;
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
    return {MatrixProduct(AsRows(input_operand), weight_operand.t(),
                          bias.value_or(torch::Tensor()))
                .view(shape)};
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass linear layers of float32 "
                "on the CPU; use float64 for them");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor gradient = AsRows(gradients[0]);
    const torch::Tensor operand = Factor(gradient, IsRounded(saved[1])).operand;
    Variables result(5);
    if (context->needs_input_grad(0)) {
      result[0] = MatrixProduct(operand, saved[1]).view(saved[0].sizes());
    }
    if (context->needs_input_grad(1)) {
      result[1] = MatrixProduct(operand.t(), AsRows(saved[0]));
    }
    if (context->saved_data["has_bias"].toBool()) {
      result[2] = gradient.sum(0);
    }
    return result;
  }
};

}  // namespace

torch::Tensor ToBfloat16(const torch::Tensor& values) {
  TORCH_CHECK(
      IsFloatOnCpu(values),
      "what is rounded to bfloat16 should be float32 on the CPU, but is ",
      values.scalar_type(), " on ", values.device());
  const torch::Tensor from = values.detach().contiguous();
  torch::Tensor to =
      WithLargePages(torch::empty(from.sizes(), torch::kBFloat16));
  const float* const source = from.data_ptr<float>();
  auto* const target = static_cast<uint16_t*>(to.data_ptr());
  constexpr int64_t kChunk = int64_t{1} << 16;
  const int64_t count = from.numel();
  ForEachTask((count + kChunk - 1) / kChunk, /*floats=*/0,
              [&](int64_t chunk, float*) {
                const int64_t begin = chunk * kChunk;
                kernels::RoundToBfloat16(std::min(kChunk, count - begin),
                                         source + begin, target + begin);
              });
  return to;
}

torch::Tensor MatrixProduct(const torch::Tensor& a, const torch::Tensor& b,
                            const torch::Tensor& bias) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
              "factors should be [m, k] and [k, n], but are ", a.sizes(),
              " and ", b.sizes());
  const bool rounded = IsRounded(a);
  for (const torch::Tensor& factor : {a, b}) {
    TORCH_CHECK(
        IsOnCpu(factor, rounded ? torch::kBFloat16 : torch::kFloat32),
        "factors should both be float32 or bfloat16 on the CPU, but one is ",
        factor.scalar_type(), " on ", factor.device());
  }
  if (rounded) {
    CheckCpu();
  }
  torch::Tensor added;
  if (bias.defined()) {
    ETC_CHECK_SHAPE(bias, {b.size(1)});
    TORCH_CHECK(IsFloatOnCpu(bias), "bias should be float32 on the CPU");
    added = bias.detach().contiguous();
  }
  torch::Tensor result =
      WithLargePages(torch::empty({a.size(0), b.size(1)}, torch::kFloat32));
  if (a.size(1) == 0) {
    const torch::NoGradGuard no_grad;
    return added.defined() ? result.copy_(added) : result.zero_();
  }
  if (result.numel() > 0) {
    Multiply(AsMatrix(a), AsMatrix(b), added, result);
  }
  return result;
}

void LinearProducts::set_precision(LinearPrecision precision) {
  if (precision == LinearPrecision::kBfloat16) {
    CheckCpu();
  }
  precision_ = precision;
  copies_.clear();
}

LinearInput FactorBeside(const LinearInput& other, const torch::Tensor& value) {
  return other.operand.defined() ? Factor(value, IsRounded(other.operand))
                                 : LinearInput{.value = value};
}

LinearInput LinearProducts::Input(const torch::Tensor& value) const {
  return Factor(value, precision_ == LinearPrecision::kBfloat16);
}

LinearInput LinearProducts::Weight(const torch::Tensor& weight) {
  return precision_ == LinearPrecision::kBfloat16 && IsFloatOnCpu(weight)
             ? LinearInput{.value = weight, .operand = RoundedWeight(weight)}
             : Input(weight);
}

torch::Tensor LinearProducts::RoundedWeight(const torch::Tensor& weight) {
  auto copy = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) {
    return c.weight.is_same(weight);
  });
  if (copy == copies_.end()) {
    copies_.push_back({.weight = weight});
    copy = copies_.end() - 1;
  }
  const auto version = static_cast<uint32_t>(weight._version());
  if (!copy->bfloat16.defined() || copy->version != version ||
      copy->data != weight.data_ptr()) {
    copy->version = version;
    copy->data = weight.data_ptr();
    copy->bfloat16 = ToBfloat16(weight);
  }
  return copy->bfloat16;
}

torch::Tensor LinearProducts::Apply(const LinearInput& input,
                                    const LinearInput& weight,
                                    const torch::Tensor& bias) {
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

}  // namespace etc
