#include "attention/backends/reference/reference_backend.h"

#include "attention/backends/reference/dense_attention.h"
#include "attention/backends/reference/own_columns.h"
#include "attention/dropout_factors.h"

namespace etc {

AttentionForward ReferenceBackend::Forward(
    const AttentionProblem& problem) const {
  const AttentionOperands& operands = problem.operands;
  const torch::Device device = operands.query.device();
  const SoftmaxMasks masks = problem.pattern.masks(device);
  const int64_t own_keys = operands.own_key.size(2);
  const OwnColumns own(
      torch::arange(operands.query.size(2),
                    torch::TensorOptions().dtype(torch::kInt64).device(device)),
      /*begin=*/0, own_keys, problem.pattern.window);
  // [..., T, own keys + other keys], or undefined
  const auto join = [&](const torch::Tensor& of_own,
                        const torch::Tensor& of_other) {
    return of_own.defined() ? torch::cat({own.ToDense(of_own), of_other}, -1)
                            : torch::Tensor();
  };
  const ScorePair factors =
      DropoutFactors(problem, {.begin = 0, .count = operands.query.size(1)});
  const DenseAttentionOutput output = DenseAttention(
      {.query = operands.query,
       .key = torch::cat({operands.own_key, operands.other_key}, 2),
       .value = torch::cat({operands.own_value, operands.other_value}, 2),
       .mask = join(masks.own_mask, masks.other_mask),
       .relative_ids = problem.pattern.has_no_ids()
                           ? torch::Tensor()  // of an empty batch, too
                           : join(masks.own_ids, masks.other_ids),
       .relative = operands.relative,
       .previous = join(problem.previous.own, problem.previous.other),
       .score_factor = problem.score_factor,
       .divisor = problem.divisor,
       .gates = GatesOfKeys(problem),
       .dropout_factors = join(factors.own, factors.other)});
  AttentionForward result = {.context = output.context};
  if (problem.carry) {
    const int64_t other_keys = operands.other_key.size(2);
    result.scores = {
        .own = own.FromDense(output.scores.narrow(-1, 0, own_keys)),
        .other = output.scores.narrow(-1, own_keys, other_keys)};
  }
  return result;
}

}  // namespace etc
