// The head of masked-language modelling against the numbers of
// doc/pretraining.md 12.4, in float64 to the digits printed there, and its
// parameters against doc/pretraining.md 5 and 6.2.
#include "tasks/pretrain/heads/mlm_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>
#include <string>

#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::Pair;

// The head of doc/pretraining.md 12.4: H 4, V 6.
class GoldenMlmHeadTest : public testing::Test {
 protected:
  GoldenMlmHeadTest() {
    EtcConfig config = ToyConfig();
    config.hidden_size = 4;
    config.embedding_size = 4;
    config.vocab_size = 6;
    head_ = MlmHead(config);
    head_->to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    NamedTensors parameters = ModuleTensors(*head_);
    // The specification's kernel is [in, out].
    parameters.at("transform.weight").copy_(ToyVariable(2, {4, 4}).t() * 0.3);
    parameters.at("transform.bias").copy_(ToyVariable(3, {4}) * 0.1);
    parameters.at("norm.weight").copy_(ToyVariable(4, {4}) * 0.1 + 1);
    parameters.at("norm.bias").copy_(ToyVariable(5, {4}) * 0.1);
    parameters.at("output_bias").copy_(ToyVariable(7, {6}) * 0.1);
    table_ = ToyVariable(6, {6, 4}) * 0.3;
    // Positions (1, 3, 0) and (2, 0, 0) of the two examples of 5 tokens.
    x_ = ToyVariable(1, {10, 4})
             .index_select(0, torch::tensor({1, 3, 0, 7, 5, 5}));
  }

  MlmHead head_ = nullptr;
  torch::Tensor table_, x_;
  const torch::Tensor labels_ =
      torch::tensor({4, 1, 0, 5, 0, 0}, torch::kInt64);
  const torch::Tensor weights_ =
      torch::tensor({1, 1, 0, 1, 0, 0}, torch::kFloat64);
};

TEST_F(GoldenMlmHeadTest, ComputesTheNumbersOfTheSpecification) {
  EXPECT_TRUE(
      IsClose(x_[0],
              torch::tensor({-0.137966, -0.486787, -0.769723, -0.948481},
                            torch::kFloat64),
              /*atol=*/5.1e-7));
  const torch::Tensor logits = head_->Hidden(x_).matmul(table_.t()) +
                               ModuleTensors(*head_).at("output_bias");
  EXPECT_TRUE(IsClose(logits[0],
                      torch::tensor({0.362347, 0.188624, -0.415439, -0.397397,
                                     0.181861, 0.262644},
                                    torch::kFloat64),
                      /*atol=*/5.1e-7));
  const MlmLosses result = head_->forward(x_, labels_, table_);
  EXPECT_TRUE(IsClose(result.losses,
                      torch::tensor({1.686275, 2.122314, 1.812274, 2.234361,
                                     1.516169, 1.516169},
                                    torch::kFloat64),
                      /*atol=*/5.1e-7));
  const double sum = (result.losses * weights_).sum().item<double>();
  EXPECT_NEAR(sum / (3 + 1e-5), 2.01431023, 5.1e-9);
  EXPECT_NEAR(sum / 3, 2.01431694, 5.1e-9);
  EXPECT_EQ(
      (result.correct.to(torch::kFloat64) * weights_).sum().item<double>(), 0);
}

TEST_F(GoldenMlmHeadTest, GradientsMatchDifferences) {
  x_.requires_grad_(true);
  table_.requires_grad_(true);
  std::vector<std::pair<std::string, torch::Tensor>> variables = {
      {"x", x_}, {"table", table_}};
  for (const auto& parameter : head_->named_parameters()) {
    variables.emplace_back(parameter.key(), parameter.value());
  }
  EXPECT_TRUE(GradientsMatchDifferences(
      [&] { return head_->forward(x_, labels_, table_).losses.sum(); },
      variables));
}

TEST(MlmHeadTest, StartsAsBertDoes) {
  torch::manual_seed(1);
  EtcConfig config = ToyConfig();
  config.hidden_size = 96;
  config.embedding_size = 64;
  config.initializer_range = 0.1;
  MlmHead head(config);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor] : ModuleTensors(*head)) {
    shapes[name] = tensor.sizes().vec();
  }
  EXPECT_THAT(shapes,
              ElementsAre(Pair("norm.bias", ElementsAre(64)),
                          Pair("norm.weight", ElementsAre(64)),
                          Pair("output_bias", ElementsAre(config.vocab_size)),
                          Pair("transform.bias", ElementsAre(64)),
                          Pair("transform.weight", ElementsAre(64, 96))));
  const NamedTensors tensors = ModuleTensors(*head);
  const torch::Tensor& kernel = tensors.at("transform.weight");
  EXPECT_LE(kernel.abs().max().item<double>(), 0.2);
  // Deviation of a normal distribution cut off at two deviations: 0.88.
  EXPECT_NEAR(kernel.std().item<double>(), 0.088, 0.002);
  EXPECT_TRUE(tensors.at("norm.weight").eq(1).all().item<bool>());
  for (const char* name : {"transform.bias", "norm.bias", "output_bias"}) {
    EXPECT_TRUE(tensors.at(name).eq(0).all().item<bool>()) << name;
  }
}

// The gradients of the table through its two uses add up in the encoder's own
// tensor, which the head never copies.
TEST(MlmHeadTest, TrainsTheEncodersTable) {
  torch::manual_seed(2);
  EtcModel encoder(ToyConfig());
  MlmHead head(ToyConfig());
  const torch::Tensor x = torch::randn({3, ToyConfig().hidden_size});
  const torch::Tensor labels = torch::tensor({1, 0, 2}, torch::kInt64);
  head->forward(x, labels, encoder->token_embedding_table())
      .losses.sum()
      .backward();
  const torch::Tensor gradient = encoder->token_embedding_table().grad();
  ASSERT_TRUE(gradient.defined());
  EXPECT_GT(gradient.abs().min().item<double>(), 0);
}

}  // namespace
}  // namespace etc
