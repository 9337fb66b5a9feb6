#include "etc/nn/smoothed_loss.h"

#include <c10/util/Exception.h>
#include <torch/autograd.h>

#include <algorithm>
#include <vector>

#include "base/check_shape.h"
#include "base/check_tensor.h"
#include "base/matrix_product.h"
#include "base/row_chunks.h"
#include "etc/nn/kernels/smoothed_loss.h"

namespace etc {
namespace {

using LossContext = torch::autograd::AutogradContext;
using LossVariables = torch::autograd::variable_list;

// Tokens whose logits exist at once. Few enough to be small beside a layer's
// activations, enough that adding the chunk's gradient to that of the table
// costs little beside its product.
constexpr int64_t kTokensAtOnce = 1024;

// Sums of one chunk, and the gradient of the loss in its logits.
struct ChunkLoss {
  double loss = 0;
  double nll = 0;
};

// Replaces `logits` [tokens, V], float32 on the CPU, by the gradient.
ChunkLoss LossByKernel(const torch::Tensor& logits,
                       const torch::Tensor& targets, double smoothing) {
  const int64_t tokens = logits.size(0);
  std::vector<double> losses(static_cast<size_t>(tokens));
  std::vector<double> nlls(static_cast<size_t>(tokens));
  const kernels::SmoothedLossRows rows = {
      .columns = logits.size(1),
      .smoothing = smoothing,
      .targets = targets.data_ptr<int64_t>(),
      .logits = logits.data_ptr<float>(),
      .loss = losses.data(),
      .nll = nlls.data()};
  ForEachRowChunk(tokens, 0, 0, [&](const RowChunk& chunk) {
    kernels::SmoothedLoss(rows, chunk.begin, chunk.end);
  });
  ChunkLoss sums;
  for (size_t i = 0; i < losses.size(); ++i) {
    sums.loss += losses[i];
    sums.nll += nlls[i];
  }
  return sums;
}

// The same of any dtype and on any device.
ChunkLoss LossByOperations(torch::Tensor logits, const torch::Tensor& targets,
                           double smoothing) {
  const double vocabulary = static_cast<double>(logits.size(1));
  const torch::Tensor log_probabilities = torch::log_softmax(logits, 1);
  const torch::Tensor column = targets.unsqueeze(1);
  const torch::Tensor nll = -log_probabilities.gather(1, column).sum();
  const torch::Tensor loss = nll * (1.0 - smoothing) -
                             log_probabilities.sum() * (smoothing / vocabulary);
  logits.copy_(log_probabilities.exp().sub_(smoothing / vocabulary));
  logits.scatter_add_(
      1, column, torch::full_like(column, smoothing - 1.0, logits.options()));
  return {.loss = loss.item<double>(), .nll = nll.item<double>()};
}

class SmoothedLossFunction
    : public torch::autograd::Function<SmoothedLossFunction> {
 public:
  // `factor` is the weight in products.
  static LossVariables forward(LossContext* context,
                               const torch::Tensor& states,
                               const torch::Tensor& weight,
                               const LinearInput& factor,
                               const torch::Tensor& targets, double smoothing,
                               bool wants_gradient) {
    const int64_t tokens = states.size(0);
    torch::Tensor state_gradient, weight_gradient;
    if (wants_gradient) {
      state_gradient = torch::empty_like(states);
      weight_gradient = torch::zeros_like(weight);
    }
    ChunkLoss sums;
    for (int64_t begin = 0; begin < tokens; begin += kTokensAtOnce) {
      const int64_t count = std::min(kTokensAtOnce, tokens - begin);
      const LinearInput chunk =
          FactorBeside(factor, states.detach().narrow(0, begin, count));
      torch::Tensor logits = LinearProducts::Apply(chunk, factor);
      const torch::Tensor of_chunk = targets.narrow(0, begin, count);
      const ChunkLoss loss =
          chunk.operand.defined()
              ? LossByKernel(logits, of_chunk, smoothing)
              : LossByOperations(logits, of_chunk, smoothing);
      sums.loss += loss.loss;
      sums.nll += loss.nll;
      if (wants_gradient) {
        if (chunk.operand.defined()) {
          const torch::Tensor gradient = FactorBeside(factor, logits).operand;
          state_gradient.narrow(0, begin, count)
              .copy_(MatrixProduct(gradient, factor.operand));
          weight_gradient.add_(MatrixProduct(gradient.t(), chunk.operand));
        } else {
          state_gradient.narrow(0, begin, count).copy_(logits.matmul(weight));
          weight_gradient.addmm_(logits.t(), states.narrow(0, begin, count));
        }
      }
    }
    context->save_for_backward({state_gradient, weight_gradient});
    const torch::Tensor nll = torch::full({}, sums.nll, states.options());
    context->mark_non_differentiable({nll});
    return {torch::full({}, sums.loss, states.options()), nll};
  }

  static LossVariables backward(LossContext* context, LossVariables gradients) {
    RefuseSecondGradients("SmoothedCrossEntropy",
                          "SmoothedCrossEntropyReference");
    const LossVariables saved = context->get_saved_variables();
    LossVariables result(6);
    for (const size_t i : {0, 1}) {
      if (context->needs_input_grad(i)) {
        result[i] = saved[i] * gradients[0];
      }
    }
    return result;
  }
};

void CheckLossInput(const SmoothedLossInput& input) {
  const torch::Tensor& weight = input.weight;
  TORCH_CHECK(weight.defined() && weight.dim() == 2,
              "weight should be [vocabulary, hidden], but is ",
              weight.defined() ? weight.sizes() : at::IntArrayRef());
  TORCH_CHECK(
      input.states.defined() && input.states.dim() >= 1 &&
          input.states.size(-1) == weight.size(1),
      "states should be [..., ", weight.size(1), "], but are ",
      input.states.defined() ? input.states.sizes() : at::IntArrayRef());
  TORCH_CHECK(input.states.scalar_type() == weight.scalar_type(),
              "states should be ", weight.scalar_type(),
              ", as the weight, but are ", input.states.scalar_type());
  CheckIntegers(input.targets, "targets");
  ETC_CHECK_SHAPE(input.targets,
                  input.states.sizes().slice(0, input.states.dim() - 1).vec());
  TORCH_CHECK(input.smoothing >= 0.0 && input.smoothing < 1.0,
              "smoothing should be in [0, 1), but is ", input.smoothing);
  if (input.targets.numel() > 0 && input.targets.is_cpu()) {
    const int64_t lowest = input.targets.min().item<int64_t>();
    const int64_t highest = input.targets.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest < weight.size(0),
                "targets should be in [0, ", weight.size(0),
                "), but range from ", lowest, " to ", highest);
  }
}

// Tokens that have a loss: [tokens, d] and [tokens] int64.
struct LossTokens {
  torch::Tensor states;
  torch::Tensor targets;
};

LossTokens TokensWithLoss(const SmoothedLossInput& input) {
  const torch::Tensor states =
      input.states.reshape({-1, input.states.size(-1)});
  const torch::Tensor targets =
      input.targets.reshape({-1}).to(torch::kInt64).contiguous();
  const torch::Tensor rows = targets.ne(input.ignored).nonzero().flatten();
  if (rows.numel() == targets.numel()) {
    return {.states = states, .targets = targets};
  }
  return {.states = states.index_select(0, rows),
          .targets = targets.index_select(0, rows)};
}

}  // namespace

