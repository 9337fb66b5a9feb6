#include "etc/nn/feed_forward.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <algorithm>
#include <utility>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/large_pages.h"
#include "base/linear.h"
#include "base/matrix_product.h"
#include "base/row_chunks.h"
#include "etc/nn/kernels/bias_gelu.h"
#include "etc/nn/residual_norm.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

// [..., n] -> [rows, n], contiguous.
torch::Tensor AsRows(const torch::Tensor& tensor) {
  return tensor.reshape({-1, tensor.size(-1)}).contiguous();
}

std::vector<int64_t> WithLast(const torch::Tensor& tensor, int64_t last) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.back() = last;
  return shape;
}

kernels::GeluForm FormOf(Activation activation) {
  return activation == Activation::kGeluErf ? kernels::GeluForm::kErf
                                            : kernels::GeluForm::kTanh;
}

Activation ActivationOf(Context* context) {
  return static_cast<Activation>(context->saved_data["activation"].toInt());
}

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  // The factors are the operands that the weights are in products.
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& /*intermediate_weight*/,
                           const torch::Tensor& intermediate_bias,
                           const torch::Tensor& output_weight,
                           const torch::Tensor& intermediate_factor,
                           const torch::Tensor& output_factor,
                           int64_t activation) {
    const torch::Tensor rows = AsRows(input);
    const torch::Tensor before =  // [rows, F]
        MatrixProduct(rows, intermediate_factor.t());
    const torch::Tensor output =  // [rows, H]
        MatrixProduct(BiasGelu(static_cast<Activation>(activation), before,
                               intermediate_bias.contiguous()),
                      output_factor.t());
    context->save_for_backward(
        {rows, intermediate_factor, intermediate_bias, output_factor, before});
    context->saved_data["shape"] = input.sizes().vec();
    context->saved_data["activation"] = activation;
    return {output.view(WithLast(input, output_weight.size(0)))};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("the kernels of the feed-forward block", "float64");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor& rows = saved[0];
    const torch::Tensor& intermediate_factor = saved[1];
    const torch::Tensor& output_factor = saved[3];
    const torch::Tensor output_gradient = AsRows(gradients[0]);
    BiasGeluGradients middle = BiasGeluBackward_(
        ActivationOf(context), saved[4], saved[2].contiguous(),
        MatrixProduct(output_gradient, output_factor));
    Variables result(7);
    result[3] = MatrixProduct(output_gradient.t(), middle.output);
    middle.output.reset();  // it is large
    result[0] = MatrixProduct(middle.input_gradient, intermediate_factor)
                    .view(context->saved_data["shape"].toIntVector());
    result[1] = MatrixProduct(middle.input_gradient.t(), rows);
    result[2] = middle.bias_gradient;
    return result;
  }
};

// The first element of a tile.
uint16_t* At(const torch::Tensor& matrix, const ProductTile& tile) {
  return static_cast<uint16_t*>(matrix.data_ptr()) + tile.row * matrix.size(1) +
         tile.column;
}

