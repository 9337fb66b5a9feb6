// Masks and documents of tokens for ETC: who sees whom, against loops over all
// pairs (doc/model.md 6); that padding, on either side or in holes, changes
// nothing for the tokens; masks of one's own as runs of keys, the same bits as
// the patterns that they come from; int32 ids; and what is refused. Exact but
// where a tolerance is stated.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/global_local_attention.h"
#include "attention/output_rows.h"
#include "attention/pattern.h"
#include "tests/support/error_message.h"
#include "tests/support/run_masks.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kBatch = 3, kLong = 11, kGlobal = 4, kRadius = 2;

constexpr AttentionImplementation kImplementations[] = {
    AttentionImplementation::kReference, AttentionImplementation::kBlocked,
    AttentionImplementation::kKernel};

void ExpectRunsOfBothSides(const AttentionInputs& inputs) {
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    ExpectRunsMatchMasks(inputs.Softmax(side, kBatch, kLong, kGlobal, kRadius));
  }
}

// `together(id, id)`: true if tokens of these ids see each other.
void ExpectTogether(const AttentionInputs& inputs, const torch::Tensor& longs,
                    const torch::Tensor& globals) {
  const ExplicitInputs all =
      inputs.Tensors(kBatch, kLong, kGlobal, kRadius, torch::kCPU);
  const auto together = [](const torch::Tensor& a, const torch::Tensor& b) {
    return a.item<int64_t>() != 0 && a.item<int64_t>() == b.item<int64_t>();
  };
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < kLong; ++i) {
      for (int64_t j = i - kRadius; j <= i + kRadius; ++j) {
        EXPECT_EQ(all.l2l_mask[b][i][j - i + kRadius].item<bool>(),
                  j >= 0 && j < kLong && together(longs[b][i], longs[b][j]));
      }
      for (int64_t g = 0; g < kGlobal; ++g) {
        const bool sees = together(longs[b][i], globals[b][g]);
        EXPECT_EQ(all.l2g_mask[b][i][g].item<bool>(), sees);
        EXPECT_EQ(all.g2l_mask[b][g][i].item<bool>(), sees);
      }
    }
    for (int64_t g = 0; g < kGlobal; ++g) {
      for (int64_t k = 0; k < kGlobal; ++k) {
        EXPECT_EQ(all.g2g_mask[b][g][k].item<bool>(),
                  together(globals[b][g], globals[b][k]));
      }
    }
  }
  ExpectRunsOfBothSides(inputs);
}

TEST(PaddedInputsTest, PaddingSeesNothingAndIsNotSeen) {
  torch::manual_seed(1);
  const torch::Tensor longs =
      torch::randint(0, 2, {kBatch, kLong}, torch::kInt64);
  const torch::Tensor globals =
      torch::randint(0, 2, {kBatch, kGlobal}, torch::kInt64);
  for (const auto type : {torch::kBool, torch::kInt32, torch::kInt64}) {
    ExpectTogether(AttentionInputs::Padded(longs.to(type), globals.to(type), 2),
                   longs, globals);
  }
  ExpectTogether(AttentionInputs::Padded(longs), longs,
                 torch::ones_like(globals));
  ExpectTogether(AttentionInputs::Padded({}, globals), torch::ones_like(longs),
                 globals);
}

TEST(PaddedInputsTest, DocumentsSeeThemselvesAlone) {
  torch::manual_seed(2);
  const torch::Tensor longs =
      torch::randint(0, 4, {kBatch, kLong}, torch::kInt64);
  const torch::Tensor globals =
      torch::randint(0, 4, {kBatch, kGlobal}, torch::kInt64);
  ExpectTogether(AttentionInputs::Packed(longs, globals, 2), longs, globals);
  ExpectTogether(AttentionInputs::Packed(longs.to(torch::kInt32),
                                         globals.to(torch::kInt32)),
                 longs, globals);
}

TEST(PaddedInputsTest, KeepsAMaskAsItWasGiven) {
  torch::Tensor longs = torch::ones({kBatch, kLong}, torch::kInt32);
  const AttentionInputs inputs = AttentionInputs::Packed(
      longs, torch::ones({kBatch, kGlobal}, torch::kInt32));
  longs.fill_(0);
  EXPECT_TRUE(inputs.Tensors(kBatch, kLong, kGlobal, kRadius, torch::kCPU)
                  .g2l_mask.all()
                  .item<bool>());
}

