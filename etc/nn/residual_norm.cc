#include "etc/nn/residual_norm.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <vector>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/dropout_seeds.h"
#include "base/matrix_product.h"
#include "base/row_chunks.h"
#include "etc/nn/kernels/residual_norm.h"

namespace etc {
namespace {

using Context = torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;
using OptionalTensor = c10::optional<torch::Tensor>;

// The kernels' inputs, rows contiguous; `seed` is drawn.
struct Problem {
  torch::Tensor change;    // [..., H]
  torch::Tensor bias;      // [H] or undefined
  torch::Tensor residual;  // [..., H] or undefined
  double dropout;
  uint64_t seed;
  int64_t first_row;

  int64_t columns() const { return change.size(-1); }
  int64_t rows() const { return change.numel() / columns(); }
  // Returns true if the change alone is the sum.
  bool IsChangeAlone() const {
    return !bias.defined() && !residual.defined() && dropout == 0.0;
  }
};

torch::Tensor ContiguousIfGiven(const OptionalTensor& tensor) {
  return tensor.has_value() ? tensor->contiguous() : torch::Tensor();
}

Problem MakeProblem(const torch::Tensor& change, const OptionalTensor& bias,
                    const OptionalTensor& residual, double dropout,
                    int64_t first_row) {
  return {.change = change.contiguous(),
          .bias = ContiguousIfGiven(bias),
          .residual = ContiguousIfGiven(residual),
          .dropout = dropout,
          .seed = dropout > 0.0 ? DrawDropoutSeed() : 0,
          .first_row = first_row};
}

kernels::ResidualRows KernelRows(const Problem& problem) {
  return {
      .columns = problem.columns(),
      .change = problem.change.data_ptr<float>(),
      .bias = problem.bias.defined() ? problem.bias.data_ptr<float>() : nullptr,
      .residual = problem.residual.defined()
                      ? problem.residual.data_ptr<float>()
                      : nullptr,
      .dropout = problem.dropout,
      .dropout_seed = problem.seed,
      .first_row = problem.first_row};
}

torch::Tensor RunSum(const Problem& problem) {
  torch::Tensor sum = torch::empty_like(problem.change);
  const kernels::ResidualRows rows = KernelRows(problem);
  float* const data = sum.data_ptr<float>();
  ForEachRowChunk(problem.rows(), 0, 0, [&](const RowChunk& chunk) {
    kernels::ResidualSum(rows, chunk.begin, chunk.end, data);
  });
  return sum;
}

struct NormForward {
  torch::Tensor output;  // [..., H]
  // Saved for backward; undefined unless asked for.
  torch::Tensor sum;         // [..., H]
  torch::Tensor statistics;  // [2, rows], means and inverse deviations
};

NormForward RunNorm(const Problem& problem, const NormParameters& norm,
                    bool keep) {
  const torch::Tensor weight = norm.weight.contiguous();
  const torch::Tensor norm_bias = norm.bias.contiguous();
  NormForward result = {.output = torch::empty_like(problem.change)};
  kernels::NormResults results = {.epsilon = static_cast<float>(norm.epsilon),
                                  .weight = weight.data_ptr<float>(),
                                  .norm_bias = norm_bias.data_ptr<float>(),
                                  .sum = result.output.data_ptr<float>(),
                                  .output = result.output.data_ptr<float>()};
  if (keep) {
    result.sum = problem.IsChangeAlone() ? problem.change
                                         : torch::empty_like(problem.change);
    result.statistics = torch::empty({2, problem.rows()}, torch::kFloat32);
    if (!problem.IsChangeAlone()) {
      results.sum = result.sum.data_ptr<float>();
    }
    results.mean = result.statistics.data_ptr<float>();
    results.inverse_deviation = results.mean + problem.rows();
  }
  const kernels::ResidualRows rows = KernelRows(problem);
  ForEachRowChunk(problem.rows(), 0, 0, [&](const RowChunk& chunk) {
    kernels::ResidualNorm(rows, chunk.begin, chunk.end, results);
  });
  return result;
}

// State of both backward passes beside tensors.
struct Dropped {
  explicit Dropped(Context* context)
      : dropout(context->saved_data["dropout"].toDouble()),
        seed(static_cast<uint64_t>(context->saved_data["seed"].toInt())),
        first_row(context->saved_data["first_row"].toInt()),
        has_bias(context->saved_data["has_bias"].toBool()),
        has_residual(context->saved_data["has_residual"].toBool()) {}
  static void Save(const Problem& problem, Context* context) {
    context->saved_data["dropout"] = problem.dropout;
    context->saved_data["seed"] = static_cast<int64_t>(problem.seed);
    context->saved_data["first_row"] = problem.first_row;
    context->saved_data["has_bias"] = problem.bias.defined();
    context->saved_data["has_residual"] = problem.residual.defined();
  }

