#include "etc/feed_forward.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <utility>

#include "attention/check_shape.h"
#include "attention/large_pages.h"
#include "etc/kernels/bias_gelu.h"
#include "etc/row_chunks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

// [..., n] -> [rows, n], contiguous.
torch::Tensor AsRows(const torch::Tensor& tensor) {
  return tensor.reshape({-1, tensor.size(-1)}).contiguous();
}

// a b. Its memory is large and new in each call.
torch::Tensor Product(const torch::Tensor& a, const torch::Tensor& b) {
  torch::Tensor result =
      WithLargePages(torch::empty({a.size(0), b.size(1)}, a.options()));
  return torch::mm_out(result, a, b);
}

std::vector<int64_t> WithLast(const torch::Tensor& tensor, int64_t last) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.back() = last;
  return shape;
}

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& intermediate_weight,
                           const torch::Tensor& intermediate_bias,
                           const torch::Tensor& output_weight) {
    const torch::Tensor before =  // [rows, F]
        Product(AsRows(input), intermediate_weight.t());
    const torch::Tensor output =  // [rows, H]
        Product(BiasGelu(before, intermediate_bias.contiguous()),
                output_weight.t());
    context->save_for_backward(
        {input, intermediate_weight, intermediate_bias, output_weight, before});
    return {output.view(WithLast(input, output_weight.size(0)))};
  }

  static Variables backward(Context* context, Variables gradients) {
    TORCH_CHECK(!torch::GradMode::is_enabled(),
                "gradients of gradients do not pass the kernels of the "
                "feed-forward block; use FeedForwardReference for them");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor& input = saved[0];
    const torch::Tensor& intermediate_weight = saved[1];
    const torch::Tensor& output_weight = saved[3];
    const torch::Tensor output_gradient = AsRows(gradients[0]);
    BiasGeluGradients middle =
        BiasGeluBackward_(saved[4], saved[2].contiguous(),
                          Product(output_gradient, output_weight));
    Variables result(4);
    result[3] = torch::mm(output_gradient.t(), middle.output);
    middle.output.reset();  // it is large
    result[0] =
        Product(middle.input_gradient, intermediate_weight).view(input.sizes());
    result[1] = torch::mm(middle.input_gradient.t(), AsRows(input));
    result[2] = middle.bias_gradient;
    return result;
  }
};

void CheckInput(const FeedForwardInput& input) {
  TORCH_CHECK(input.input.defined(), "input is undefined");
  TORCH_CHECK(input.input.dim() >= 1 && input.input.size(-1) >= 1,
              "input should be [..., hidden], but is ", input.input.sizes());
  TORCH_CHECK(input.intermediate_weight.dim() == 2,
              "intermediate_weight should be [intermediate, hidden], but is ",
              input.intermediate_weight.sizes());
  const int64_t hidden = input.input.size(-1);
  const int64_t intermediate = input.intermediate_weight.size(0);
  ETC_CHECK_SHAPE(input.intermediate_weight, {intermediate, hidden});
  ETC_CHECK_SHAPE(input.intermediate_bias, {intermediate});
  TORCH_CHECK(input.output_weight.dim() == 2 &&
                  input.output_weight.size(1) == intermediate,
              "output_weight should be [hidden, ", intermediate, "], but is ",
              input.output_weight.sizes());
}

bool KernelsServe(const FeedForwardInput& input) {
  for (const torch::Tensor& tensor :
       {input.input, input.intermediate_weight, input.intermediate_bias,
        input.output_weight}) {
    if (!tensor.device().is_cpu() || tensor.scalar_type() != torch::kFloat32) {
      return false;
    }
  }
  return input.activation == Activation::kGelu;
}

}  // namespace

torch::Tensor BiasGelu(const torch::Tensor& input, const torch::Tensor& bias) {
  const int64_t columns = input.size(1);
  const torch::Tensor output = WithLargePages(torch::empty_like(input));
  const float* const from = input.data_ptr<float>();
  const float* const added = bias.data_ptr<float>();
  float* const to = output.data_ptr<float>();
  ForEachRowChunk(input.size(0), 0, 0, [&](const RowChunk& chunk) {
    kernels::BiasGelu(chunk.end - chunk.begin, columns,
                      from + chunk.begin * columns, added,
                      to + chunk.begin * columns);
  });
  return output;
}

BiasGeluGradients BiasGeluBackward_(const torch::Tensor& input,
                                    const torch::Tensor& bias,
                                    torch::Tensor output_gradient) {
  const int64_t columns = input.size(1);
  const torch::Tensor output = WithLargePages(torch::empty_like(input));
  const kernels::BiasGeluRows all = {
      .input = input.data_ptr<float>(),
      .bias = bias.data_ptr<float>(),
      .output_gradient = output_gradient.data_ptr<float>(),
      .output = output.data_ptr<float>(),
      .input_gradient = output_gradient.data_ptr<float>()};
  const torch::Tensor sums =
      ForEachRowChunk(input.size(0), 1, columns, [&](const RowChunk& chunk) {
        const int64_t first = chunk.begin * columns;
        kernels::BiasGeluGradient(
            chunk.end - chunk.begin, columns,
            {.input = all.input + first,
             .bias = all.bias,
             .output_gradient = all.output_gradient + first,
             .output = all.output + first,
             .input_gradient = all.input_gradient + first,
             .bias_gradient = chunk.sums});
      });
  return {.output = output,
          .input_gradient = std::move(output_gradient),
          .bias_gradient = sums[0]};
}

torch::Tensor FeedForward(const FeedForwardInput& input) {
  CheckInput(input);
  if (!KernelsServe(input)) {
    return FeedForwardReference(input);
  }
  return GeluFunction::apply(input.input, input.intermediate_weight,
                             input.intermediate_bias, input.output_weight)[0];
}

torch::Tensor FeedForwardReference(const FeedForwardInput& input) {
  CheckInput(input);
  return torch::linear(
      Activate(input.activation,
               torch::linear(input.input, input.intermediate_weight,
                             input.intermediate_bias)),
      input.output_weight);
}

}  // namespace etc
