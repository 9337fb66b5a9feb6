#include "attention/dot_product_attention.h"

#include <c10/util/Exception.h>

#include "attention/inspection.h"

namespace etc {
namespace {

// Numbers for keys of which there are none, beside those for other keys.
torch::Tensor NoKeys(const torch::Tensor& other) {
  return other.defined()
             ? other.new_empty({other.size(0), other.size(1), other.size(2), 0})
             : torch::Tensor();
}

// All keys are other keys, since the kernels divide those among threads where
// own keys have no window.
SparseAttentionInput WithoutOwnKeys(const DotProductAttentionInput& input) {
  for (const torch::Tensor* tensor : {&input.query, &input.key, &input.value}) {
    TORCH_CHECK(tensor->defined() && tensor->dim() == 4,
                "query, key and value should be [batch, heads, length, "
                "head_dim]");
  }
  SparseAttentionInput out;
  out.operands = {.query = input.query,
                  .own_key = input.key.detach().narrow(2, 0, 0),
                  .own_value = input.value.detach().narrow(2, 0, 0),
                  .other_key = input.key,
                  .other_value = input.value,
                  .relative = input.relative};
  out.pattern = input.pattern;
  out.residual = input.residual;
  if (input.previous.sum.defined()) {
    out.previous = {.own = ScoreTensor(NoKeys(input.previous.sum),
                                       input.previous.sum.live()),
                    .other = input.previous.sum};
  }
  out.previous.layers = input.previous.layers;
  if (input.gate.defined()) {
    out.gates = {.own = torch::zeros_like(input.gate.detach()),
                 .other = input.gate};
  }
  out.decay = input.decay;
  out.storage = input.storage;
  out.dropout = input.dropout;
  out.dropout_factors = {.own = NoKeys(input.dropout_factors),
                         .other = input.dropout_factors};
  return out;
}

}  // namespace

DotProductAttentionOutput DotProductAttention(
    const DotProductAttentionInput& input,
    AttentionImplementation implementation) {
  const SparseAttentionOutput output =
      SparseAttention(WithoutOwnKeys(input), implementation);
  return {
      .context = output.context,
      .scores = {.sum = output.scores.other, .layers = output.scores.layers}};
}

SoftmaxView InspectAttention(const DotProductAttentionInput& input,
                             const SoftmaxSelection& which) {
  return InspectAttention(WithoutOwnKeys(input), which);
}

void MaterializeDropout(uint64_t seed, DotProductAttentionInput* input) {
  SparseAttentionInput whole = WithoutOwnKeys(*input);
  MaterializeDropout(seed, &whole);
  input->dropout_factors = whole.dropout_factors.other;
}

}  // namespace etc