TEST(PaddedInputsTest, HasTheRelativeIdsOfUnrestrictedPatterns) {
  const torch::Tensor mask = torch::ones({1, kLong}, torch::kBool);
  const AttentionInputs pattern(
      std::vector{UnrestrictedPattern(kLong, kGlobal, kRadius, 3)});
  const ExplicitInputs expected =
      pattern.Tensors(1, kLong, kGlobal, kRadius, torch::kCPU);
  for (const AttentionInputs& inputs :
       {AttentionInputs::Padded(mask, {}, 3),
        AttentionInputs::Padded(mask).WithDistance(3),
        AttentionInputs().WithDistance(3),
        AttentionInputs(ExplicitInputs{.g2l_mask = torch::ones(
                                           {1, kGlobal, kLong}, torch::kBool)},
                        3)}) {
    const ExplicitInputs actual =
        inputs.Tensors(1, kLong, kGlobal, kRadius, torch::kCPU);
    EXPECT_TRUE(actual.l2l_ids.equal(expected.l2l_ids));
    EXPECT_TRUE(actual.l2g_ids.equal(expected.l2g_ids));
    EXPECT_TRUE(actual.g2g_ids.equal(expected.g2g_ids));
    EXPECT_TRUE(actual.g2l_ids.equal(expected.g2l_ids));
    const SoftmaxPattern runs =
        inputs.Softmax(QuerySide::kGlobal, 1, kLong, kGlobal, kRadius);
    EXPECT_EQ((*runs.runs)[0].max_distance, 3);
  }
  // A distance that is stated stays.
  const auto has_ids = [&](const AttentionInputs& inputs) {
    return !inputs.Softmax(QuerySide::kLong, 1, kLong, kGlobal, kRadius)
                .has_no_ids();
  };
  EXPECT_FALSE(has_ids(AttentionInputs::Padded(mask, {}, 0).WithDistance(3)));
  EXPECT_FALSE(has_ids(AttentionInputs::Everything(0).WithDistance(3)));
  EXPECT_FALSE(has_ids(AttentionInputs(ExplicitInputs()).WithDistance(3)));
  EXPECT_FALSE(has_ids(AttentionInputs::Padded(mask)));
}

GlobalLocalAttention MakeAttention() {
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 6,
                                  .global_hidden_size = 6,
                                  .num_heads = 2,
                                  .head_size = 3,
                                  .local_radius = kRadius,
                                  .relative_vocab_size = 10,
                                  .dropout = 0.0,
                                  .initializer_range = 0.5});
  return attention;
}

// Without relative tables there is nothing to leave out in silence.
TEST(PaddedInputsTest, ALayerWithRelativeTablesNeedsADistance) {
  GlobalLocalAttention attention = MakeAttention();
  GlobalLocalAttentionOptions options = attention->options();
  options.relative_vocab_size = 0;
  GlobalLocalAttention without(options);
  const torch::Tensor longs = torch::randn({kBatch, kLong, 6});
  const torch::Tensor globals = torch::randn({kBatch, kGlobal, 6});
  const torch::Tensor ids = torch::ones({kBatch, kLong}, torch::kInt64);
  const torch::Tensor global_ids =
      torch::ones({kBatch, kGlobal}, torch::kInt64);
  for (const AttentionInputs& open :
       {AttentionInputs(), AttentionInputs::Padded(ids),
        AttentionInputs::Packed(ids, global_ids), AttentionInputs().Causal()}) {
    EXPECT_THAT(MessageOf([&] { attention(longs, globals, open); }),
                testing::HasSubstr("max_distance of its inputs is left open"));
    EXPECT_THROW(attention->Inspect(longs, globals, open), c10::Error);
    EXPECT_NO_THROW(attention(longs, globals, open.WithDistance(3)));
    EXPECT_NO_THROW(attention(longs, globals, open.WithDistance(0)));
    EXPECT_NO_THROW(without(longs, globals, open));
  }
  EXPECT_NO_THROW(attention(longs, globals, AttentionInputs(ExplicitInputs())));
}

