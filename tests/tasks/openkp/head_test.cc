// The layers of OpenKP: numbers of doc/openkp.md 10.7 and 10.8, the head and
// the visual embedding against their formulas written out in loops (float64,
// sizes that differ from one another, 1e-10), and that training reaches every
// parameter.

#include "tasks/openkp/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tasks/openkp/task.h"
#include "tasks/task/benchmark_head.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

constexpr int64_t kHidden = 6;

EtcConfig SmallConfig() {
  EtcConfig config;
  config.vocab_size = 30;
  config.hidden_size = kHidden;
  config.num_attention_heads = 2;
  config.num_hidden_layers = 1;
  config.intermediate_size = 8;
  return config;
}

std::shared_ptr<OpenkpExample> ExampleOf(const OpenkpPieces& pieces,
                                         const std::vector<std::string>& keys) {
  const auto tokenizer = OpenkpSpecTokenizer();
  const Openkp openkp({.input = {.pattern = {.hard_g2l = true}}},
                      tokenizer.get());
  const auto examples =
      openkp.MakeExamples(OpenkpSpecRecord(pieces, keys), "here");
  EXPECT_TRUE(examples.ok()) << examples.status();
  return std::make_shared<OpenkpExample>(*examples->at(0));
}

// A document of 11 words and 13 tokens, and a shorter one with a word without
// pieces.
Batch SmallBatch() {
  return MakeBatch({ExampleOf(StarTrekPieces(), {"star trek", "jason isaacs"}),
                    ExampleOf({{"star  foo", kLeafFeature}}, {"foo"})});
}

// An example with words of tokens as given.
std::shared_ptr<OpenkpExample> ExampleOfWords(
    const std::vector<int32_t>& words) {
  auto example = ExampleOf({{"star", kBoldFeature}}, {});
  example->long_words = words;
  example->long_token_ids.assign(words.size(), 3);
  example->long_type_ids.assign(words.size(), 1);
  example->num_words = words.back() + 1;
  return example;
}

void ExpectNear(const torch::Tensor& got, const torch::Tensor& expected,
                double tolerance) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LE((got - expected).abs().max().item<double>(), tolerance)
      << got << "\n"
      << expected;
}

TEST(SumsOfWordsTest, AreSumsWithoutPadding) {  // doc/openkp.md 10.7
  const Batch batch = MakeBatch(
      {ExampleOfWords({0, 1, 2, 2, 3}), ExampleOfWords({0, 0, 0, 1, 2, 2})});
  torch::Tensor encoded = torch::full({2, 6, 2}, 99.0);
  encoded[0].narrow(0, 0, 5).copy_(
      torch::tensor({.1F, .2F, .3F, .4F, .5F}).unsqueeze(1));
  encoded[1].copy_(
      torch::tensor({1.1F, 1.2F, 1.3F, 1.4F, 1.5F, 1.6F}).unsqueeze(1));
  encoded.select(2, 1).neg_();
  const torch::Tensor sums = SumsOfWords(encoded, batch);
  const torch::Tensor first =
      torch::tensor({{.1F, .2F, .7F, .5F, 0.F}, {3.6F, 1.4F, 3.1F, 0.F, 0.F}});
  ExpectNear(sums.select(2, 0), first, 1e-5);
  ExpectNear(sums.select(2, 1), -first, 1e-5);
}

// Key phrases at (length, start) pairs: [1, 5, 4] (doc/openkp.md 10.7).
torch::Tensor Counts(const std::vector<std::pair<int64_t, int64_t>>& places) {
  torch::Tensor counts = torch::zeros({1, 5, 4}, torch::kFloat64);
  for (const auto& [length, start] : places) {
    counts[0][length - 1][start] += 1;
  }
  return counts;
}

TEST(NgramTargetsTest, AreThoseOfTheSpec) {  // doc/openkp.md 10.7
  const torch::Tensor one = Counts({{3, 1}});
  const torch::Tensor three = Counts({{1, 3}, {2, 0}, {2, 2}});
  const torch::Tensor all = torch::ones({1, 5, 4}, torch::kBool);
  ExpectNear(NgramTargets(one, all, 0), one, 2e-6);
  ExpectNear(NgramTargets(three, all, 0), three / 3, 2e-6);
  ExpectNear(NgramTargets(one, all, 1.0), one * 0.5 + 0.025, 1e-6);
  ExpectNear(NgramTargets(three, all, 1.0), three / 6 + 0.025, 1e-6);
  const torch::Tensor smoothed = NgramTargets(one, all, 1e-4);
  EXPECT_NEAR(smoothed[0][2][1].item<double>(), 0.99990501, 1e-8);
  EXPECT_NEAR(smoothed[0][0][0].item<double>(), 4.99951e-6, 1e-10);
  EXPECT_NEAR(NgramTargets(three, all, 1e-4)[0][1][2].item<double>(),
              0.33330500, 1e-7);
}

