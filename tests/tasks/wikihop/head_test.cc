// The head against doc/wikihop.md 5, its loss against the golden cases of
// doc/wikihop.md 11.3. Traps of doc/wikihop.md 12 that live here: 8
// (initialisation, LayerNorm, gelu) and 9 (masked logits are exactly -10000).
// Tolerances are those of float32.

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tasks/task/benchmark_head.h"
#include "tasks/wikihop/example.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 16;
  config.hidden_size = 8;
  config.intermediate_size = 24;
  config.num_attention_heads = 2;
  config.hidden_dropout_prob = 0.5;
  return config;
}

// An example with `candidates` candidates and `others` more global tokens.
std::shared_ptr<const Example> MakeExample(int candidates, int others,
                                           std::optional<int32_t> label) {
  auto example = std::make_shared<WikihopExample>();
  example->record_id = "q";
  example->long_token_ids = {9};
  example->long_type_ids = {kWikihopCandidateType};
  for (int i = 0; i < candidates; ++i) {
    example->candidates.push_back(std::to_string(i));
    example->global_token_ids.push_back(kWikihopCandidateToken);
    example->global_type_ids.push_back(kWikihopCandidateGlobalType);
  }
  for (int i = 0; i < others; ++i) {
    example->global_token_ids.push_back(kWikihopDocumentToken);
    example->global_type_ids.push_back(kWikihopDocumentGlobalType);
  }
  example->label = label;
  example->has_answer = label.has_value();
  example->pattern = UnrestrictedPattern(1, candidates + others, 1, 0);
  return example;
}

// Logits of a row of global tokens as the head leaves them.
torch::Tensor Logits(const std::vector<std::vector<float>>& rows) {
  std::vector<torch::Tensor> tensors;
  for (const std::vector<float>& row : rows) {
    tensors.push_back(torch::tensor(row));
  }
  return torch::stack(tensors);
}

constexpr float kMasked = -10000.0f;

torch::Tensor LossesOf(double label_smoothing, const torch::Tensor& logits,
                       const Batch& batch) {
  const auto head =
      MakeWikihopHead(SmallConfig(), {.label_smoothing = label_smoothing});
  return head->Losses({logits}, batch);
}

TEST(WikihopHeadTest, HasTheLossesOfTheSpec) {  // doc/wikihop.md 11.3
  for (const int others : {0, 3}) {
    const Batch batch = MakeBatch({MakeExample(3, others, 0)});
    std::vector<float> row = {2.0f, 1.0f, 0.0f};
    row.resize(static_cast<size_t>(3 + others), kMasked);
    const torch::Tensor logits = Logits({row});
    EXPECT_NEAR(LossesOf(0.0, logits, batch).item<double>(), 0.407606, 1e-6);
    EXPECT_NEAR(LossesOf(0.1, logits, batch).item<double>(), 0.507606, 1e-6);
  }
}

TEST(WikihopHeadTest, SmoothsOverEachExamplesOwnCandidates) {
  const Batch batch = MakeBatch({MakeExample(3, 1, 0), MakeExample(2, 0, 1)});
  const torch::Tensor logits =
      Logits({{2.0f, 1.0f, 0.0f, kMasked}, {2.0f, 1.0f, kMasked, kMasked}});
  const torch::Tensor losses = LossesOf(0.1, logits, batch);
  ASSERT_EQ(losses.sizes(), torch::IntArrayRef({2}));
  EXPECT_NEAR(losses[0].item<double>(), 0.507606, 1e-6);
  // Targets 0.05 and 0.95 of log-probabilities -ln(1 + 1/e), -1 - ln(1 + 1/e).
  EXPECT_NEAR(losses[1].item<double>(), 0.95 + std::log1p(std::exp(-1.0)),
              1e-6);
}

TEST(WikihopHeadTest, RefusesALossWithoutAnswer) {
  const Batch batch = MakeBatch({MakeExample(2, 0, std::nullopt)});
  EXPECT_THROW(LossesOf(0.0, Logits({{1.0f, 0.0f}}), batch), c10::Error);
}

TEST(WikihopHeadTest, MasksWhatIsNoCandidateToExactlyMinus10000) {
  torch::manual_seed(1);
  const auto head = MakeWikihopHead(SmallConfig(), {});
  head->eval();
  const Batch batch = MakeBatch({MakeExample(3, 2, 0), MakeExample(1, 0, 0)});
  EtcOutput encoded;
  encoded.global_output = torch::randn({2, 5, 8});
  const torch::Tensor logits = head->forward(encoded, batch).at(0);
  ASSERT_EQ(logits.sizes(), torch::IntArrayRef({2, 5}));
  const torch::Tensor masked = logits.eq(kMasked);
  const torch::Tensor expected =
      torch::tensor({{0, 0, 0, 1, 1}, {0, 1, 1, 1, 1}}, torch::kInt64);
  EXPECT_TRUE(masked.to(torch::kInt64).equal(expected)) << logits;
}