// Padding in front, behind, and on both sides: the tokens get what they get
// alone, on each backend. float32, sums in another order: 1e-6.
TEST(PaddedInputsTest, TokensGetWhatTheyGetAlone) {
  torch::manual_seed(3);
  GlobalLocalAttention attention = MakeAttention();
  const torch::NoGradGuard no_grad;
  const torch::Tensor longs = torch::randn({kBatch, kLong, 6});
  const torch::Tensor globals = torch::randn({kBatch, kGlobal, 6});
  const std::vector<int64_t> begins = {0, 5, 3};
  const std::vector<int64_t> global_begins = {1, 0, 2};
  const int64_t tokens = 6, global_tokens = 2;
  torch::Tensor mask = torch::zeros({kBatch, kLong}, torch::kBool);
  torch::Tensor global_mask = torch::zeros({kBatch, kGlobal}, torch::kBool);
  for (int64_t b = 0; b < kBatch; ++b) {
    mask[b].narrow(0, begins[b], tokens).fill_(true);
    global_mask[b].narrow(0, global_begins[b], global_tokens).fill_(true);
  }
  const AttentionInputs inputs = AttentionInputs::Padded(mask, global_mask, 3);
  for (const AttentionImplementation implementation : kImplementations) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput batch = attention(longs, globals, inputs);
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto of = [&](const torch::Tensor& stream, int64_t begin,
                          int64_t count) {
        return stream.narrow(0, b, 1).narrow(1, begin, count);
      };
      const GlobalLocalAttentionOutput alone =
          attention(of(longs, begins[b], tokens),
                    of(globals, global_begins[b], global_tokens),
                    AttentionInputs::Everything(3));
      EXPECT_TRUE(IsClose(of(batch.long_output, begins[b], tokens),
                          alone.long_output, 1e-6));
      EXPECT_TRUE(
          IsClose(of(batch.global_output, global_begins[b], global_tokens),
                  alone.global_output, 1e-6));
    }
  }
}

// Every kind of input for no example, on each backend.
TEST(PaddedInputsTest, AnEmptyBatchHasAnEmptyOutput) {
  GlobalLocalAttention attention = MakeAttention();
  const torch::Tensor longs = torch::randn({0, kLong, 6});
  const torch::Tensor globals = torch::randn({0, kGlobal, 6});
  const auto ids = [](std::vector<int64_t> shape) {
    return torch::zeros(shape, torch::kInt64);
  };
  const AttentionInputs inputs[] = {
      AttentionInputs().WithDistance(3),
      AttentionInputs::Everything(3),
      AttentionInputs::Padded(ids({0, kLong}), {}, 3),
      AttentionInputs::Packed(ids({0, kLong}), ids({0, kGlobal}), 3),
      AttentionInputs(std::vector<AttentionPattern>()),
      AttentionInputs({.g2l_mask = ids({0, kGlobal, kLong})}, 3),
      AttentionInputs({.l2l_ids = ids({0, kLong, 2 * kRadius + 1}),
                       .l2g_ids = ids({0, kLong, kGlobal}),
                       .g2g_ids = ids({0, kGlobal, kGlobal}),
                       .g2l_ids = ids({0, kGlobal, kLong})})};
  for (const AttentionImplementation implementation : kImplementations) {
    attention->set_implementation(implementation);
    for (size_t i = 0; i < std::size(inputs); ++i) {
      for (const AttentionInputs& given : {inputs[i], inputs[i].Causal()}) {
        SCOPED_TRACE(i);
        GlobalLocalAttentionOutput output;
        EXPECT_EQ(
            MessageOf([&] {
              output = attention(
                  longs, globals, given,
                  CarriedScores{.residual = {.mode = ResidualAttention::kSum}});
            }),
            "nothing was thrown");
        EXPECT_EQ(output.long_output.sizes(), longs.sizes());
        EXPECT_EQ(output.global_output.sizes(), globals.sizes());
      }
    }
  }
  EXPECT_THROW(attention(torch::randn({1, kLong, 6}),
                         torch::randn({1, kGlobal, 6}), inputs[4]),
               c10::Error);
}

