// The head of Natural Questions: logits against the formula of doc/nq.md 4 in
// loops, losses against that of doc/nq.md 5 and its golden value, gradients
// against central differences, and what takes part in the softmax by default
// and officially. Tolerance 1e-5 in float32 sums of a few terms near 1; 1e-10
// where all is float64.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tasks/nq/task.h"
#include "tasks/task/benchmark_head.h"
#include "tests/support/gradient_check.h"
#include "tests/support/initial_values.h"
#include "tests/support/tensor_matchers.h"
#include "tests/tasks/nq/page_record.h"

namespace etc {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int64_t kHidden = 6;

EtcConfig SmallConfig() {
  EtcConfig config;
  config.hidden_size = kHidden;
  return config;
}

// The three windows of doc/nq.md 9.1: 16, 16 and 12 long tokens.
Batch SpecBatch() {
  std::vector<std::shared_ptr<const Example>> examples;
  const NqSpecTokenizer tokenizer;
  const Nq nq({.input = {.max_long_length = 16, .max_global_length = 8},
               .max_question_length = 3,
               .stride = 5},
              &tokenizer);
  const Nq::ExamplesOr windows = nq.MakeExamples(NqSpecRecord(), "here");
  examples.assign(windows->begin(), windows->end());
  return MakeBatch(std::move(examples));
}

EtcOutput RandomOutput(const Batch& batch) {
  torch::manual_seed(7);
  return {.long_output = torch::randn(
              {batch.size(), batch.input.token_ids.size(1), kHidden},
              torch::kFloat64),
          .global_output = torch::Tensor()};
}

Nq::HeadPtr MakeHead(const NqOptions& options = {}) {
  torch::manual_seed(3);
  auto head = MakeNqHead(SmallConfig(), options);
  head->to(torch::kFloat64);
  // Biases begin at zero.
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : head->parameters()) {
    parameter.copy_(torch::randn_like(parameter));
  }
  return head;
}

double LogSumExp(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::exp(value);
  }
  return std::log(sum);
}

// Row `row` of w x + b.
double Affine(const TaskHead& head, const std::string& name, int64_t row,
              const torch::Tensor& x) {
  const auto parameters = head.named_parameters();
  double sum = parameters[name + ".bias"][row].item<double>();
  for (int64_t h = 0; h < kHidden; ++h) {
    sum += parameters[name + ".weight"][row][h].item<double>() *
           x[h].item<double>();
  }
  return sum;
}

// The targets of a window in the order of NqChannel.
std::vector<int64_t> TargetsOf(const NqExample& example) {
  return {example.short_answer.start, example.short_answer.end,
          example.long_answer.start, example.long_answer.end};
}

TEST(NqHeadTest, IsThePlainFormula) {  // doc/nq.md 4, 5
  const Batch batch = SpecBatch();
  const EtcOutput output = RandomOutput(batch);
  for (const bool mask : {true, false}) {
    const auto head = MakeHead({.mask_long_output = mask});
    const std::vector<torch::Tensor> logits = head->forward(output, batch);
    const torch::Tensor losses = head->Losses(logits, batch);
    for (int64_t b = 0; b < batch.size(); ++b) {
      const auto& example = dynamic_cast<const NqExample&>(
          *batch.examples[static_cast<size_t>(b)]);
      double sum = 0;
      for (int64_t c = 0; c < kNqNumChannels; ++c) {
        std::vector<double> taking_part;
        double of_target = 0;
        for (int64_t i = 0; i < 16; ++i) {
          const double logit =
              Affine(*head, "answer_span", c, output.long_output[b][i]);
          const bool takes_part =
              !mask || i == 0 || (i >= 5 && i < example.long_length() - 1);
          EXPECT_NEAR(logits[0][b][c][i].item<double>(),
                      takes_part ? logit : -1e9, 1e-10);
          if (takes_part) {
            taking_part.push_back(logit);
          }
          if (i == TargetsOf(example)[static_cast<size_t>(c)]) {
            of_target = logit;
          }
        }
        sum += LogSumExp(taking_part) - of_target;
      }
      std::vector<double> types;
      for (int64_t t = 0; t < kNqNumAnswerTypes; ++t) {
        types.push_back(
            Affine(*head, "answer_type", t, output.long_output[b][0]));
        EXPECT_NEAR(logits[1][b][t].item<double>(), types.back(), 1e-10);
      }
      sum += LogSumExp(types) - types[static_cast<size_t>(example.answer_type)];
      EXPECT_NEAR(losses[b].item<double>(), sum / 5, 1e-10) << b;
    }
  }
}

