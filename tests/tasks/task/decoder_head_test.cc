// A decoder as the head of a benchmark, as CONTRIBUTING.md tells of it: it
// spells an answer of several tokens. The loss of an update is one per token,
// however its examples are divided into micro-batches, and reaches the encoder;
// in evaluation the head generates as well. Tiny, random and without dropout.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "base/to_device.h"
#include "etc/encoder_decoder/translate.h"
#include "etc/model.h"
#include "tasks/data/batch.h"
#include "tasks/task/benchmark_head.h"
#include "tests/support/toy_translation.h"

namespace etc {
namespace {

constexpr int64_t kMostTokens = 8;  // of an answer, with its end

struct SpellingExample : Example {
  std::vector<int64_t> answer;  // tokens of the decoder, the last is kEndId
};

template <typename T>
struct SpellingLogits {
  T losses;   // a scalar: the sum over the answer's tokens
  T spelled;  // [kMostTokens]: the tokens that evaluation generates

  static constexpr auto kMembers =
      std::make_tuple(&SpellingLogits::losses, &SpellingLogits::spelled);
};

// Rows of kMostTokens tokens, padded: [B, kMostTokens].
torch::Tensor Padded(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<int64_t> tokens;
  for (std::vector<int64_t> row : rows) {
    row.resize(kMostTokens, kPaddingId);
    tokens.insert(tokens.end(), row.begin(), row.end());
  }
  return torch::tensor(tokens, torch::kInt64).view({-1, kMostTokens});
}

// [B, longest], true for the first lengths[b] tokens of example b.
torch::Tensor MaskOf(const std::vector<int64_t>& lengths) {
  const torch::Tensor ends = torch::tensor(lengths, torch::kInt64).unsqueeze(1);
  return torch::arange(ends.max().item<int64_t>(), torch::kInt64) < ends;
}

class SpellingHead : public BenchmarkHead<SpellingExample, SpellingLogits> {
 public:
  explicit SpellingHead(EncoderDecoderConfig config)
      : decoder_(register_module("decoder", TransformerDecoder(config))) {}

  LossTotals Totals(const Examples& examples) const override {
    LossTotals tokens = {0};
    for (const auto& example : examples) {
      tokens[0] += static_cast<double>(
          ExampleAs<SpellingExample>(*example).answer.size());
    }
    return tokens;
  }
  // Has the product with the vocabulary, too: LossesOf runs on one thread.
  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    const torch::Device device = encoded.long_output.device();
    const DecoderMemory memory = MemoryOfEtc(
        encoded, ToDevice(MaskOf(batch.Each(&Example::global_length)), device),
        ToDevice(MaskOf(batch.Each(&Example::long_length)), device));
    std::vector<std::vector<int64_t>> answers;
    for (const auto& example : batch.examples) {
      answers.push_back(example->answer);
    }
    const torch::Tensor targets = ToDevice(Padded(answers), device);  // [B, T]
    const torch::Tensor ids =  // kEndId, and the targets but the last
        torch::cat({torch::full_like(targets.narrow(1, 0, 1), kEndId),
                    targets.narrow(1, 0, kMostTokens - 1)},
                   1);
    const torch::Tensor states = decoder_->forward(memory, ids);  // [B, T, d]
    std::vector<torch::Tensor> losses;
    for (int64_t b = 0; b < batch.size(); ++b) {
      losses.push_back(
          decoder_->Loss(states[b], targets[b], /*smoothing=*/0.1).loss);
    }
    std::vector<std::vector<int64_t>> spelled(batch.examples.size());
    if (!is_training()) {
      const auto found = Translate(decoder_, memory,
                                   {.beam = {.max_length = kMostTokens - 1}});
      std::transform(found.begin(), found.end(), spelled.begin(),
                     [](const auto& best) { return best.front().tokens; });
    }
    return {.losses = torch::stack(losses),
            .spelled = Padded(spelled).to(torch::kFloat32)};
  }
  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& /*batch*/) override {
    return logits.losses;
  }

 private:
  TransformerDecoder decoder_;
};

// Asks to spell so many tokens.
std::shared_ptr<const Example> ExampleOf(int64_t length) {
  const auto size = static_cast<size_t>(length);
  auto example = std::make_shared<SpellingExample>();
  example->long_token_ids.assign(size, 5);
  example->long_type_ids.assign(size, 1);
  example->global_token_ids = {1};
  example->global_type_ids = {0};
  example->pattern = UnrestrictedPattern(length, /*global_length=*/1,
                                         /*local_radius=*/84,
                                         /*relative_pos_max_distance=*/12);
  example->answer.assign(size, 5);
  example->answer.push_back(kEndId);
  return example;
}

TEST(DecoderHeadTest, HasALossPerTokenAndGeneratesInEvaluation) {
  torch::manual_seed(1);
  EtcConfig config;
  config.vocab_size = 9;
  config.hidden_size = 4;
  config.num_attention_heads = 2;
  config.num_hidden_layers = 1;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  EtcModel encoder(config);
  EncoderDecoderConfig decoder = ToyTranslationConfig("sum");
  decoder.max_target_positions = kMostTokens;
  SpellingHead head(decoder);
  const Examples both = {ExampleOf(2), ExampleOf(4)};
  const LossTotals totals = head.Totals(both);
  EXPECT_THAT(totals, testing::ElementsAre(8));  // with two ends
  const auto loss_of = [&](const Examples& examples) {
    const Batch batch = MakeBatch(examples);
    return head.Loss(head.Run(encoder, batch), batch, totals);
  };
  const torch::Tensor loss = loss_of(both);
  EXPECT_NEAR((loss_of({both[0]}) + loss_of({both[1]})).item<double>(),
              loss.item<double>(), 1e-4);
  loss.backward();
  EXPECT_GT(encoder->parameters().front().grad().abs().sum().item<double>(), 0);
  head.eval();
  encoder->eval();
  const std::vector<torch::Tensor> logits = head.Run(encoder, MakeBatch(both));
  EXPECT_NEAR(logits[0].sum().item<double>() / 8, loss.item<double>(), 1e-4);
  EXPECT_TRUE((logits[1] == kEndId).sum(1).eq(1).all().item<bool>());
}

}  // namespace
}  // namespace etc