TEST(WikihopHeadTest, IsThePostNormBlockOfTheSpec) {  // doc/wikihop.md 5
  torch::manual_seed(2);
  const auto head = MakeWikihopHead(SmallConfig(), {});
  head->eval();
  torch::NoGradGuard no_grad;
  auto parameters = head->named_parameters();
  for (auto& parameter : parameters) {
    parameter.value().normal_();
  }
  const auto at = [&parameters](const char* name) {
    return parameters[name].to(torch::kFloat64);
  };
  const torch::Tensor x = torch::randn({1, 3, 8});
  EtcOutput encoded;
  encoded.global_output = x;
  const torch::Tensor logits =
      head->forward(encoded, MakeBatch({MakeExample(3, 0, 0)})).at(0);

  const torch::Tensor wide = x.to(torch::kFloat64);
  const torch::Tensor inner =
      torch::matmul(wide, at("intermediate.weight").t()) +
      at("intermediate.bias");
  const torch::Tensor gelu =
      0.5 * inner *
      (1 +
       torch::tanh(std::sqrt(2 / M_PI) * (inner + 0.044715 * inner.pow(3))));
  const torch::Tensor sum =
      wide + torch::matmul(gelu, at("output.weight").t()) + at("output.bias");
  const torch::Tensor centred = sum - sum.mean(-1, /*keepdim=*/true);
  const torch::Tensor normal =
      centred / (centred.pow(2).mean(-1, /*keepdim=*/true) + 1e-12).sqrt() *
          at("layer_norm.weight") +
      at("layer_norm.bias");
  const torch::Tensor expected =
      (torch::matmul(normal, at("logit.weight").t()) + at("logit.bias"))
          .squeeze(-1);
  EXPECT_TRUE(torch::allclose(logits.to(torch::kFloat64), expected,
                              /*rtol=*/1e-5, /*atol=*/1e-5))
      << logits << expected;
}

TEST(WikihopHeadTest, StartsAsKerasAndBertDo) {
  EtcConfig config = SmallConfig();
  config.hidden_size = 64;
  config.intermediate_size = 256;
  const auto head = MakeWikihopHead(config, {});
  const auto parameters = head->named_parameters();
  // Glorot: uniform up to sqrt(6 / (64 + 256)), so its deviation is that over
  // sqrt(3).
  const double limit = std::sqrt(6.0 / 320.0);
  for (const char* name : {"intermediate.weight", "output.weight"}) {
    const torch::Tensor& weight = parameters[name];
    EXPECT_LE(weight.abs().max().item<double>(), limit);
    EXPECT_NEAR(weight.std().item<double>(), limit / std::sqrt(3.0), 0.002);
  }
  const torch::Tensor& logit = parameters["logit.weight"];
  EXPECT_EQ(logit.sizes(), torch::IntArrayRef({1, 64}));
  EXPECT_LE(logit.abs().max().item<double>(), 0.04 + 1e-7);
  EXPECT_GT(logit.abs().max().item<double>(), 0.02);
  for (const char* name :
       {"intermediate.bias", "output.bias", "layer_norm.bias", "logit.bias"}) {
    EXPECT_TRUE(parameters[name].eq(0).all().item<bool>()) << name;
  }
  EXPECT_TRUE(parameters["layer_norm.weight"].eq(1).all().item<bool>());
}

TEST(WikihopHeadTest, DropsOutInTrainingOnly) {
  torch::manual_seed(3);
  const auto head = MakeWikihopHead(SmallConfig(), {});
  EtcOutput encoded;
  encoded.global_output = torch::randn({1, 3, 8});
  const Batch batch = MakeBatch({MakeExample(3, 0, 0)});
  const auto logits = [&] { return head->forward(encoded, batch).at(0); };
  EXPECT_FALSE(logits().equal(logits()));
  head->eval();
  EXPECT_TRUE(logits().equal(logits()));
}

TEST(WikihopHeadTest, CanDoWithoutItsFinalLayer) {
  const auto head = MakeWikihopHead(SmallConfig(), {.add_final_layer = false});
  EXPECT_EQ(head->named_parameters().size(), 2u);
  EtcOutput encoded;
  encoded.global_output = torch::randn({1, 2, 8});
  const Batch batch = MakeBatch({MakeExample(2, 0, 0)});
  const torch::Tensor expected =
      torch::matmul(encoded.global_output,
                    head->named_parameters()["logit.weight"].t())
          .squeeze(-1);
  EXPECT_TRUE(torch::allclose(head->forward(encoded, batch).at(0), expected));
}

TEST(WikihopHeadTest, RefusesWhatDoesNotBelongTogether) {
  EXPECT_THROW(MakeWikihopHead(SmallConfig(), {.label_smoothing = 1.0}),
               c10::Error);
  const auto head = MakeWikihopHead(SmallConfig(), {});
  EtcOutput encoded;
  encoded.global_output = torch::randn({1, 4, 8});
  const Batch batch = MakeBatch({MakeExample(3, 0, 0)});
  EXPECT_THROW(head->forward(encoded, batch), c10::Error);
}

}  // namespace
}  // namespace etc