// Values at padding and holes, even large ones, reach no token.
TEST(PaddedInputsTest, NothingComesFromHoles) {
  torch::manual_seed(4);
  GlobalLocalAttention attention = MakeAttention();
  const torch::NoGradGuard no_grad;
  const torch::Tensor longs = torch::randn({kBatch, kLong, 6});
  const torch::Tensor globals = torch::randn({kBatch, kGlobal, 6});
  const torch::Tensor mask = torch::randint(0, 3, {kBatch, kLong}).gt(0);
  const torch::Tensor global_mask =
      torch::randint(0, 3, {kBatch, kGlobal}).gt(0);
  const torch::Tensor others =
      torch::where(mask.unsqueeze(-1), longs, torch::full_like(longs, 1e3));
  const AttentionInputs inputs = AttentionInputs::Padded(mask, global_mask, 3);
  for (const AttentionImplementation implementation : kImplementations) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput a = attention(longs, globals, inputs);
    const GlobalLocalAttentionOutput b = attention(others, globals, inputs);
    const torch::Tensor tokens = mask.unsqueeze(-1).expand_as(longs);
    EXPECT_TRUE(a.long_output.masked_select(tokens).equal(
        b.long_output.masked_select(tokens)));
    EXPECT_TRUE(a.global_output.equal(b.global_output));
    EXPECT_TRUE(a.long_output.isfinite().all().item<bool>());
    EXPECT_TRUE(b.long_output.isfinite().all().item<bool>());
  }
}

// Masks without ids are runs, with the ids of distances if those are asked for.
TEST(PaddedInputsTest, OwnMasksAreRunsOfKeys) {
  torch::manual_seed(5);
  const auto mask = [](std::vector<int64_t> shape) {
    return torch::randint(0, 3, shape).gt(0);
  };
  for (const int64_t distance : {0, 3}) {
    const AttentionInputs inputs(
        {.l2l_mask = mask({kBatch, kLong, 2 * kRadius + 1}),
         .l2g_mask = mask({1, kLong, kGlobal}),
         .g2g_mask = mask({kGlobal, kGlobal}),
         .g2l_mask = mask({kBatch, 1, kLong})},
        distance);
    ExpectRunsOfBothSides(inputs);
    ExpectRunsOfBothSides(inputs.Causal());
    GlobalLocalAttention attention = MakeAttention();
    const torch::Tensor longs = torch::randn({kBatch, kLong, 6});
    const torch::Tensor globals = torch::randn({kBatch, kGlobal, 6});
    attention->set_implementation(AttentionImplementation::kKernel);
    const GlobalLocalAttentionOutput kernel = attention(longs, globals, inputs);
    attention->set_implementation(AttentionImplementation::kReference);
    const GlobalLocalAttentionOutput reference =
        attention(longs, globals, inputs);
    EXPECT_TRUE(IsClose(kernel.long_output, reference.long_output, 1e-5));
    EXPECT_TRUE(IsClose(kernel.global_output, reference.global_output, 1e-5));
  }
}

TEST(PaddedInputsTest, MasksThatAreNoRunsGoToTensorOperations) {
  const int64_t most_runs = MostRuns(0);
  const int64_t longs = 2 * most_runs + 2;
  ASSERT_EQ(MostRuns(longs), most_runs);
  const torch::Tensor mask = torch::arange(longs).remainder(2).eq(0);
  const AttentionInputs inputs({.g2l_mask = mask.unsqueeze(0)});
  const SoftmaxPattern pattern =
      inputs.Softmax(QuerySide::kGlobal, 1, longs, kGlobal, kRadius);
  EXPECT_EQ(pattern.runs, nullptr);
  // Each layer asks for its pattern, and finds that it is that of the others.
  EXPECT_EQ(pattern.mask_source,
            inputs.Softmax(QuerySide::kGlobal, 1, longs, kGlobal, kRadius)
                .mask_source);
  EXPECT_NE(pattern.mask_source, nullptr);
  EXPECT_EQ(pattern.masks(torch::kCPU).other_mask.sum().item<int64_t>(),
            kGlobal * (most_runs + 1));
  GlobalLocalAttention attention = MakeAttention();
  const torch::Tensor long_input = torch::randn({1, longs, 6});
  const torch::Tensor global_input = torch::randn({1, kGlobal, 6});
  EXPECT_NO_THROW(attention(long_input, global_input, inputs));
  attention->set_implementation(AttentionImplementation::kKernel);
  EXPECT_THAT(MessageOf([&] { attention(long_input, global_input, inputs); }),
              testing::HasSubstr("tensors that are not runs of keys"));
}

