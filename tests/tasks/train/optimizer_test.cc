// The optimizers against the goldens of doc/model.md 13.2, in float64 and to
// their printed digits; LibTorch's AdamW against LibTorch's; the exclusion rule
// of doc/model.md 8.3 on all kinds of names that we have; clipping by its
// formula; state that goes out and in. Speed is left out.

#include "tasks/train/optimizer.h"

#include <c10/util/Exception.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/trained_counts.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

torch::Tensor Parameter(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble).requires_grad_();
}

void SetGradient(torch::Tensor parameter, const std::vector<double>& values) {
  parameter.mutable_grad() = torch::tensor(values, torch::kDouble);
}

std::unique_ptr<Optimizer> Make(const std::string& type,
                                const NamedTensors& parameters) {
  return std::make_unique<Optimizer>(OptimizerConfig{.type = type}, parameters);
}

void ExpectValues(const torch::Tensor& tensor, double first, double second) {
  EXPECT_NEAR(tensor[0].item<double>(), first, 1e-8);
  EXPECT_NEAR(tensor[1].item<double>(), second, 1e-8);
}

constexpr double kRate = 0.01;

TEST(BertAdamWTest, MatchesGoldensOfModelSpec132) {
  const torch::Tensor kernel = Parameter({1, -2});
  const auto optimizer = Make("bert_adamw", {{"dense.weight", kernel}});
  SetGradient(kernel, {.1, .2});
  optimizer->Step(kRate);
  ExpectValues(kernel, 0.96828722, -2.03141778);
  optimizer->Step(kRate);
  ExpectValues(kernel, 0.92570398, -2.07370580);
}

TEST(LambTest, MatchesGoldensOfModelSpec132) {
  const torch::Tensor kernel = Parameter({1, -2});
  const auto optimizer = Make("lamb", {{"dense.weight", kernel}});
  SetGradient(kernel, {.1, .2});
  optimizer->Step(kRate);
  ExpectValues(kernel, 0.98411490, -2.01573733);
  optimizer->Step(kRate);
  ExpectValues(kernel, 0.96819842, -2.03154346);
}

TEST(LambTest, TakesRatioOneWhereANormIsZero) {
  const torch::Tensor zero = Parameter({0, 0});
  const torch::Tensor still = Parameter({1, 1});
  Optimizer optimizer({.type = "lamb", .weight_decay = 0},
                      {{"zero.weight", zero}, {"still.weight", still}});
  SetGradient(zero, {.1, .1});
  SetGradient(still, {0, 0});
  optimizer.Step(kRate);
  // u = 0.01 / (sqrt(1e-5) + 1e-6)
  ExpectValues(zero, -0.03161278, -0.03161278);
  ExpectValues(still, 1, 1);
}

// One parameter from 1 along the gradients of doc/translation.md 11.1, in
// float32 by the kernels as well as in float64; printed with 8 digits.
void ExpectCourse(const std::string& type, double weight_decay,
                  const std::vector<double>& course) {
  for (const torch::Dtype dtype : {torch::kDouble, torch::kFloat}) {
    const torch::Tensor parameter = torch::ones({1}, dtype).requires_grad_();
    Optimizer optimizer({.type = type,
                         .weight_decay = weight_decay,
                         .beta2 = 0.98,
                         .epsilon = 1e-8},
                        {{"norm.bias", parameter}});
    const std::vector<double> gradients = {.1, -.2, .3, .1, .2, -.1, .05, .1};
    for (size_t i = 0; i < gradients.size(); ++i) {
      torch::Tensor(parameter).mutable_grad() =
          torch::full({1}, gradients[i], dtype);
      optimizer.Step(kRate);
      EXPECT_NEAR(parameter[0].item<double>(), course[i], 3e-7)
          << type << ", update " << i + 1;
    }
  }
}

TEST(FairseqOptimizerTest, MatchesGoldensOfTranslationSpec111) {
  ExpectCourse("fairseq_adam", 0,
               {0.99000001, 0.99365055, 0.99023682, 0.98602561, 0.98036194,
                0.97675933, 0.97305139, 0.96876424});
  ExpectCourse("radam", 0, {1, 1, 1, 1, 1, 0.99958381, 0.99903917, 0.99829359});
  // Decay applies to all parameters, and where there is no step.
  ExpectCourse("radam", 1e-4,
               {0.999999, 0.999998, 0.999997, 0.999996, 0.999995, 0.99957781,
                0.99903217, 0.99828559});
}

TEST(OptimizerTest, LeavesExcludedParametersUndecayed) {
  for (const std::string type : {"bert_adamw", "lamb"}) {
    const torch::Tensor bias = Parameter({1, -2});
    const auto optimizer = Make(type, {{"dense.bias", bias}});
    SetGradient(bias, {.1, .2});
    optimizer->Step(kRate);
    ExpectValues(bias, 0.96838722, -2.03161778);  // doc/model.md 13.2
  }
}

