#include "etc/nn/column_scale.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <cstdint>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/matrix_product.h"
#include "base/row_chunks.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using OptionalTensor = c10::optional<torch::Tensor>;

bool IsFast(const torch::Tensor& tensor) {
  return !tensor.defined() || IsFloatOnCpu(tensor);
}

void CheckInput(const torch::Tensor& input, const torch::Tensor& factors,
                const torch::Tensor& residual) {
  TORCH_CHECK(input.dim() >= 1 && input.size(-1) >= 1,
              "input should be [..., hidden], but is ", input.sizes());
  ETC_CHECK_SHAPE(factors, {input.size(-1)});
  if (residual.defined()) {
    ETC_CHECK_SHAPE(residual, input.sizes().vec());
  }
}

class ScaleFunction : public torch::autograd::Function<ScaleFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& input,
                           const torch::Tensor& factors,
                           const OptionalTensor& residual) {
    const torch::Tensor rows = input.contiguous();
    const torch::Tensor row = factors.contiguous();
    const torch::Tensor added =
        residual.has_value() ? residual->contiguous() : torch::Tensor();
    torch::Tensor output = torch::empty_like(rows);
    const int64_t columns = rows.size(-1);
    const auto* const x = rows.data_ptr<float>();
    const auto* const f = row.data_ptr<float>();
    const auto* const r = added.defined() ? added.data_ptr<float>() : nullptr;
    auto* const y = output.data_ptr<float>();
    ForEachRowChunk(rows.numel() / columns, 0, 0, [&](const RowChunk& chunk) {
      for (int64_t i = chunk.begin * columns; i < chunk.end * columns;
           i += columns) {
        for (int64_t c = 0; c < columns; ++c) {
          y[i + c] = f[c] * x[i + c];
        }
        for (int64_t c = 0; r != nullptr && c < columns; ++c) {
          y[i + c] += r[i + c];
        }
      }
    });
    context->saved_data["has_residual"] = added.defined();
    context->save_for_backward({rows, row});
    return {output};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("the kernels of the residual connection", "float64");
    const Variables saved = context->get_saved_variables();
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor input_gradient = torch::empty_like(gradient);
    const int64_t columns = gradient.size(-1);
    const auto* const x = saved[0].data_ptr<float>();
    const auto* const f = saved[1].data_ptr<float>();
    const auto* const dy = gradient.data_ptr<float>();
    auto* const dx = input_gradient.data_ptr<float>();
    const torch::Tensor sums = ForEachRowChunk(
        gradient.numel() / columns, 1, columns, [&](const RowChunk& chunk) {
          for (int64_t i = chunk.begin * columns; i < chunk.end * columns;
               i += columns) {
            for (int64_t c = 0; c < columns; ++c) {
              dx[i + c] = f[c] * dy[i + c];
              chunk.sums[c] += x[i + c] * dy[i + c];
            }
          }
        });
    return {input_gradient, sums[0],
            context->saved_data["has_residual"].toBool() ? gradient
                                                         : torch::Tensor()};
  }
};

}  // namespace

torch::Tensor ScaleColumns(const torch::Tensor& input,
                           const torch::Tensor& factors,
                           const torch::Tensor& residual) {
  CheckInput(input, factors, residual);
  if (IsFast(input) && IsFast(factors) && IsFast(residual)) {
    return ScaleFunction::apply(
        input, factors,
        residual.defined() ? OptionalTensor(residual) : c10::nullopt)[0];
  }
  const torch::Tensor scaled = input * factors;
  return residual.defined() ? residual + scaled : scaled;
}

}  // namespace etc