TEST(PaddedInputsTest, TakesIdsAndRowsOfInt32) {
  torch::manual_seed(6);
  GlobalLocalAttention attention = MakeAttention();
  const torch::Tensor longs = torch::randn({1, kLong, 6});
  const torch::Tensor globals = torch::randn({1, kGlobal, 6});
  ExplicitInputs wide = Materialize(
      {UnrestrictedPattern(kLong, kGlobal, kRadius, 3)}, kLong, kGlobal);
  ExplicitInputs narrow = wide;
  for (torch::Tensor* ids :
       {&narrow.l2l_ids, &narrow.l2g_ids, &narrow.g2g_ids, &narrow.g2l_ids}) {
    *ids = ids->to(torch::kInt32);
  }
  const torch::Tensor rows = torch::tensor({7, 2, 2}, torch::kInt64);
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kReference,
        AttentionImplementation::kBlocked}) {
    attention->set_implementation(implementation);
    const GlobalLocalAttentionOutput a =
        attention(longs, globals, AttentionInputs(wide), CarriedScores(),
                  OutputRows{.longs = rows});
    const GlobalLocalAttentionOutput b =
        attention(longs, globals, AttentionInputs(narrow), CarriedScores(),
                  OutputRows{.longs = rows.to(torch::kInt32)});
    EXPECT_TRUE(a.long_output.equal(b.long_output));
    EXPECT_TRUE(a.global_output.equal(b.global_output));
  }
}

TEST(PaddedInputsTest, SaysWhatItExpected) {
  const torch::Tensor mask = torch::ones({kBatch, kLong}, torch::kBool);
  EXPECT_THAT(
      MessageOf([&] { AttentionInputs::Padded(mask.to(torch::kFloat32)); }),
      testing::HasSubstr(
          "long_mask should be bool, or integers 0 and 1, true where "
          "attention is allowed, but is Float"));
  EXPECT_THAT(
      MessageOf(
          [&] { AttentionInputs::Padded({}, mask.to(torch::kInt64) * 2); }),
      testing::HasSubstr("global_mask should be bool, or integers 0 and 1"));
  EXPECT_THAT(MessageOf([&] { AttentionInputs::Padded(mask[0]); }),
              testing::HasSubstr("long_mask should be [batch, length]"));
  const auto use = [&](const AttentionInputs& inputs) {
    return MessageOf([&] {
      inputs.Softmax(QuerySide::kLong, kBatch, kLong, kGlobal, kRadius);
    });
  };
  EXPECT_THAT(use(AttentionInputs::Padded(mask.narrow(1, 0, 9))),
              testing::HasSubstr("the mask or the ids of long tokens should be "
                                 "[3, 11], [batch, length] of the layer's "
                                 "input, but are [3, 9]"));
  EXPECT_THAT(use(AttentionInputs::Padded(mask.narrow(0, 0, 2))),
              testing::HasSubstr("but are [2, 11]"));
  EXPECT_THAT(use(AttentionInputs::Padded({}, mask)),
              testing::HasSubstr("of global tokens should be [3, 4]"));
  const torch::Tensor ids = torch::ones({kBatch, kLong}, torch::kInt64);
  EXPECT_THAT(
      MessageOf([&] { AttentionInputs::Packed(-ids, ids); }),
      testing::HasSubstr("long_ids should be from 0 to 2^31 - 1, but is from "
                         "-1 to -1"));
  EXPECT_THROW(AttentionInputs::Packed(ids, torch::Tensor()), c10::Error);
  EXPECT_THROW(AttentionInputs::Packed(ids, ids.to(torch::kFloat64)),
               c10::Error);
  EXPECT_THROW(AttentionInputs::Padded(mask, {}, -1), c10::Error);
  EXPECT_THAT(
      use(AttentionInputs(
          {.l2g_mask = torch::ones({kBatch, kLong, kLong}, torch::kBool)})),
      testing::HasSubstr("l2g_mask should be [queries, keys] = [11, 4]"));
  EXPECT_THROW(
      AttentionInputs({.g2g_ids = torch::zeros({1, 4, 4}, torch::kInt64),
                       .g2l_ids = torch::zeros({1, 4, 11}, torch::kInt64)},
                      2),
      c10::Error);
  const AttentionInputs patterns(
      std::vector(2, UnrestrictedPattern(kLong, kGlobal, kRadius, 2)));
  EXPECT_THAT(use(patterns),
              testing::HasSubstr("a batch of 3 should have as many patterns"));
}

}  // namespace
}  // namespace etc
