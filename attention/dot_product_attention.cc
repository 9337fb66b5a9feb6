#include "attention/dot_product_attention.h"

#include <c10/util/Exception.h>

#include "attention/inspection.h"
#include "base/check_shape.h"

namespace etc {
namespace {

// Keys or values of which there are none, beside all the others.
torch::Tensor NoTokens(const torch::Tensor& tokens) {
  return tokens.detach().narrow(2, 0, 0);
}

// Scores with them, beside those with the others.
torch::Tensor NoColumns(const torch::Tensor& scores) {
  return scores.new_empty({scores.size(0), scores.size(1), scores.size(2), 0});
}

// Sets one of a pair to `all` and the other, of no keys, to `none`.
template <typename Value>
void SetBlock(bool is_own, const Value& all, const Value& none, Value* own,
              Value* other) {
  *own = is_own ? all : none;
  *other = is_own ? none : all;
}

// SparseAttention checks the rest, but would name the blocks of WithOneBlock.
void CheckInput(const DotProductAttentionInput& input) {
  const torch::Tensor& query = input.query;
  const torch::Tensor& key = input.key;
  const torch::Tensor& value = input.value;
  for (const torch::Tensor* tensor : {&query, &key, &value}) {
    TORCH_CHECK(tensor->defined() && tensor->dim() == 4,
                "query, key and value should be [batch, heads, length, "
                "head_dim]");
  }
  const int64_t batch = query.size(0);
  const int64_t heads = query.size(1);
  const int64_t keys = key.size(2);
  const int64_t head_dim = query.size(3);
  const int64_t value_dim = value.size(3);
  ETC_CHECK_SHAPE(key, {batch, heads, keys, head_dim});
  ETC_CHECK_SHAPE(value, {batch, heads, keys, value_dim});
  const SoftmaxPattern& pattern = input.pattern;
  TORCH_CHECK(pattern.masks != nullptr, "who sees whom is missing");
  TORCH_CHECK(pattern.has_one_block() && pattern.batch == batch &&
                  pattern.queries == query.size(2) && pattern.keys() == keys,
              "the pattern should be for ", batch, " examples of ",
              query.size(2), " queries and ", keys, " keys, but is for ",
              pattern.batch, " of ", pattern.queries, " and ", pattern.keys());
  TORCH_CHECK(
      !input.relative.embedding.defined() || pattern.max_distance != 0,
      "there is a relative table, but the pattern has no relative ids: its "
      "max_distance is 0");
}

// With a window all keys are own keys, else other keys, since the kernels
// divide those among threads where own keys have no window.
SparseAttentionInput WithOneBlock(const DotProductAttentionInput& input) {
  CheckInput(input);
  const bool is_own = input.pattern.window.is_restricted();
  SparseAttentionInput out;
  out.operands.query = input.query;
  out.operands.relative = input.relative;
  SetBlock(is_own, input.key, NoTokens(input.key), &out.operands.own_key,
           &out.operands.other_key);
  SetBlock(is_own, input.value, NoTokens(input.value), &out.operands.own_value,
           &out.operands.other_value);
  out.pattern = input.pattern;
  out.residual = input.residual;
  const ScoreTensor& below = input.previous.sum;
  if (below.defined()) {
    SetBlock(is_own, below, ScoreTensor(NoColumns(below), below.live()),
             &out.previous.own, &out.previous.other);
  }
  out.previous.layers = input.previous.layers;
  if (input.gate.defined()) {
    SetBlock(is_own, input.gate, torch::zeros_like(input.gate.detach()),
             &out.gates.own, &out.gates.other);
  }
  out.precision = input.precision;
  out.dropout = input.dropout;
  return out;
}

}  // namespace

DotProductAttentionOutput DotProductAttention(
    const DotProductAttentionInput& input,
    AttentionImplementation implementation) {
  const SparseAttentionOutput output =
      SparseAttention(WithOneBlock(input), implementation);
  return {.context = output.context,
          .scores = {.sum = input.pattern.window.is_restricted()
                                ? output.scores.own
                                : output.scores.other,
                     .layers = output.scores.layers}};
}

SoftmaxView InspectAttention(const DotProductAttentionInput& input,
                             const SoftmaxSelection& which) {
  return InspectAttention(WithOneBlock(input), which);
}

}  // namespace etc