TEST(NgramTargetsTest, AreUniformWithoutKeyPhrases) {  // doc/openkp.md 6.1
  torch::Tensor classes = torch::zeros({1, 5, 4}, torch::kBool);
  classes[0][0].fill_(true);
  ExpectNear(NgramTargets(Counts({}), classes, 1e-4),
             classes.to(torch::kFloat64) / 4, 1e-12);
}

TEST(NgramLossesTest, AreThoseOfTheSpec) {  // doc/openkp.md 10.8
  const torch::Tensor logits = torch::tensor(
      {{{1.0, 2.0, 3.0}, {0.5, -0.5, kOpenkpNoNgramLogit}}}, torch::kFloat64);
  torch::Tensor counts = torch::zeros({1, 2, 3}, torch::kFloat64);
  counts[0][1][0] = 1;
  const torch::Tensor all = torch::ones({1, 2, 3}, torch::kBool);
  for (const auto& [mass, loss] :
       {std::pair(1e-4, 3.146243), std::pair(1e-6, 2.981309)}) {
    EXPECT_NEAR(NgramLosses(logits, NgramTargets(counts, all, mass), all)
                    .item<double>(),
                loss, 1e-6);
  }
  const torch::Tensor equal = torch::zeros({1, 5, 4096});
  const torch::Tensor classes = torch::ones_like(equal, torch::kBool);
  EXPECT_NEAR(NgramLosses(equal, NgramTargets(equal, classes, 1e-4), classes)
                  .item<double>(),
              9.927204, 1e-4);
}

// The head of doc/openkp.md 5.2 for one example, from its parameters, in loops.
torch::Tensor HeadReference(const TaskHead& head, const torch::Tensor& x,
                            const OpenkpExample& example, int64_t words) {
  const auto parameters = head.named_parameters();
  const auto norm = [&](const torch::Tensor& row, const std::string& name) {
    return (row - row.mean()) / (row.var(/*unbiased=*/false) + 1e-12).sqrt() *
               parameters[name + ".weight"] +
           parameters[name + ".bias"];
  };
  std::vector<torch::Tensor> y;
  for (int64_t w = 0; w < words; ++w) {
    torch::Tensor sum = torch::zeros({kHidden}, torch::kFloat64);
    for (size_t i = 0; i < example.long_words.size(); ++i) {
      if (example.long_words[i] == w) {
        sum = sum + x[static_cast<int64_t>(i)];
      }
    }
    y.push_back(norm(sum, "word_norm"));
  }
  torch::Tensor logits =
      torch::full({5, words}, kOpenkpNoNgramLogit, torch::kFloat64);
  for (int64_t n = 1; n <= 5; ++n) {
    const std::string name = "ngram_" + std::to_string(n);
    for (int64_t s = 0; s + n <= example.num_words; ++s) {
      torch::Tensor hidden = parameters[name + "_bias"];
      for (int64_t k = 0; k < n; ++k) {
        hidden = hidden + torch::mv(parameters[name + "_weight"][k],
                                    y[static_cast<size_t>(s + k)]);
      }
      logits[n - 1][s] = norm(torch::gelu(hidden, "tanh"), name + "_norm")
                             .dot(parameters[name + "_score"]);
    }
  }
  return logits;
}

void Randomize(torch::nn::Module* module) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : module->parameters()) {
    parameter.normal_(0, 0.5);
  }
}

TEST(OpenkpHeadTest, AgreesWithItsFormula) {
  torch::manual_seed(4);
  const Batch batch = SmallBatch();
  const auto head = MakeOpenkpHead(SmallConfig(), {});
  head->to(torch::kFloat64);
  Randomize(head.get());
  const EtcOutput encoded = {
      .long_output = torch::randn({2, 13, kHidden}, torch::kFloat64)};
  const torch::Tensor logits = head->forward(encoded, batch).front();
  ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{2, 5, 11}));
  for (int64_t b = 0; b < 2; ++b) {
    const auto& example = dynamic_cast<const OpenkpExample&>(
        *batch.examples[static_cast<size_t>(b)]);
    ExpectNear(logits[b],
               HeadReference(*head, encoded.long_output[b], example, 11),
               1e-10);
  }
}

