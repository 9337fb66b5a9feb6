// Masks and ids as tensors: which dtypes and values are taken, and that an
// integer mask says what its bool says. Everything visible, with and without
// relative ids, in both forms: as runs and as tensors.

#include "attention/attention_inputs.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attention/global_local_attention.h"
#include "attention/output_rows.h"
#include "attention/pattern_builders.h"
#include "tests/support/error_message.h"

namespace etc {
namespace {

constexpr int64_t kLong = 5, kGlobal = 3, kRadius = 2, kWindow = 5;

torch::Tensor L2gMask(const torch::Tensor& mask) {
  return AttentionInputs(ExplicitInputs{.l2g_mask = mask})
      .Tensors(1, kLong, kGlobal, kRadius, torch::kCPU)
      .l2g_mask;
}

TEST(AttentionInputsTest, TakesMasksOfBoolAndOfZerosAndOnes) {
  const torch::Tensor mask =
      torch::eye(kLong).narrow(1, 0, kGlobal).to(torch::kBool).unsqueeze(0);
  for (const auto type :
       {torch::kBool, torch::kUInt8, torch::kInt32, torch::kInt64}) {
    EXPECT_TRUE(L2gMask(mask.to(type)).equal(mask)) << type;
  }
}

// Changes the caller's tensors, of any dtype, before a backend reads them.
TEST(AttentionInputsTest, KeepsTensorsAsTheyWereGiven) {
  for (const auto type : {torch::kBool, torch::kInt32, torch::kInt64}) {
    torch::Tensor mask = torch::zeros({1, kLong, kGlobal}, type);
    const AttentionInputs inputs({.l2g_mask = mask});
    mask.fill_(1);
    EXPECT_FALSE(inputs.Tensors(1, kLong, kGlobal, kRadius, torch::kCPU)
                     .l2g_mask.any()
                     .item<bool>())
        << type;
    const SoftmaxPattern pattern =
        inputs.Softmax(QuerySide::kLong, 1, kLong, kGlobal, kRadius);
    ASSERT_NE(pattern.runs, nullptr);
    EXPECT_TRUE((*pattern.runs)[0].other.visible.runs.empty()) << type;
  }
  for (const auto type : {torch::kInt32, torch::kInt64}) {
    torch::Tensor l2l = torch::zeros({1, kLong, kWindow}, type);
    torch::Tensor l2g = torch::zeros({1, kLong, kGlobal}, type);
    const AttentionInputs inputs({.l2l_ids = l2l, .l2g_ids = l2g});
    l2l.fill_(1);
    l2g.fill_(1);
    const ExplicitInputs all =
        inputs.Tensors(1, kLong, kGlobal, kRadius, torch::kCPU);
    EXPECT_TRUE(all.l2l_ids.eq(0).all().item<bool>()) << type;
    EXPECT_TRUE(all.l2g_ids.eq(0).all().item<bool>()) << type;
  }
}

TEST(AttentionInputsTest, RefusesMasksThatAreAddedToScores) {
  const torch::Tensor added = torch::zeros({1, kLong, kGlobal});
  added[0][1][2] = -std::numeric_limits<float>::infinity();
  for (const torch::Tensor& mask :
       {added, added.to(torch::kFloat64), added.to(torch::kBFloat16),
        torch::ones({1, kLong, kGlobal}),
        torch::full({1, kLong, kGlobal}, -10000, torch::kInt64)}) {
    try {
      L2gMask(mask);
      ADD_FAILURE() << "a mask of " << mask.scalar_type() << " is taken";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(),
                  testing::HasSubstr("l2g_mask should be bool"));
    }
  }
}

TEST(AttentionInputsTest, RefusesIdsOfOtherDtypesAndBelowZero) {
  const auto tensors = [](const torch::Tensor& l2l, const torch::Tensor& l2g) {
    return AttentionInputs(ExplicitInputs{.l2l_ids = l2l, .l2g_ids = l2g})
        .Tensors(1, kLong, kGlobal, kRadius, torch::kCPU);
  };
  const torch::Tensor l2l = torch::zeros({1, kLong, kWindow}, torch::kInt64);
  const torch::Tensor l2g = torch::ones({1, kLong, kGlobal}, torch::kInt64);
  EXPECT_NO_THROW(tensors(l2l, l2g));
  EXPECT_THROW(tensors(l2l.to(torch::kFloat32), l2g), c10::Error);
  EXPECT_NO_THROW(tensors(l2l.to(torch::kInt32), l2g.to(torch::kInt32)));
  EXPECT_THROW(tensors(l2l, -l2g), c10::Error);
}

TEST(AttentionInputsTest, EverythingIsAnUnrestrictedPatternOfEachExample) {
  for (const int64_t distance : {0, 2}) {
    const AttentionInputs everything = AttentionInputs::Everything(distance);
    const AttentionPattern pattern =
        UnrestrictedPattern(kLong, kGlobal, kRadius, distance);
    const AttentionInputs patterns({pattern, pattern});
    const ExplicitInputs actual =
        everything.Tensors(2, kLong, kGlobal, kRadius, torch::kCPU);
    const ExplicitInputs expected =
        patterns.Tensors(2, kLong, kGlobal, kRadius, torch::kCPU);
    EXPECT_TRUE(actual.l2l_mask.equal(expected.l2l_mask));
    EXPECT_TRUE(actual.g2l_mask.equal(expected.g2l_mask));
    ASSERT_EQ(actual.l2l_ids.defined(), distance > 0);
    if (distance > 0) {
      EXPECT_TRUE(actual.l2l_ids.equal(expected.l2l_ids));
      EXPECT_TRUE(actual.l2g_ids.equal(expected.l2g_ids));
      EXPECT_TRUE(actual.g2g_ids.equal(expected.g2g_ids));
      EXPECT_TRUE(actual.g2l_ids.equal(expected.g2l_ids));
    }
    const SoftmaxPattern runs =
        everything.Softmax(QuerySide::kLong, 2, kLong, kGlobal, kRadius);
    ASSERT_NE(runs.runs, nullptr);
    EXPECT_EQ(runs.has_no_ids(), distance == 0);
  }
}

// The rows of a relative table, 2m + 4, would overflow.
TEST(AttentionInputsTest, RefuseDistancesOutOfRange) {
  const torch::Tensor ones = torch::ones({1, kLong}, torch::kInt64);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const int64_t distance :
       {int64_t{-1}, kMostRelativeDistance + 1, kLargest / 2, kLargest}) {
    for (const auto& make : std::vector<std::function<AttentionInputs()>>{
             [&] { return AttentionInputs::Everything(distance); },
             [&] { return AttentionInputs().WithDistance(distance); },
             [&] { return AttentionInputs(ExplicitInputs(), distance); },
             [&] { return AttentionInputs::Padded(ones, {}, distance); },
             [&] { return AttentionInputs::Packed(ones, ones, distance); },
             [&] {
               return AttentionInputs(std::vector{
                   UnrestrictedPattern(kLong, kGlobal, kRadius, distance)});
             }}) {
      EXPECT_THAT(
          MessageOf(make),
          testing::HasSubstr("max_distance should be from 0 to 1048576, "
                             "but is " +
                             std::to_string(distance)));
    }
  }
  EXPECT_NO_THROW(AttentionInputs::Everything(kMostRelativeDistance));
}

