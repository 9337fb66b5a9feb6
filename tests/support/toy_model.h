#ifndef ETC_TESTS_SUPPORT_TOY_MODEL_H_
#define ETC_TESTS_SUPPORT_TOY_MODEL_H_

#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern_builders.h"
#include "etc/config.h"
#include "etc/model.h"

namespace etc {

// The toy model of doc/model.md 13.3, in float64: every parameter by formula.

inline EtcConfig ToyConfig() {
  EtcConfig config;
  config.vocab_size = 11;
  config.segment_vocab_size = 3;
  config.embedding_size = 3;
  config.hidden_size = 4;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.local_radius = 2;
  config.relative_pos_max_distance = 2;
  config.relative_vocab_size = 8;
  config.intermediate_size = 6;
  config.hidden_dropout_prob = 0.0;
  config.attention_probs_dropout_prob = 0.0;
  config.share_qkv_projections = false;
  return config;
}

// The same as a BERT with so many absolute positions: all tokens are global.
inline EtcConfig ToyBertConfig(int64_t positions) {
  EtcConfig config = ToyConfig();
  config.has_long_tokens = false;
  config.share_qkv_projections = true;
  config.share_att_output_projection = true;
  config.share_feed_forward_params = true;
  config.relative_vocab_size = std::nullopt;
  config.relative_pos_max_distance = 0;
  config.max_absolute_position_embeddings = positions;
  return config;
}

// Element k of variable n, row-major in the official layout:
// sin(0.37 k + 1.3 n + 0.5).
inline torch::Tensor ToyVariable(int64_t n, at::IntArrayRef shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= size;
  }
  return torch::arange(elements, torch::kFloat64)
      .mul(0.37)
      .add(1.3 * static_cast<double>(n) + 0.5)
      .sin()
      .reshape(shape);
}

// Kind of a parameter, by which it is made from its variable.
enum class ToyKind { kTable, kKernel, kBias, kGamma };

struct ToyParameter {
  std::string name;
  int64_t number;
  ToyKind kind;
};

// Parameters of the two layers and the embeddings with the numbers of the spec.
inline std::vector<ToyParameter> ToyParameters() {
  std::vector<ToyParameter> all;
  const auto dense = [&](const std::string& name, int64_t n) {
    all.push_back({name + ".weight", n, ToyKind::kKernel});
    all.push_back({name + ".bias", n + 1, ToyKind::kBias});
  };
  const auto norm = [&](const std::string& name, int64_t n) {
    all.push_back({name + ".weight", n, ToyKind::kGamma});
    all.push_back({name + ".bias", n + 1, ToyKind::kBias});
  };
  const auto relative = [&](const std::string& name, int64_t n) {
    all.push_back({name + ".embedding", n, ToyKind::kTable});
    all.push_back({name + ".bias", n + 1, ToyKind::kBias});
  };
  all.push_back({"embedding.token.weight", 1, ToyKind::kTable});
  dense("embedding.token.projection", 2);
  all.push_back({"embedding.segment.weight", 4, ToyKind::kTable});
  norm("embedding.long_norm", 5);
  norm("embedding.global_norm", 7);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const int64_t b = 8 + 38 * layer;
    const std::string p = "layers." + std::to_string(layer) + ".";
    dense(p + "attention.long_query", b + 1);
    dense(p + "attention.l2l_key", b + 3);
    dense(p + "attention.l2g_key", b + 5);
    dense(p + "attention.l2l_value", b + 7);
    dense(p + "attention.l2g_value", b + 9);
    relative(p + "attention.long_relative", b + 11);
    dense(p + "attention.long_output", b + 13);
    dense(p + "attention.global_query", b + 15);
    dense(p + "attention.g2g_key", b + 17);
    dense(p + "attention.g2g_value", b + 19);
    dense(p + "attention.g2l_key", b + 21);
    dense(p + "attention.g2l_value", b + 23);
    relative(p + "attention.global_relative", b + 25);
    dense(p + "attention.global_output", b + 27);
    norm(p + "long_attention_norm", b + 29);
    norm(p + "global_attention_norm", b + 31);
    dense(p + "feed_forward.intermediate", b + 33);
    dense(p + "feed_forward.output", b + 35);
    norm(p + "feed_forward.norm", b + 37);
  }
  return all;
}

inline torch::Tensor ToyValue(const ToyParameter& parameter,
                              at::IntArrayRef shape) {
  switch (parameter.kind) {
    case ToyKind::kTable:
      return ToyVariable(parameter.number, shape) * 0.3;
    case ToyKind::kKernel:  // there [in, out]
      return ToyVariable(parameter.number, {shape[1], shape[0]}).t() * 0.3;
    case ToyKind::kBias:
      return ToyVariable(parameter.number, shape) * 0.1;
    case ToyKind::kGamma:
      return ToyVariable(parameter.number, shape) * 0.1 + 1.0;
  }
  return {};
}

inline EtcModel ToyModel(const EtcConfig& config) {
  EtcModel model(config);
  model->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  for (const ToyParameter& parameter : ToyParameters()) {
    torch::Tensor tensor = parameters[parameter.name];
    tensor.copy_(ToyValue(parameter, tensor.sizes()));
  }
  return model;
}

inline EtcInput ToyInput(bool hard_g2l = true) {
  EtcInput input;
  input.token_ids =
      torch::tensor({1, 2, 3, 4, 5, 0, 0}, torch::kInt64).unsqueeze(0);
  input.global_token_ids = torch::tensor({1, 1, 0}, torch::kInt64).unsqueeze(0);
  input.attention = AttentionInputs(std::vector{PatternFromBreakpoints(
      {0, 0, 0, 0, 1, 0, 0}, {0, 1, 0}, {0, 0, 1, 1, 1, 0, 0},
      {.local_radius = 2,
       .relative_pos_max_distance = 2,
       .hard_g2l = hard_g2l})});
  return input;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TOY_MODEL_H_