SmoothedLoss SmoothedCrossEntropy(const SmoothedLossInput& input) {
  CheckLossInput(input);
  const LossTokens tokens = TokensWithLoss(input);
  const torch::Tensor& weight = input.weight;
  const LossVariables sums = SmoothedLossFunction::apply(
      tokens.states, weight,
      input.factor.value.defined() ? input.factor
                                   : LinearInput{.value = weight},
      tokens.targets, input.smoothing,
      torch::GradMode::is_enabled() &&
          (tokens.states.requires_grad() || weight.requires_grad()));
  return {.loss = sums[0], .nll = sums[1], .tokens = tokens.targets.numel()};
}

SmoothedLoss SmoothedCrossEntropyReference(const SmoothedLossInput& input) {
  CheckLossInput(input);
  const LossTokens tokens = TokensWithLoss(input);
  const torch::Tensor log_probabilities =
      torch::log_softmax(tokens.states.matmul(input.weight.t()), 1);
  const torch::Tensor nll =
      -log_probabilities.gather(1, tokens.targets.unsqueeze(1)).sum();
  const double share =
      input.smoothing / static_cast<double>(input.weight.size(0));
  return {
      .loss = nll * (1.0 - input.smoothing) - log_probabilities.sum() * share,
      .nll = nll.detach(),
      .tokens = tokens.targets.numel()};
}

}  // namespace etc