  // The tensor for the gradient of the change. Without dropout it is that of
  // the sum.
  torch::Tensor ChangeGradient(const torch::Tensor& sum_gradient) const {
    return dropout > 0.0 ? torch::empty_like(sum_gradient) : sum_gradient;
  }
  kernels::DroppedGradient ForKernel(const torch::Tensor& change_gradient,
                                     float* bias_sums) const {
    return {
        .columns = change_gradient.size(-1),
        .dropout = dropout,
        .dropout_seed = seed,
        .first_row = first_row,
        .change = dropout > 0.0 ? change_gradient.data_ptr<float>() : nullptr,
        .bias = has_bias ? bias_sums : nullptr};
  }

  double dropout;
  uint64_t seed;
  int64_t first_row;
  bool has_bias;
  bool has_residual;
};

class SumFunction : public torch::autograd::Function<SumFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& change,
                           const OptionalTensor& bias,
                           const OptionalTensor& residual, double dropout,
                           int64_t first_row) {
    const Problem problem =
        MakeProblem(change, bias, residual, dropout, first_row);
    Dropped::Save(problem, context);
    return {RunSum(problem)};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("the kernels of the residual connection", "float64");
    const Dropped dropped(context);
    const torch::Tensor sum_gradient = gradients[0].contiguous();
    const torch::Tensor change_gradient = dropped.ChangeGradient(sum_gradient);
    const int64_t columns = sum_gradient.size(-1);
    const float* const data = sum_gradient.data_ptr<float>();
    const torch::Tensor sums = ForEachRowChunk(
        sum_gradient.numel() / columns, dropped.has_bias ? 1 : 0, columns,
        [&](const RowChunk& chunk) {
          kernels::ResidualSumGradient(
              dropped.ForKernel(change_gradient, chunk.sums), chunk.begin,
              chunk.end, data);
        });
    return {change_gradient, dropped.has_bias ? sums[0] : torch::Tensor(),
            dropped.has_residual ? sum_gradient : torch::Tensor(),
            torch::Tensor(), torch::Tensor()};
  }
};

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static Variables forward(Context* context, const torch::Tensor& change,
                           const OptionalTensor& bias,
                           const OptionalTensor& residual,
                           const torch::Tensor& weight,
                           const torch::Tensor& norm_bias, double epsilon,
                           double dropout, int64_t first_row) {
    const Problem problem =
        MakeProblem(change, bias, residual, dropout, first_row);
    const NormForward result = RunNorm(
        problem, {.weight = weight, .bias = norm_bias, .epsilon = epsilon},
        /*keep=*/true);
    Dropped::Save(problem, context);
    context->save_for_backward({result.sum, result.statistics, weight});
    return {result.output};
  }

  static Variables backward(Context* context, Variables gradients) {
    RefuseSecondGradients("the kernels of the residual connection", "float64");
    const Dropped dropped(context);
    const Variables saved = context->get_saved_variables();
    const torch::Tensor& sum = saved[0];
    const torch::Tensor weight = saved[2].contiguous();
    const torch::Tensor output_gradient = gradients[0].contiguous();
    const torch::Tensor sum_gradient = torch::empty_like(sum);
    const torch::Tensor change_gradient = dropped.ChangeGradient(sum_gradient);
    const int64_t rows = saved[1].size(1);
    const int64_t columns = sum.size(-1);
    kernels::NormGradient norm = {
        .weight = weight.data_ptr<float>(),
        .sum = sum.data_ptr<float>(),
        .mean = saved[1].data_ptr<float>(),
        .inverse_deviation = saved[1].data_ptr<float>() + rows,
        .output_gradient = output_gradient.data_ptr<float>(),
        .sum_gradient = sum_gradient.data_ptr<float>()};
    const torch::Tensor sums =  // of the norm's weight and bias, and the bias
        ForEachRowChunk(rows, 3, columns, [&](const RowChunk& chunk) {
          kernels::NormGradient of_chunk = norm;
          of_chunk.weight_gradient = chunk.sums;
          of_chunk.norm_bias_gradient = chunk.sums + columns;
          kernels::ResidualNormGradient(
              of_chunk,
              dropped.ForKernel(change_gradient, chunk.sums + 2 * columns),
              chunk.begin, chunk.end);
        });
    return {change_gradient,
            dropped.has_bias ? sums[2] : torch::Tensor(),
            dropped.has_residual ? sum_gradient : torch::Tensor(),
            sums[0],
            sums[1],
            torch::Tensor(),
            torch::Tensor(),
            torch::Tensor()};
  }
};