TEST(NqHeadTest, HasTheGradientsOfItsLoss) {
  const Batch batch = SpecBatch();
  for (const bool mask : {true, false}) {
    EtcOutput output = RandomOutput(batch);
    output.long_output.requires_grad_();
    const auto head = MakeHead({.mask_long_output = mask});
    std::vector<std::pair<std::string, torch::Tensor>> variables = {
        {"long_output", output.long_output}};
    for (const auto& parameter : head->named_parameters()) {
      variables.emplace_back(parameter.key(), parameter.value());
    }
    EXPECT_TRUE(GradientsMatchDifferences(
        [&] { return head->Losses(head->forward(output, batch), batch).sum(); },
        variables));
  }
}

// An example of `length` long tokens, all but the first in the document.
std::shared_ptr<NqExample> PlainExample(size_t length) {
  auto example = std::make_shared<NqExample>();
  example->long_token_ids.assign(length, 7);
  example->long_type_ids.assign(length, kPlainLongType);
  example->long_tokens.assign(length, 3);
  example->global_token_ids.assign(2, 1);
  example->global_type_ids.assign(2, 0);
  example->pattern = UnrestrictedPattern(static_cast<int64_t>(length), 2, 4, 2);
  return example;
}

TEST(NqHeadTest, HasTheLossOfTheSpecForEqualLogits) {  // doc/nq.md 5
  const Batch batch = MakeBatch({PlainExample(4096)});
  const auto head = MakeNqHead(SmallConfig(), {});
  EXPECT_NEAR(
      head->Losses({torch::zeros({1, 4, 4096}), torch::zeros({1, 5})}, batch)
          .item<double>(),
      6.9761005, kTolerance);
}

TEST(NqHeadTest, IgnoresPaddingUnlessOfficial) {
  const Batch batch = SpecBatch();
  const Batch alone = MakeBatch({batch.examples[2]});
  const EtcOutput output = RandomOutput(batch);
  const EtcOutput own = {
      .long_output = output.long_output.slice(0, 2, 3).slice(1, 0, 12),
      .global_output = torch::Tensor()};
  for (const bool mask : {true, false}) {
    const auto head = MakeHead({.mask_long_output = mask});
    const double beside_others =
        head->Losses(head->forward(output, batch), batch)[2].item<double>();
    const double by_itself =
        head->Losses(head->forward(own, alone), alone)[0].item<double>();
    EXPECT_EQ(std::abs(beside_others - by_itself) < kTolerance, mask);
  }
}

TEST(NqHeadTest, StartsWithTheFixedInitializer) {  // doc/nq.md 4
  EtcConfig config = SmallConfig();
  config.hidden_size = 4000;
  config.initializer_range = 0.5;
  torch::manual_seed(1);
  ExpectFixedInitialValues(*MakeNqHead(config, {}));
}

TEST(NqHeadTest, RefusesAnExampleWithoutAnnotation) {
  const auto example = PlainExample(4);
  example->has_answer = false;
  const auto head = MakeNqHead(SmallConfig(), {});
  EXPECT_THROW(head->Losses({torch::zeros({1, 4, 4}), torch::zeros({1, 5})},
                            MakeBatch({example})),
               c10::Error);
}

TEST(NqHeadTest, RefusesExamplesOfOtherTasks) {
  const auto example = PlainExample(4);
  const auto other = std::make_shared<Example>(*example);
  const auto head = MakeNqHead(SmallConfig(), {});
  EXPECT_THROW(head->Losses({torch::zeros({1, 4, 4}), torch::zeros({1, 5})},
                            MakeBatch({other})),
               c10::Error);
}

}  // namespace
}  // namespace etc