TEST(OpenkpHeadTest, MasksPhrasesThatDoNotExist) {  // doc/openkp.md 10.8
  const Batch batch = MakeBatch({ExampleOfWords({0, 1, 2})});
  const auto head = MakeOpenkpHead(SmallConfig(), {});
  const torch::Tensor logits =
      head->forward({.long_output = torch::randn({1, 3, kHidden})}, batch)
          .front();
  const torch::Tensor exists = logits[0].ne(kOpenkpNoNgramLogit);
  EXPECT_EQ(exists.sum(-1)
                .to(torch::kInt)
                .equal(torch::tensor({3, 2, 1, 0, 0}, torch::kInt)),
            true)
      << exists;
}

// The embedding of doc/openkp.md 5.1 of one element.
torch::Tensor VisualReference(const TaskHead& head,
                              const OpenkpElement& element) {
  const auto parameters = head.named_parameters();
  const auto linear = [&](const torch::Tensor& x, const std::string& name) {
    return torch::mv(parameters["visual." + name + ".weight"], x) +
           parameters["visual." + name + ".bias"];
  };
  const std::vector<float> dense = DenseFeatures(element, {});
  const torch::Tensor first = torch::gelu(
      linear(torch::tensor(dense).to(torch::kFloat64), "dense"), "tanh");
  return torch::gelu(linear(first, "extra_dense"), "tanh") +
         parameters["visual.cross.weight"][CrossId(element, {})] +
         parameters["visual.font.weight"][FontId(element.node.font_size)] +
         parameters["visual.parent_font.weight"]
                   [FontId(element.parent.font_size)];
}

TEST(OpenkpHeadTest, AddsTheLookOfElements) {
  torch::manual_seed(5);
  const Batch batch = SmallBatch();
  const auto head = MakeOpenkpHead(SmallConfig(), {});
  head->to(torch::kFloat64);
  Randomize(head.get());
  const EmbeddingAdders adders = head->Adders(batch);
  ASSERT_EQ(adders.global_adder.sizes(), (std::vector<int64_t>{2, 2, kHidden}));
  ASSERT_EQ(adders.long_adder.sizes(), (std::vector<int64_t>{2, 13, kHidden}));
  for (int64_t b = 0; b < 2; ++b) {
    const auto& example = dynamic_cast<const OpenkpExample&>(
        *batch.examples[static_cast<size_t>(b)]);
    for (int64_t g = 0; g < 2; ++g) {
      const OpenkpElement element =
          g < example.global_length() ? example.elements[static_cast<size_t>(g)]
                                      : OpenkpElement{};  // padding
      // The dense features are float32.
      ExpectNear(adders.global_adder[b][g], VisualReference(*head, element),
                 1e-10);
    }
    for (int64_t i = 0; i < 13; ++i) {
      const int64_t g = i < example.long_length()
                            ? example.pattern.sentence[static_cast<size_t>(i)]
                            : 0;
      ExpectNear(adders.long_adder[b][i], adders.global_adder[b][g], 0);
    }
  }
}

TEST(OpenkpHeadTest, AddsOnlyWhatIsAskedFor) {  // doc/openkp.md 5.1
  const Batch batch = SmallBatch();
  const auto in_long =
      MakeOpenkpHead(SmallConfig(), {.use_visual_features_in_global = false});
  EXPECT_TRUE(in_long->Adders(batch).long_adder.defined());
  EXPECT_FALSE(in_long->Adders(batch).global_adder.defined());
  const auto in_global =
      MakeOpenkpHead(SmallConfig(), {.use_visual_features_in_long = false});
  EXPECT_FALSE(in_global->Adders(batch).long_adder.defined());
  EXPECT_TRUE(in_global->Adders(batch).global_adder.defined());
  const auto none =
      MakeOpenkpHead(SmallConfig(), {.use_visual_features_in_long = false,
                                     .use_visual_features_in_global = false});
  EXPECT_FALSE(none->Adders(batch).long_adder.defined());
  for (const auto& parameter : none->named_parameters()) {
    EXPECT_THAT(parameter.key(), testing::Not(testing::HasSubstr("visual")));
  }
  const auto shallow =
      MakeOpenkpHead(SmallConfig(), {.visual = {.extra_dense_layers = 0}});
  EXPECT_FALSE(
      shallow->named_parameters().contains("visual.extra_dense.weight"));
}