TEST(AttentionInputsTest, RefuseSizesBelowZero) {
  const AttentionInputs inputs;
  const auto message = [&](int64_t batch, int64_t longs, int64_t globals) {
    const std::string runs = MessageOf([&] {
      inputs.Softmax(QuerySide::kLong, batch, longs, globals, kRadius);
    });
    EXPECT_EQ(runs, MessageOf([&] {
                inputs.Tensors(batch, longs, globals, kRadius, torch::kCPU);
              }));
    return runs;
  };
  EXPECT_EQ(message(0, kLong, kGlobal), "nothing was thrown");
  EXPECT_THAT(message(-1, kLong, kGlobal),
              testing::HasSubstr("batch and lengths should be at least 0, but "
                                 "are -1, 5 and 3"));
  EXPECT_THAT(message(1, -1, kGlobal), testing::HasSubstr("1, -1 and 3"));
  EXPECT_THAT(message(1, kLong, -1), testing::HasSubstr("1, 5 and -1"));
}

// Layers may differ in radius: column w of row i is key i + w - radius.
TEST(AttentionInputsTest, GiveEachLayerTheMasksOfItsRadius) {
  for (const AttentionInputs& inputs :
       {AttentionInputs::Everything(2),
        AttentionInputs::Padded(torch::ones({1, kLong}, torch::kBool))}) {
    for (const int64_t radius : {1, 2, 1}) {
      const torch::Tensor key = torch::arange(kLong).unsqueeze(1) +
                                torch::arange(2 * radius + 1) - radius;
      EXPECT_TRUE(inputs.Tensors(1, kLong, kGlobal, radius, torch::kCPU)
                      .l2l_mask[0]
                      .equal(key.ge(0).logical_and(key.lt(kLong))))
          << radius;
    }
  }
}