// The same with products in bfloat16.
class RoundedGeluFunction
    : public torch::autograd::Function<RoundedGeluFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& /*intermediate_weight*/,
                           const torch::Tensor& intermediate_bias,
                           const torch::Tensor& output_weight,
                           const torch::Tensor& intermediate_factor,
                           const torch::Tensor& output_factor,
                           int64_t activation, bool is_differentiated) {
    const torch::Tensor rows = ToBfloat16(AsRows(input));
    const torch::Tensor bias = intermediate_bias.contiguous();
    const int64_t features = bias.size(0);
    torch::Tensor before;
    if (is_differentiated) {
      before = EmptyBfloat16({rows.size(0), features});
    }
    const torch::Tensor middle = EmptyBfloat16({rows.size(0), features});
    ForEachProductTile(
        rows, intermediate_factor.t(), [&](const ProductTile& tile) {
          kernels::BiasGeluOfTile(
              FormOf(static_cast<Activation>(activation)), tile,
              {.bias = bias.data_ptr<float>() + tile.column,
               .input = before.defined() ? At(before, tile) : nullptr,
               .output = At(middle, tile),
               .stride = features});
        });
    context->save_for_backward(
        {rows, intermediate_factor, output_factor, before});
    context->saved_data["shape"] = input.sizes().vec();
    context->saved_data["activation"] = activation;
    return {MatrixProduct(middle, output_factor.t())
                .view(WithLast(input, output_weight.size(0)))};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("the kernels of the feed-forward block", "float64");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor& rows = saved[0];
    const torch::Tensor& intermediate_factor = saved[1];
    const torch::Tensor& output_factor = saved[2];
    const torch::Tensor& before = saved[3];
    const kernels::GeluForm form = FormOf(ActivationOf(context));
    const int64_t features = before.size(1);
    const torch::Tensor output_gradient = ToBfloat16(AsRows(gradients[0]));
    torch::Tensor middle = EmptyBfloat16({rows.size(0), features});
    const torch::Tensor middle_gradient =
        EmptyBfloat16({rows.size(0), features});
    const torch::Tensor bias_gradients = torch::empty(  // of tiles
        {(rows.size(0) + kTileRows - 1) / kTileRows, features});
    float* const bias_sums = bias_gradients.data_ptr<float>();
    ForEachProductTile(
        output_gradient, output_factor, [&](const ProductTile& tile) {
          kernels::BiasGeluGradientOfTile(
              form, tile,
              {.input = At(before, tile),
               .output = At(middle, tile),
               .input_gradient = At(middle_gradient, tile),
               .stride = features,
               .bias_gradient =
                   bias_sums + tile.row / kTileRows * features + tile.column});
        });
    Variables result(8);
    result[3] = MatrixProduct(output_gradient.t(), middle);
    middle.reset();  // it is large
    result[0] = MatrixProduct(middle_gradient, intermediate_factor)
                    .view(context->saved_data["shape"].toIntVector());
    result[1] = MatrixProduct(middle_gradient.t(), rows);
    result[2] = ColumnSums(bias_gradients);
    return result;
  }
};

void CheckInput(const FeedForwardInput& input) {
  TORCH_CHECK(input.input.defined(), "input is undefined");
  TORCH_CHECK(input.input.dim() >= 1 && input.input.size(-1) >= 1,
              "input should be [..., hidden], but is ", input.input.sizes());
  const torch::Tensor& intermediate_weight = input.intermediate_weight.value;
  const torch::Tensor& output_weight = input.output_weight.value;
  TORCH_CHECK(intermediate_weight.dim() == 2,
              "intermediate_weight should be [intermediate, hidden], but is ",
              intermediate_weight.sizes());
  const int64_t hidden = input.input.size(-1);
  const int64_t intermediate = intermediate_weight.size(0);
  ETC_CHECK_SHAPE(intermediate_weight, {intermediate, hidden});
  ETC_CHECK_SHAPE(input.intermediate_bias, {intermediate});
  TORCH_CHECK(output_weight.dim() == 2 && output_weight.size(1) == intermediate,
              "output_weight should be [hidden, ", intermediate, "], but is ",
              output_weight.sizes());
  const torch::Tensor& first = input.intermediate_weight.operand;
  const torch::Tensor& second = input.output_weight.operand;
  TORCH_CHECK(
      first.defined() == second.defined() &&
          (!first.defined() || first.scalar_type() == second.scalar_type()),
      "the operands of both weights should be of one dtype");
}

bool HasGeluKernels(const FeedForwardInput& input) {
  return IsFloatOnCpu(input.input) && IsFloatOnCpu(input.intermediate_bias) &&
         input.dropout == 0.0 &&
         (input.activation == Activation::kGelu ||
          input.activation == Activation::kGeluErf) &&
         input.intermediate_weight.operand.defined();
}

