// Inputs of the encoder in the forms that callers have them: int32 ids (the
// official type), masks of padding without a pattern, causal inputs. The same
// bits as the long forms.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <vector>

#include "etc/bert_input.h"
#include "etc/model.h"
#include "tests/support/error_message.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

EtcModel Model(ResidualAttention mode) {
  EtcConfig config = ToyConfig();
  config.initializer_range = 0.3;
  config.max_absolute_position_embeddings = 16;
  EtcModel model(config);
  model->set_residual_attention(mode);
  return model;
}

EtcInput Input() {
  EtcInput input;
  input.token_ids = torch::arange(24).remainder(11).view({2, 12});
  input.global_token_ids = torch::arange(6).remainder(11).view({2, 3});
  input.segment_ids = torch::arange(24).remainder(3).view({2, 12});
  input.global_segment_ids = torch::arange(6).remainder(3).view({2, 3});
  input.position_ids = torch::arange(12).flip(0).expand({2, 12});
  input.global_position_ids = torch::arange(3).expand({2, 3});
  input.outputs.longs = torch::tensor({3, 20, 5}, torch::kInt64);
  return input;
}

TEST(InputFormsTest, Int32IdsGiveTheSameOutputsAndGradients) {
  torch::manual_seed(1);
  EtcModel model = Model(ResidualAttention::kSum);
  const EtcInput wide = Input();
  EtcInput narrow = wide;
  for (torch::Tensor* ids :
       {&narrow.token_ids, &narrow.global_token_ids, &narrow.segment_ids,
        &narrow.global_segment_ids, &narrow.position_ids,
        &narrow.global_position_ids, &narrow.outputs.longs}) {
    *ids = ids->to(torch::kInt32);
  }
  const auto run = [&](const EtcInput& input) {
    const EtcOutput output = model(input);
    std::vector<torch::Tensor> all = torch::autograd::grad(
        {output.long_output.sin().sum() + output.global_output.sin().sum()},
        model->parameters(), {}, c10::nullopt, false, /*allow_unused=*/true);
    all.push_back(output.long_output);
    all.push_back(output.global_output);
    return all;
  };
  const auto expected = run(wide);
  const auto actual = run(narrow);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), expected[i].defined()) << i;
    EXPECT_TRUE(!expected[i].defined() || actual[i].equal(expected[i])) << i;
  }
}

TEST(InputFormsTest, BertTakesInt32) {
  const torch::Tensor ids = torch::arange(8).view({2, 4});
  const torch::Tensor mask = torch::ones({2, 4}, torch::kInt32);
  const EtcInput input =
      BertInput(ids.to(torch::kInt32), mask.to(torch::kInt32), mask);
  EXPECT_TRUE(input.global_token_ids.to(torch::kInt64).equal(ids));
  EXPECT_NO_THROW(
      PackedBertInput(ids.to(torch::kInt32), {}, mask.to(torch::kInt32)));
}

// A mask has the model's radius and distance, which nobody repeats.
TEST(InputFormsTest, AMaskIsAPatternWithTheSizesOfTheModel) {
  torch::manual_seed(2);
  EtcModel model = Model(ResidualAttention::kMean);
  const torch::NoGradGuard no_grad;
  EtcInput input = Input();
  input.outputs = {};
  const EtcOutput whole = model(input);
  input.attention = AttentionInputs::Padded(torch::ones({2, 12}, torch::kBool));
  const EtcOutput all_tokens = model(input);
  EXPECT_TRUE(all_tokens.long_output.equal(whole.long_output));
  EXPECT_TRUE(all_tokens.global_output.equal(whole.global_output));

  torch::Tensor mask = torch::ones({2, 12}, torch::kInt64);
  mask[0].narrow(0, 9, 3).fill_(0);
  const auto& config = model->config();
  input.attention = AttentionInputs(
      std::vector{UnrestrictedPattern(9, 3, config.local_radius,
                                      config.relative_pos_max_distance),
                  UnrestrictedPattern(12, 3, config.local_radius,
                                      config.relative_pos_max_distance)});
  const EtcOutput expected = model(input);
  input.attention = AttentionInputs::Padded(mask);
  const EtcOutput actual = model(input);
  EXPECT_TRUE(actual.long_output.equal(expected.long_output));
  EXPECT_TRUE(actual.global_output.equal(expected.global_output));

  input.attention = AttentionInputs::Padded(mask.narrow(1, 0, 11));
  EXPECT_THROW(model(input), c10::Error);
}

// The table has rows for more ids than the model's distance needs.
TEST(InputFormsTest, RefusesOtherRelativeDistancesThanTheModels) {
  EtcConfig config = ToyConfig();
  config.relative_vocab_size = 32;
  EtcModel model(config);
  const torch::NoGradGuard no_grad;
  EtcInput input = Input();
  input.position_ids = input.global_position_ids = torch::Tensor();
  input.outputs = {};
  const auto message = [&](const AttentionInputs& attention) {
    input.attention = attention;
    return MessageOf([&] { model(input); });
  };
  const auto patterns = [&](int64_t distance) {
    return AttentionInputs(std::vector(
        2, UnrestrictedPattern(12, 3, config.local_radius, distance)));
  };
  const torch::Tensor mask = torch::ones({2, 12}, torch::kBool);
  for (const int64_t distance : {0, 2}) {
    for (const AttentionInputs& attention :
         {patterns(distance), patterns(distance).Causal(),
          AttentionInputs::Everything(distance),
          AttentionInputs::Padded(mask, {}, distance),
          AttentionInputs(ExplicitInputs{.g2l_mask = mask.unsqueeze(1)},
                          distance)}) {
      EXPECT_EQ(message(attention), "nothing was thrown");
    }
  }
  EXPECT_EQ(message(AttentionInputs::Padded(mask)), "nothing was thrown");
  for (const AttentionInputs& attention :
       {patterns(12), patterns(12).Causal(), AttentionInputs::Everything(12),
        AttentionInputs::Padded(mask, {}, 12),
        AttentionInputs(ExplicitInputs{.g2l_mask = mask.unsqueeze(1)}, 12)}) {
    EXPECT_THAT(message(attention),
                testing::HasSubstr("should have the model's "
                                   "relative_pos_max_distance, 2, or 0 for no "
                                   "relative ids, but has 12"));
  }
}

TEST(InputFormsTest, CausalInputsMakeAModelCausal) {
  torch::manual_seed(3);
  EtcModel model = Model(ResidualAttention::kSum);
  const torch::NoGradGuard no_grad;
  EtcInput input = Input();
  input.outputs = {};
  for (const AttentionInputs& visible :
       {AttentionInputs(),
        AttentionInputs::Padded(torch::ones({2, 12}, torch::kBool))}) {
    input.token_ids = Input().token_ids;
    input.attention = visible.Causal();
    const torch::Tensor before = model(input).long_output;
    for (int64_t j = 0; j < 12; ++j) {
      input.token_ids = Input().token_ids.clone();
      input.token_ids.select(1, j).add_(1).remainder_(11);
      const torch::Tensor after = model(input).long_output;
      EXPECT_TRUE(after.narrow(1, 0, j).equal(before.narrow(1, 0, j))) << j;
      EXPECT_FALSE(after.select(1, j).equal(before.select(1, j))) << j;
    }
  }
}

}  // namespace
}  // namespace etc