TEST(AttentionInputsTest, PatternsOfABatchHaveOneRadiusAndDistance) {
  const auto message = [](const AttentionPattern& first,
                          const AttentionPattern& second) {
    const AttentionInputs inputs({first, second});
    const std::string runs = MessageOf(
        [&] { inputs.Softmax(QuerySide::kLong, 2, kLong, kGlobal, kRadius); });
    EXPECT_EQ(runs, MessageOf([&] {
                inputs.Tensors(2, kLong, kGlobal, kRadius, torch::kCPU);
              }));
    return runs;
  };
  const auto pattern = [](int64_t longs, int64_t radius, int64_t distance) {
    return UnrestrictedPattern(longs, kGlobal, radius, distance);
  };
  const AttentionPattern good = pattern(kLong, kRadius, 3);
  EXPECT_EQ(message(good, pattern(3, kRadius, 3)), "nothing was thrown");
  EXPECT_THAT(message(good, pattern(kLong, kRadius, 4)),
              testing::HasSubstr("should have one relative_pos_max_distance, "
                                 "but have 3 and 4"));
  EXPECT_THAT(message(good, pattern(kLong, 1, 3)),
              testing::HasSubstr("should have the layer's local_radius, 2, "
                                 "but have 1"));
  // Without long tokens there are no windows.
  EXPECT_EQ(message(good, pattern(0, 1, 3)), "nothing was thrown");
  EXPECT_EQ(message(pattern(0, 1, 3), good), "nothing was thrown");
  EXPECT_THAT(MessageOf([&] {
                Materialize({good, pattern(kLong, 1, 3)}, kLong, kGlobal);
              }),
              testing::HasSubstr("should have one local_radius, but have 2 "
                                 "and 1"));
}

// The tensors of the attention module and of the operation itself.
TEST(AttentionInputsTest, OperandsAreFloatingAndOfTheLayersDtype) {
  GlobalLocalAttention attention(
      GlobalLocalAttentionOptions{.long_hidden_size = 4,
                                  .global_hidden_size = 4,
                                  .num_heads = 2,
                                  .head_size = 2,
                                  .local_radius = kRadius});
  const torch::Tensor longs = torch::ones({1, kLong, 4});
  const torch::Tensor globals = torch::ones({1, kGlobal, 4});
  const AttentionInputs inputs = AttentionInputs::Everything(2);
  EXPECT_NO_THROW(attention(longs, globals, inputs));
  for (const auto type : {torch::kFloat64, torch::kInt64}) {
    EXPECT_THROW(attention(longs.to(type), globals, inputs), c10::Error);
    EXPECT_THROW(attention(longs, globals.to(type), inputs), c10::Error);
  }
  const CarriedScores carried = {
      .residual = {.mode = ResidualAttention::kSum},
      .previous = {.g2g = torch::zeros({1, 2, kGlobal, kGlobal}),
                   .g2l = torch::zeros({1, 2, kGlobal, kLong}),
                   .l2g = torch::zeros({1, 2, kLong, kGlobal}, torch::kInt64),
                   .l2l = torch::zeros({1, 2, kLong, kWindow}, torch::kInt64),
                   .layers = 1}};
  EXPECT_THROW(attention(longs, globals, inputs, carried), c10::Error);
}

TEST(SparseAttentionOperandsTest, AreNoIntegers) {
  SparseAttentionInput input;
  const torch::Tensor ones = torch::ones({1, 2, kGlobal, 4}, torch::kInt64);
  const torch::Tensor none = torch::ones({1, 2, 0, 4}, torch::kInt64);
  input.operands = {.query = ones,
                    .own_key = ones,
                    .own_value = ones,
                    .other_key = none,
                    .other_value = none};
  input.pattern =
      AttentionInputs().Softmax(QuerySide::kGlobal, 1, 0, kGlobal, kRadius);
  EXPECT_THROW(SparseAttention(input), c10::Error);
  input.operands.ForEachTensor([](torch::Tensor& tensor) {
    if (tensor.defined()) {
      tensor = tensor.to(torch::kFloat32);
    }
  });
  EXPECT_NO_THROW(SparseAttention(input));
}

TEST(OnlyQueriesTest, RefusesOtherDtypesAndRowsThatAreNotThere) {
  const SoftmaxPattern pattern =
      AttentionInputs().Softmax(QuerySide::kLong, 2, kLong, kGlobal, kRadius);
  EXPECT_NO_THROW(OnlyQueries(pattern, torch::tensor({0, 9}, torch::kInt64)));
  EXPECT_THROW(OnlyQueries(pattern, torch::tensor({10}, torch::kInt64)),
               c10::Error);
  EXPECT_THROW(OnlyQueries(pattern, torch::tensor({-1}, torch::kInt64)),
               c10::Error);
  EXPECT_THROW(OnlyQueries(pattern, torch::tensor({1.0f})), c10::Error);
}

}  // namespace
}  // namespace etc