TEST(OpenkpHeadTest, TrainsEveryParameter) {
  torch::manual_seed(6);
  const Batch batch = SmallBatch();
  const auto head = MakeOpenkpHead(SmallConfig(), {});
  const EmbeddingAdders adders = head->Adders(batch);
  const torch::Tensor losses = head->Losses(
      head->forward({.long_output = adders.long_adder +
                                    adders.global_adder.sum({1}, true)},
                    batch),
      batch);
  ASSERT_EQ(losses.sizes(), (std::vector<int64_t>{2}));
  losses.sum().backward();
  for (const auto& parameter : head->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0)
        << parameter.key();
  }
}

// doc/openkp.md 11, trap 5
TEST(OpenkpHeadTest, CountsPlacesThatDoNotExistOfficially) {
  const auto example = ExampleOfWords({0, 1, 2});
  example->labels = {{1, 2}, {0, 6}};
  const Batch batch = MakeBatch({example});
  const std::vector<torch::Tensor> logits = {
      torch::zeros({1, 5, 5}).masked_fill(torch::tensor({{1, 1, 1, 0, 0},
                                                         {1, 1, 0, 0, 0},
                                                         {1, 0, 0, 0, 0},
                                                         {0, 0, 0, 0, 0},
                                                         {0, 0, 0, 0, 0}})
                                              .eq(0)
                                              .unsqueeze(0),
                                          kOpenkpNoNgramLogit)};
  const auto sound = MakeOpenkpHead(SmallConfig(), {});
  EXPECT_NEAR(sound->Losses(logits, batch).item<double>(), std::log(6), 1e-5);
  // 6 of 5 * 100 classes exist; the others hold 1e-4 of the target.
  const auto official = MakeOpenkpHead(
      SmallConfig(),
      {.input = {.max_long_length = 100}, .official_compatibility = true});
  EXPECT_NEAR(official->Losses(logits, batch).item<double>(),
              std::log(6) + 1e-4 * 10000 * (494. / 500), 1e-3);
}

TEST(OpenkpHeadTest, SmoothsTargetsByTheMassOfTheOptions) {
  const auto example = ExampleOfWords({0, 1, 2});
  example->labels = {{1, 2}};
  const Batch batch = MakeBatch({example});
  // 6 n-grams exist: of logit 2 the key phrase, of 0 the others.
  torch::Tensor logits = torch::full({1, 5, 5}, kOpenkpNoNgramLogit);
  for (int64_t n = 1; n <= 3; ++n) {
    logits[0][n - 1].narrow(0, 0, 4 - n).zero_();
  }
  logits[0][1][1] = 2;
  for (const double mass : {1e-4, 1.0}) {
    const auto head =
        MakeOpenkpHead(SmallConfig(), {.additive_smoothing_mass = mass});
    const double target = (1 + mass / 6) / (1 + mass);
    EXPECT_NEAR(head->Losses({logits}, batch).item<double>(),
                std::log(std::exp(2.0) + 5) - 2 * target, 1e-5)
        << mass;
  }
}

TEST(OpenkpHeadTest, RefusesDocumentsWithoutKeyPhrases) {
  const auto example = ExampleOf({{"star", kBoldFeature}}, {});
  example->has_answer = false;
  const auto head = MakeOpenkpHead(SmallConfig(), {});
  EXPECT_THROW(head->Losses({torch::zeros({1, 5, 5})}, MakeBatch({example})),
               c10::Error);
}

TEST(OpenkpHeadTest, StartsAsTheSpecSays) {  // doc/openkp.md 5.1, 5.2
  torch::manual_seed(7);
  EtcConfig config = SmallConfig();
  config.hidden_size = 64;
  const auto head = MakeOpenkpHead(config, {});
  for (const auto& parameter : head->named_parameters()) {
    const std::string& name = parameter.key();
    const torch::Tensor& value = parameter.value();
    if (name.ends_with("bias")) {
      EXPECT_EQ(value.abs().max().item<double>(), 0) << name;
    } else if (name.find("norm") != std::string::npos) {
      EXPECT_TRUE(value.eq(1).all().item<bool>()) << name;
    } else {
      const double length =
          name.find("_weight") != std::string::npos ? value.size(0) : 1;
      EXPECT_LE(value.abs().max().item<double>(),
                0.04 / std::sqrt(length) + 1e-6)
          << name;
      EXPECT_GE(value.abs().max().item<double>(), 0.02 / std::sqrt(length))
          << name;
    }
  }
}

}  // namespace
}  // namespace etc