TEST(OptimizerTest, DecaysByTheOfficialRule) {
  EXPECT_TRUE(IsDecayed("encoder.embedding.token.weight"));
  EXPECT_TRUE(IsDecayed("encoder.layers.0.attention.relative.embedding"));
  EXPECT_TRUE(IsDecayed("encoder.layers.0.feed_forward.intermediate.weight"));
  EXPECT_FALSE(IsDecayed("encoder.layers.0.attention.relative.bias"));
  EXPECT_FALSE(IsDecayed("encoder.layers.0.attention.norm.weight"));
  EXPECT_FALSE(IsDecayed("head.transform.norm.bias"));
  EXPECT_FALSE(IsDecayed("head.output.bias"));
  EXPECT_FALSE(IsDecayed("encoder.layers.1.attention.g2l_gate"));
}

// As biases in LeavesExcludedParametersUndecayed, but for the rate.
TEST(OptimizerTest, GatesHaveARateOfTheirOwnAndNoDecay) {
  for (const std::string type : {"bert_adamw", "lamb"}) {
    for (const double factor : {1.0, 10.0}) {
      const torch::Tensor gate = Parameter({1, -2});
      const torch::Tensor bias = Parameter({1, -2});
      Optimizer optimizer(
          {.type = type},
          {{"layers.1.attention.g2g_gate", gate}, {"dense.bias", bias}},
          {{"layers.1.attention.g2g_gate", factor}});
      SetGradient(gate, {.1, .2});
      SetGradient(bias, {.1, .2});
      optimizer.Step(kRate);
      ExpectValues(bias, 0.96838722, -2.03161778);
      EXPECT_NEAR(gate[0].item<double>(), 1 - factor * 0.03161278, 1e-7);
      EXPECT_NEAR(gate[1].item<double>(), -2 - factor * 0.03161778, 1e-7);
    }
  }
}

TEST(OptimizerTest, DoesNotDecayAlphasAndOmegas) {
  EXPECT_FALSE(IsDecayed("encoder.layers.0.long_attention_alpha"));
  EXPECT_FALSE(IsDecayed("encoder.layers.0.feed_forward.omega"));
}

TEST(OptimizerTest, LeavesParametersWithoutGradientAlone) {
  for (const std::string type : {"bert_adamw", "lamb", "adamw"}) {
    const torch::Tensor used = Parameter({1, -2});
    const torch::Tensor unused = Parameter({3, 4});
    const auto optimizer =
        Make(type, {{"used.weight", used}, {"unused.weight", unused}});
    SetGradient(used, {.1, .2});
    optimizer->Step(kRate);
    ExpectValues(unused, 3, 4);
    EXPECT_FALSE(optimizer->State().count("m.unused.weight"));
    EXPECT_TRUE(optimizer->State().count("m.used.weight"));
  }
}

TEST(AdamWTest, MatchesLibTorch) {
  torch::manual_seed(7);
  const torch::Tensor ours = torch::randn({3, 5}, torch::kDouble);
  const torch::Tensor theirs = ours.clone().requires_grad_();
  ours.requires_grad_();
  OptimizerConfig config{.type = "adamw", .weight_decay = 0.1};
  Optimizer optimizer(config, {{"weight", ours}});
  torch::optim::AdamW reference(
      {theirs}, torch::optim::AdamWOptions(kRate)
                    .betas(std::make_tuple(config.beta1, config.beta2))
                    .eps(config.epsilon)
                    .weight_decay(config.weight_decay));
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor gradient = torch::randn({3, 5}, torch::kDouble);
    torch::Tensor(ours).mutable_grad() = gradient.clone();
    torch::Tensor(theirs).mutable_grad() = gradient.clone();
    optimizer.Step(kRate);
    reference.step();
    EXPECT_TRUE(torch::allclose(ours, theirs, /*rtol=*/1e-13, /*atol=*/1e-14))
        << "step " << step;
  }
}

TEST(OptimizerTest, ContinuesFromItsState) {
  for (const std::string type : {"bert_adamw", "lamb", "adamw"}) {
    const torch::Tensor first = Parameter({1, -2});
    const auto optimizer = Make(type, {{"weight", first}});
    SetGradient(first, {.1, .2});
    optimizer->Step(kRate);

    const torch::Tensor second = first.detach().clone().requires_grad_();
    const auto continued = Make(type, {{"weight", second}});
    ASSERT_TRUE(continued->LoadState(optimizer->State()).ok());
    SetGradient(first, {.3, -.2});
    SetGradient(second, {.3, -.2});
    optimizer->Step(kRate);
    continued->Step(kRate);
    EXPECT_TRUE(torch::equal(first, second)) << type;
  }
}

