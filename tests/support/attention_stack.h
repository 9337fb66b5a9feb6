#ifndef ETC_TESTS_SUPPORT_ATTENTION_STACK_H_
#define ETC_TESTS_SUPPORT_ATTENTION_STACK_H_

// Layers of sparse attention over random inputs, each carrying scores to the
// next: what the tests of the kernels compare between implementations.

#include <torch/autograd.h>
#include <torch/types.h>

#include <random>
#include <string>
#include <vector>

#include "attention/sparse_attention.h"
#include "tests/support/random_attention.h"

namespace etc {

enum class Borders { kMultihop, kScattered, kNone };

struct AttentionCase {
  int64_t longs = 0;
  int64_t globals = 3;
  int64_t radius = 3;
  int64_t head_dim = 8;
  int64_t value_dim = 8;
  int64_t heads = 2;
  int64_t layers = 3;
  ResidualAttention residual = ResidualAttention::kSum;
  Borders borders = Borders::kMultihop;
  bool hard = false;
  int64_t distance = 2;
  double dropout = 0.0;

  std::string Name() const {
    return "L" + std::to_string(longs) + " G" + std::to_string(globals) + " r" +
           std::to_string(radius) + " d" + std::to_string(head_dim) + "/" +
           std::to_string(value_dim) + " residual " +
           std::to_string(static_cast<int>(residual)) + " borders " +
           std::to_string(static_cast<int>(borders)) +
           (hard ? " hard" : " soft") + " m" + std::to_string(distance) +
           " dropout " + std::to_string(dropout);
  }
};

inline AttentionPattern MakePattern(const AttentionCase& c, int64_t longs,
                                    int64_t globals, std::mt19937_64* random) {
  const PatternOptions options = {.local_radius = c.radius,
                                  .relative_pos_max_distance = c.distance,
                                  .hard_g2l = c.hard,
                                  .hard_l2g = c.hard};
  if (c.borders == Borders::kNone) {
    return UnrestrictedPattern(longs, globals, c.radius, c.distance);
  }
  AttentionPattern pattern =
      RandomMultihopPattern(longs, globals, options, random);
  if (c.borders == Borders::kScattered) {
    for (int32_t& segment : pattern.long_segment) {
      segment = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& example : pattern.long_example) {
      example = static_cast<int32_t>((*random)() % 2);
    }
    for (int32_t& example : pattern.global_example) {
      example = static_cast<int32_t>((*random)() % 3);
    }
    for (int32_t& segment : pattern.global_segment) {
      segment = static_cast<int32_t>((*random)() % 2);
    }
  }
  return pattern;
}

// The second example is shorter than the batch.
inline AttentionInputs MakeAttention(const AttentionCase& c) {
  std::mt19937_64 random(c.longs + 7 * c.globals + 31 * c.radius);
  std::vector<AttentionPattern> patterns;
  patterns.push_back(MakePattern(c, c.longs, c.globals, &random));
  patterns.push_back(
      MakePattern(c, (c.longs + 1) / 2, (c.globals + 1) / 2, &random));
  return AttentionInputs(std::move(patterns));
}

// The layers of one side.
struct AttentionStack {
  AttentionStack(const AttentionCase& c, QuerySide side,
                 const AttentionInputs& attention) {
    const int64_t own = side == QuerySide::kLong ? c.longs : c.globals;
    const int64_t other = side == QuerySide::kLong ? c.globals : c.longs;
    // Tokens' heads lie side by side, as projections leave them.
    const auto leaf = [&](int64_t length, int64_t size) {
      return torch::randn({2, length, c.heads, size}).transpose(1, 2);
    };
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      SparseAttentionInput input;
      input.side = side;
      input.query = leaf(own, c.head_dim);
      input.own_key = leaf(own, c.head_dim);
      input.own_value = leaf(own, c.value_dim);
      input.other_key = leaf(other, c.head_dim);
      input.other_value = leaf(other, c.value_dim);
      if (c.distance > 0) {
        input.relative = {
            .embedding =
                torch::randn({2 * c.distance + 5, c.heads, c.head_dim}) * 0.5,
            .bias = torch::randn({2 * c.distance + 5, c.heads})};
      }
      input.attention = &attention;
      input.local_radius = c.radius;
      input.residual = c.residual;
      input.layer = layer;
      input.dropout = c.dropout;
      layers.push_back(input);
    }
  }

  // The same values as new leaves of another type.
  AttentionStack As(torch::ScalarType dtype) const {
    AttentionStack copy = *this;
    for (SparseAttentionInput& input : copy.layers) {
      for (torch::Tensor* tensor : Tensors(&input)) {
        *tensor = tensor->to(dtype).detach().clone().requires_grad_(true);
      }
      for (torch::Tensor* factors :
           {&input.own_dropout_factors, &input.other_dropout_factors}) {
        if (factors->defined()) {
          *factors = factors->to(dtype);
        }
      }
    }
    return copy;
  }

  static std::vector<torch::Tensor*> Tensors(SparseAttentionInput* input) {
    std::vector<torch::Tensor*> all = {&input->query, &input->own_key,
                                       &input->own_value, &input->other_key,
                                       &input->other_value};
    if (input->relative.embedding.defined()) {
      all.push_back(&input->relative.embedding);
      all.push_back(&input->relative.bias);
    }
    return all;
  }

  std::vector<SparseAttentionInput> layers;
};

struct StackResult {
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> gradients;
};

// Outputs of all layers, each carrying to the next, scores where they count,
// and the gradients of a scalar in which every output has a part.
inline StackResult RunLayers(AttentionStack* stack,
                             AttentionImplementation implementation,
                             ScoreStorage storage = ScoreStorage::kStore) {
  StackResult result;
  std::vector<torch::Tensor> leaves;
  torch::Tensor own, other;
  LiveScores live;
  torch::Tensor scalar = torch::zeros({}, torch::kFloat64);
  const auto add = [&](const torch::Tensor& output) {
    result.outputs.push_back(output.detach().clone());
    const torch::Tensor weights =
        torch::arange(output.numel(), torch::kFloat64)
            .add(static_cast<double>(result.outputs.size()))
            .cos();
    scalar = scalar + (output.reshape(-1).to(torch::kFloat64) * weights).sum();
  };
  for (SparseAttentionInput& layer : stack->layers) {
    for (torch::Tensor* tensor : AttentionStack::Tensors(&layer)) {
      leaves.push_back(*tensor);
    }
    SparseAttentionInput input = layer;
    input.own_previous = own;
    input.other_previous = other;
    input.storage = storage;
    input.live = live;
    const SparseAttentionOutput output = SparseAttention(input, implementation);
    own = output.own_scores;
    other = output.other_scores;
    live = output.live;
    add(output.context);
    if (own.defined()) {
      const bool is_long = input.side == QuerySide::kLong;
      const int64_t queries = input.query.size(2);
      const int64_t others = input.other_key.size(2);
      const ExplicitInputs masks = input.attention->Tensors(
          2, is_long ? queries : others, is_long ? others : queries,
          input.local_radius, torch::kCPU);
      add(own * (is_long ? masks.l2l_mask : masks.g2g_mask).unsqueeze(1));
      add(other * (is_long ? masks.l2g_mask : masks.g2l_mask).unsqueeze(1));
    }
  }
  result.gradients = torch::autograd::grad({scalar}, leaves, {}, c10::nullopt,
                                           false, /*allow_unused=*/true);
  return result;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_ATTENTION_STACK_H_