torch::Tensor FeedForwardOfRows(const FeedForwardInput& input) {
  const LinearInput& intermediate = input.intermediate_weight;
  const LinearInput& output = input.output_weight;
  if (HasGeluKernels(input)) {
    const auto activation = static_cast<int64_t>(input.activation);
    return intermediate.operand.scalar_type() == torch::kBFloat16
               ? RoundedGeluFunction::apply(
                     input.input, intermediate.value, input.intermediate_bias,
                     output.value, intermediate.operand, output.operand,
                     activation, torch::GradMode::is_enabled())[0]
               : GeluFunction::apply(input.input, intermediate.value,
                                     input.intermediate_bias, output.value,
                                     intermediate.operand, output.operand,
                                     activation)[0];
  }
  torch::Tensor middle =
      Activate(input.activation,
               LinearProducts::Apply(FactorBeside(intermediate, input.input),
                                     intermediate, input.intermediate_bias));
  if (input.dropout > 0.0) {
    middle = ResidualSum({.change = middle, .dropout = input.dropout});
  }
  return LinearProducts::Apply(FactorBeside(output, middle), output);
}

}  // namespace

torch::Tensor BiasGelu(Activation activation, const torch::Tensor& input,
                       const torch::Tensor& bias) {
  const torch::Tensor output = WithLargePages(torch::empty_like(input));
  const int64_t columns = input.size(1);
  const float* const from = input.data_ptr<float>();
  float* const to = output.data_ptr<float>();
  ForEachRowChunk(input.size(0), 0, 0, [&](const RowChunk& chunk) {
    const int64_t first = chunk.begin * columns;
    kernels::BiasGelu(FormOf(activation), chunk.end - chunk.begin, columns,
                      {.input = from + first,
                       .bias = bias.data_ptr<float>(),
                       .output = to + first});
  });
  return output;
}

BiasGeluGradients BiasGeluBackward_(Activation activation,
                                    const torch::Tensor& input,
                                    const torch::Tensor& bias,
                                    torch::Tensor output_gradient) {
  BiasGeluGradients result = {
      .output = WithLargePages(torch::empty_like(input)),
      .input_gradient = output_gradient};
  const int64_t columns = input.size(1);
  float* const gradient = output_gradient.data_ptr<float>();
  result.bias_gradient =
      ForEachRowChunk(input.size(0), 1, columns, [&](const RowChunk& chunk) {
        const int64_t first = chunk.begin * columns;
        kernels::BiasGeluGradient(
            FormOf(activation), chunk.end - chunk.begin, columns,
            {.input = input.data_ptr<float>() + first,
             .bias = bias.data_ptr<float>(),
             .output_gradient = gradient + first,
             .output = result.output.data_ptr<float>() + first,
             .input_gradient = gradient + first,
             .bias_gradient = chunk.sums});
      })[0];
  return result;
}

torch::Tensor FeedForward(const FeedForwardInput& input) {
  CheckInput(input);
  const int64_t rows = input.input.numel() / input.input.size(-1);
  if (torch::GradMode::is_enabled() || input.dropout > 0.0 ||
      rows <= kFeedForwardSliceRows) {
    return FeedForwardOfRows(input);
  }
  const torch::Tensor all = AsRows(input.input);
  const torch::Tensor output = torch::empty(
      {rows, input.output_weight.value.size(0)}, input.input.options());
  FeedForwardInput slice = input;
  for (int64_t begin = 0; begin < rows; begin += kFeedForwardSliceRows) {
    const int64_t end = std::min(rows, begin + kFeedForwardSliceRows);
    slice.input = all.slice(0, begin, end);
    output.slice(0, begin, end).copy_(FeedForwardOfRows(slice));
  }
  return output.view(WithLast(input.input, output.size(1)));
}

torch::Tensor FeedForwardReference(const FeedForwardInput& input) {
  CheckInput(input);
  const torch::Tensor middle =
      Activate(input.activation,
               torch::linear(input.input, input.intermediate_weight.value,
                             input.intermediate_bias));
  return torch::linear(
      ResidualSumReference({.change = middle, .dropout = input.dropout}),
      input.output_weight.value);
}

}  // namespace etc