TEST(OptimizerTest, KeepsAsManyBytesAsEstimatesSay) {
  for (const char* type : {"bert_adamw", "lamb", "adamw"}) {
    const torch::Tensor kernel = torch::ones({3, 5}).requires_grad_();
    const auto optimizer = Make(type, {{"dense.weight", kernel}});
    kernel.mutable_grad() = torch::ones({3, 5});
    optimizer->Step(kRate);
    int64_t bytes = 0;
    for (const auto& [name, tensor] : optimizer->State()) {
      bytes += tensor.numel() == kernel.numel()
                   ? static_cast<int64_t>(tensor.nbytes())
                   : 0;  // the number of updates
    }
    EXPECT_EQ(bytes, kOptimizerBytesPerElement * kernel.numel()) << type;
  }
}

TEST(OptimizerTest, RefusesStateThatDoesNotFit) {
  const torch::Tensor weight = Parameter({1, -2});
  const auto optimizer = Make("bert_adamw", {{"weight", weight}});
  const torch::Tensor two = torch::zeros({2}, torch::kDouble);
  const torch::Tensor three = torch::zeros({3}, torch::kDouble);
  EXPECT_THAT(
      optimizer->LoadState({{"m.weight", two}, {"v.weight", three}}).message(),
      AllOf(HasSubstr("\"v.weight\" should have shape [2]"),
            HasSubstr("has [3]")));
  EXPECT_THAT(optimizer->LoadState({{"m.other", two}}).message(),
              HasSubstr("\"m.other\" belongs to no parameter"));
  EXPECT_THAT(optimizer->LoadState({{"updates.weight", two}}).message(),
              HasSubstr("belongs to no parameter of a bert_adamw"));
  EXPECT_THAT(optimizer->LoadState({{"m.weight", two}}).message(),
              HasSubstr("\"weight\" is incomplete"));
  EXPECT_TRUE(optimizer->State().empty());
}

TEST(OptimizerTest, RefusesUnknownType) {
  EXPECT_THROW(Optimizer({.type = "adam"}, {}), c10::Error);
}

TEST(ClipFactorTest, IsMaxOverTheLargerOfNormAndMax) {
  EXPECT_EQ(ClipFactor(5, /*max_norm=*/0), 1);
  EXPECT_EQ(ClipFactor(5, /*max_norm=*/5), 1);
  EXPECT_EQ(ClipFactor(5, /*max_norm=*/1), 0.2);
}

TEST(OptimizerTest, CountsAGradientByItsFactor) {
  for (const std::string type : {"bert_adamw", "lamb", "adamw"}) {
    const torch::Tensor scaled = Parameter({1, -2});
    const torch::Tensor factored = Parameter({1, -2});
    SetGradient(scaled, {.05, .1});
    SetGradient(factored, {.1, .2});
    Make(type, {{"weight", scaled}})->Step(kRate);
    Make(type, {{"weight", factored}})->Step(kRate, /*gradient_factor=*/0.5);
    EXPECT_TRUE(torch::equal(scaled, factored)) << type;
    ExpectValues(factored.grad(), .1, .2);
  }
}

TEST(GradientNormTest, IsThatOfAllGradientsAsOneVector) {
  const torch::Tensor first = Parameter({0, 0});
  const torch::Tensor second = Parameter({0, 0});
  const torch::Tensor without = Parameter({0, 0});
  SetGradient(first, {3, 0});
  SetGradient(second, {0, -4});
  EXPECT_DOUBLE_EQ(GradientNorm({{"a", first}, {"b", second}, {"c", without}}),
                   5);
}

// 1024 is the row length inside; 3000 of them also exceed ATen's grain size.
TEST(GradientNormTest, IsExactAndIndependentOfThreads) {
  torch::manual_seed(3);
  const int threads = torch::get_num_threads();
  for (const int64_t size : {0, 1, 1023, 1024, 1025, 3000 * 1024 + 17}) {
    const torch::Tensor weight = torch::zeros({size}).requires_grad_();
    torch::Tensor(weight).mutable_grad() = torch::randn({size});
    const NamedTensors parameters = {{"weight", weight}};
    torch::set_num_threads(1);
    const double norm = GradientNorm(parameters);
    torch::set_num_threads(3);
    EXPECT_EQ(GradientNorm(parameters), norm) << "size " << size;
    const double exact =
        weight.grad().to(torch::kDouble).square().sum().sqrt().item<double>();
    EXPECT_NEAR(norm, exact, 1e-7 * exact) << "size " << size;
  }
  torch::set_num_threads(threads);
}

}  // namespace
}  // namespace etc