void CheckInput(const ResidualInput& input) {
  TORCH_CHECK(input.change.defined(), "change is undefined");
  TORCH_CHECK(input.change.dim() >= 1 && input.change.size(-1) >= 1,
              "change should be [..., hidden], but is ", input.change.sizes());
  if (input.residual.defined()) {
    ETC_CHECK_SHAPE(input.residual, input.change.sizes().vec());
  }
  if (input.bias.defined()) {
    ETC_CHECK_SHAPE(input.bias, {input.change.size(-1)});
  }
  if (input.dropout_factors.defined()) {
    ETC_CHECK_SHAPE(input.dropout_factors, input.change.sizes().vec());
  }
  TORCH_CHECK(input.dropout >= 0.0 && input.dropout < 1.0,
              "dropout should be in [0, 1), but is ", input.dropout);
}

bool HasResidualKernels(const ResidualInput& input,
                        const std::vector<torch::Tensor>& others) {
  std::vector<torch::Tensor> all = others;
  all.insert(all.end(), {input.change, input.bias, input.residual});
  for (const torch::Tensor& tensor : all) {
    if (tensor.defined() && !IsFloatOnCpu(tensor)) {
      return false;
    }
  }
  return !input.dropout_factors.defined();
}

bool WantsGradient(const std::vector<torch::Tensor>& tensors) {
  if (!torch::GradMode::is_enabled()) {
    return false;
  }
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) {
      return true;
    }
  }
  return false;
}

OptionalTensor Optional(const torch::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : c10::nullopt;
}

}  // namespace

torch::nn::LayerNorm MakeLayerNorm(int64_t size, double epsilon) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({size}).eps(epsilon));
}

torch::Tensor ResidualSum(const ResidualInput& input) {
  CheckInput(input);
  if (!HasResidualKernels(input, {})) {
    return ResidualSumReference(input);
  }
  return SumFunction::apply(input.change, Optional(input.bias),
                            Optional(input.residual), input.dropout,
                            input.first_row)[0];
}

torch::Tensor ResidualNorm(const ResidualInput& input,
                           const NormParameters& norm) {
  CheckInput(input);
  ETC_CHECK_SHAPE(norm.weight, {input.change.size(-1)});
  ETC_CHECK_SHAPE(norm.bias, {input.change.size(-1)});
  if (!HasResidualKernels(input, {norm.weight, norm.bias})) {
    return ResidualNormReference(input, norm);
  }
  if (!WantsGradient(
          {input.change, input.bias, input.residual, norm.weight, norm.bias})) {
    return RunNorm(MakeProblem(input.change, Optional(input.bias),
                               Optional(input.residual), input.dropout,
                               input.first_row),
                   norm, /*keep=*/false)
        .output;
  }
  return NormFunction::apply(input.change, Optional(input.bias),
                             Optional(input.residual), norm.weight, norm.bias,
                             norm.epsilon, input.dropout, input.first_row)[0];
}

torch::Tensor ApplyLayerNorm(const torch::Tensor& input,
                             const NormParameters& norm) {
  return ResidualNorm({.change = input}, norm);
}

torch::Tensor ApplyLayerNorm(const torch::Tensor& input,
                             const torch::nn::LayerNorm& norm) {
  return ApplyLayerNorm(input, {.weight = norm->weight,
                                .bias = norm->bias,
                                .epsilon = norm->options.eps()});
}

torch::Tensor ResidualSumReference(const ResidualInput& input) {
  CheckInput(input);
  torch::Tensor change =
      input.bias.defined() ? input.change + input.bias : input.change;
  if (input.dropout_factors.defined()) {
    change = change * input.dropout_factors;
  } else {
    TORCH_CHECK(input.first_row == 0 || input.dropout == 0.0,
                "dropout in a later slice of a stream needs float32 on the "
                "CPU, but this is ",
                change.scalar_type(), " on ", change.device());
    change = SeededDropout(change, input.dropout);
  }
  return input.residual.defined() ? input.residual + change : change;
}

torch::Tensor ResidualNormReference(const ResidualInput& input,
                                    const NormParameters& norm) {
  return torch::layer_norm(ResidualSumReference(input), {input.change.size(-1)},
                           norm.weight, norm.bias, norm.epsilon);
}

}  // namespace etc
