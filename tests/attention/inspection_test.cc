// InspectAttention and GlobalLocalAttention::Inspect. The reference is the
// dense definition in double over values that are the identity, so that its
// contexts are the probabilities of all keys; its layers see the same float32
// numbers. Runs both sides, all modes, storages and fused backends over three
// layers, 130 rows (three blocks, windows that straddle them) with an example
// shorter than the batch. Tolerance 1e-6: probabilities are at most 1, logits
// of these inputs below 10 and sums of float32.

#include "attention/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "attention/global_local_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/error_message.h"
#include "tests/support/implementation_names.h"
#include "tests/support/score_storages.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 1e-6;

torch::Tensor Indices(const std::vector<int64_t>& indices) {
  return torch::tensor(indices, torch::kInt64);
}

AttentionCase ACase(ResidualAttention residual, bool causal = false) {
  return {.longs = 130,
          .globals = 9,
          .radius = 4,
          .head_dim = 4,
          .value_dim = 4,
          .heads = 3,
          .residual = residual,
          .hard = true,
          .causal = causal};
}

// Layers of moderate scores.
std::vector<SparseAttentionInput> LayersOf(const AttentionCase& c,
                                           QuerySide side) {
  torch::manual_seed(1);
  AttentionStack stack(c, side, MakeAttention(c));
  for (SparseAttentionInput& input : stack.layers) {
    input.operands.query = input.operands.query * 0.5;
  }
  return stack.layers;
}

// [..., T, own keys] -> [..., T, before + 1 + after], or itself without a
// window.
torch::Tensor Windows(const torch::Tensor& dense, const KeyWindow& window) {
  if (window.before < 0) {
    return dense;
  }
  const int64_t columns = window.before + 1 + window.after;
  torch::Tensor out = torch::zeros(
      {dense.size(0), dense.size(1), dense.size(2), columns}, dense.options());
  for (int64_t i = 0; i < dense.size(2); ++i) {
    for (int64_t w = 0; w < columns; ++w) {
      if (const int64_t j = i + w - window.before;
          j >= 0 && j < dense.size(3)) {
        out.select(2, i).select(2, w).copy_(dense.select(2, i).select(2, j));
      }
    }
  }
  return out;
}

// The view of each layer by the reference, in double.
std::vector<SoftmaxView> Reference(
    const std::vector<SparseAttentionInput>& layers) {
  std::vector<SoftmaxView> views;
  SparseAttentionOutput below;
  for (SparseAttentionInput input : layers) {
    AttentionOperands& operands = input.operands;
    operands.ForEachTensor(
        [](torch::Tensor& tensor) { tensor = tensor.to(torch::kFloat64); });
    input.gates.ForEachTensor([](torch::Tensor& gate) {
      if (gate.defined()) {
        gate = gate.to(torch::kFloat64);
      }
    });
    const int64_t own = operands.own_key.size(2);
    const int64_t other = operands.other_key.size(2);
    const torch::Tensor identity =
        torch::eye(own + other, torch::kFloat64)
            .expand({operands.query.size(0), operands.query.size(1), -1, -1});
    operands.own_value = identity.narrow(2, 0, own);
    operands.other_value = identity.narrow(2, own, other);
    input.previous = below.scores;
    const bool carries = input.residual.mode != ResidualAttention::kOff;
    // The scores of the layer alone are those that a first layer carries.
    SparseAttentionInput alone = input;
    alone.previous = {};
    alone.residual.mode = ResidualAttention::kSum;
    alone.gates = {};
    const SparseAttentionOutput first =
        SparseAttention(alone, AttentionImplementation::kReference);
    const torch::Tensor weights =
        SparseAttention(input, AttentionImplementation::kReference).context;
    const SoftmaxMasks masks = input.pattern.masks(torch::kCPU);
    const auto visible = [&](const ResidualPair& scores) {
      return ScorePair{.own = *scores.own * masks.own_mask.unsqueeze(1),
                       .other = *scores.other * masks.other_mask.unsqueeze(1)};
    };
    views.push_back(
        {.probabilities = {.own = Windows(weights.narrow(-1, 0, own),
                                          input.pattern.window),
                           .other = weights.narrow(-1, own, other)},
         .new_scores = visible(first.scores),
         .carried_scores =
             input.previous.defined() ? visible(input.previous) : ScorePair()});
    if (carries) {
      below = SparseAttention(input, AttentionImplementation::kReference);
    }
  }
  return views;
}

void ExpectClose(const ScorePair& actual, const ScorePair& expected,
                 double tolerance) {
  EXPECT_TRUE(IsClose(actual.own, expected.own, tolerance));
  EXPECT_TRUE(IsClose(actual.other, expected.other, tolerance));
}

class InspectionTest : public testing::TestWithParam<AttentionImplementation> {
};

INSTANTIATE_TEST_SUITE_P(AllBackends, InspectionTest,
                         testing::Values(AttentionImplementation::kReference,
                                         AttentionImplementation::kBlocked,
                                         AttentionImplementation::kKernel),
                         ImplementationName);

TEST_P(InspectionTest, IsTheReferenceInAllModesAndStorages) {
  using Run = std::pair<QuerySide, bool>;
  for (const auto& [side, causal] :
       {Run{QuerySide::kLong, false}, Run{QuerySide::kLong, true},
        Run{QuerySide::kGlobal, false}}) {
    for (const ResidualAttention mode : kEveryResidualAttention) {
      const auto layers = LayersOf(ACase(mode, causal), side);
      const auto expected = Reference(layers);
      for (const ScoreStorage storage : StoragesOf(mode, GetParam())) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(side) << ", " << static_cast<int>(mode)
                     << ", " << static_cast<int>(storage));
        SparseAttentionOutput below;
        for (size_t n = 0; n < layers.size(); ++n) {
          SparseAttentionInput input = layers[n];
          input.previous = below.scores;
          input.residual.storage = storage;
          const SoftmaxView view = InspectAttention(input, {.scores = true});
          ExpectClose(view.probabilities, expected[n].probabilities,
                      kTolerance);
          ExpectClose(view.new_scores, expected[n].new_scores, 1e-5);
          ExpectClose(view.carried_scores, expected[n].carried_scores, 1e-5);
          below = SparseAttention(input, GetParam());
          // Undoes the layer that has run, from what it carried on.
          input.previous = below.scores;
          const SoftmaxView past =
              InspectPastAttention(input, {.scores = true});
          ExpectClose(past.probabilities, expected[n].probabilities, 1e-5);
          ExpectClose(past.new_scores, expected[n].new_scores, 1e-5);
          ExpectClose(past.carried_scores, expected[n].carried_scores, 1e-5);
        }
      }
    }
  }
}

TEST(InspectionRowsTest, ChosenHeadsAndRowsAreThoseOfAll) {
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    const SparseAttentionInput input =
        LayersOf(ACase(ResidualAttention::kOff), side)[0];
    const SoftmaxView all = InspectAttention(input, {.scores = true});
    EXPECT_FALSE(all.carried_scores.defined());
    const int64_t length = input.pattern.queries;
    // Rows of both examples, in no order, one twice.
    const torch::Tensor rows =
        Indices({length + 2, 0, length - 1, 2 * length - 1, 0});
    const torch::Tensor heads = Indices({2, 0});
    for (const torch::ScalarType dtype : {torch::kInt64, torch::kInt32}) {
      const SoftmaxView some = InspectAttention(
          input, {.heads = {2, 0}, .rows = rows.to(dtype), .scores = true});
      const auto expect = [&](const torch::Tensor& actual,
                              const torch::Tensor& whole) {
        const torch::Tensor expected = whole.transpose(1, 2)
                                           .flatten(0, 1)
                                           .index_select(0, rows)
                                           .index_select(1, heads);
        EXPECT_TRUE(IsClose(actual, expected, kTolerance));
      };
      expect(some.probabilities.own, all.probabilities.own);
      expect(some.probabilities.other, all.probabilities.other);
      expect(some.new_scores.own, all.new_scores.own);
      expect(some.new_scores.other, all.new_scores.other);
    }
    const SoftmaxView none =
        InspectAttention(input, {.rows = torch::zeros({0}, torch::kInt64)});
    EXPECT_EQ(none.probabilities.other.sizes(),
              at::IntArrayRef({0, 3, input.pattern.other_keys}));
    EXPECT_FALSE(none.new_scores.defined());
  }
}

// The rows together have more pairs than are held at once: 40 rows of 3 heads
// over 24,000 keys, which are all those of the global tokens, and those from
// the first to the last of scattered long tokens.
TEST(InspectionRowsTest, RowsOverManyKeysAreThoseOfEachAlone) {
  constexpr int64_t kRows = 40;
  AttentionCase c = ACase(ResidualAttention::kOff);
  c.longs = 24'000;
  c.globals = kRows;
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    const SparseAttentionInput input = LayersOf(c, side)[0];
    const torch::Tensor rows =
        torch::arange(kRows) * (input.pattern.queries / kRows);
    const ScorePair all = InspectAttention(input, {.rows = rows}).probabilities;
    for (int64_t r = 0; r < kRows; ++r) {
      const ScorePair one =
          InspectAttention(input, {.rows = rows.narrow(0, r, 1)}).probabilities;
      EXPECT_TRUE(IsClose(all.own.narrow(0, r, 1), one.own, kTolerance));
      EXPECT_TRUE(IsClose(all.other.narrow(0, r, 1), one.other, kTolerance));
    }
  }
}

TEST(InspectionRowsTest, RowsSumToOneOrSeeNothing) {
  const AttentionCase c = ACase(ResidualAttention::kOff);
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    const SparseAttentionInput input = LayersOf(c, side)[0];
    const ScorePair p = InspectAttention(input).probabilities;
    const SoftmaxMasks masks = input.pattern.masks(torch::kCPU);
    const torch::Tensor sees =
        masks.own_mask.any(-1).logical_or(masks.other_mask.any(-1));
    EXPECT_FALSE(sees.all().item<bool>());  // padding
    EXPECT_TRUE(IsClose(
        p.own.sum(-1) + p.other.sum(-1),
        sees.to(torch::kFloat32).unsqueeze(1).expand({2, 3, -1}), kTolerance));
    EXPECT_EQ(p.own.masked_select(masks.own_mask.logical_not().unsqueeze(1))
                  .count_nonzero()
                  .item<int64_t>(),
              0);
    EXPECT_EQ(p.other.masked_select(masks.other_mask.logical_not().unsqueeze(1))
                  .count_nonzero()
                  .item<int64_t>(),
              0);
  }
}

TEST(InspectionRowsTest, PatternsAsTensorsGiveTheSame) {
  for (const Borders borders : {Borders::kMultihop, Borders::kScattered}) {
    for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
      AttentionCase c = ACase(ResidualAttention::kOff);
      c.borders = borders;
      SparseAttentionInput input = LayersOf(c, side)[0];
      ASSERT_NE(input.pattern.runs, nullptr);
      const ScorePair by_runs = InspectAttention(input).probabilities;
      input.pattern.runs = nullptr;
      ExpectClose(InspectAttention(input).probabilities, by_runs, 0.0);
    }
  }
}

TEST(InspectionRowsTest, OperandsOfSixteenBitsGiveFloat32) {
  SparseAttentionInput narrow =
      LayersOf(ACase(ResidualAttention::kOff), QuerySide::kLong)[0];
  narrow.operands.ForEachTensor(
      [](torch::Tensor& tensor) { tensor = tensor.to(torch::kBFloat16); });
  SparseAttentionInput wide = narrow;
  wide.operands.ForEachTensor(
      [](torch::Tensor& tensor) { tensor = tensor.to(torch::kFloat32); });
  const ScorePair actual = InspectAttention(narrow).probabilities;
  EXPECT_EQ(actual.own.scalar_type(), torch::kFloat32);
  ExpectClose(actual, InspectAttention(wide).probabilities, 0.0);
}

// Nor are gates rounded to 16 bits, which fused backends do not either.
TEST(InspectionRowsTest, GatesOfOperandsOfSixteenBitsAreNotRounded) {
  AttentionStack stack(ACase(ResidualAttention::kGate), QuerySide::kLong,
                       MakeAttention(ACase(ResidualAttention::kGate)));
  SparseAttentionInput narrow = stack.layers[1];
  narrow.operands.ForEachTensor(
      [](torch::Tensor& tensor) { tensor = tensor.to(torch::kBFloat16); });
  narrow.previous = SparseAttention(stack.layers[0]).scores;
  SparseAttentionInput wide = narrow;
  wide.operands.ForEachTensor(
      [](torch::Tensor& tensor) { tensor = tensor.to(torch::kFloat32); });
  ExpectClose(InspectAttention(narrow).probabilities,
              InspectAttention(wide).probabilities, 0.0);
}

TEST(InspectionRowsTest, KeepsNoGraph) {
  AttentionCase c = ACase(ResidualAttention::kOff);
  const SparseAttentionInput input =
      AttentionStack(c, QuerySide::kLong, MakeAttention(c))
          .As(torch::kFloat32)
          .layers[0];
  EXPECT_TRUE(input.operands.query.requires_grad());
  EXPECT_FALSE(InspectAttention(input).probabilities.own.requires_grad());
}

TEST(InspectionRowsTest, OfDotProductAttentionIsASoftmax) {
  torch::manual_seed(1);
  DotProductAttentionInput input;
  input.query = torch::randn({2, 2, 5, 4});
  input.key = torch::randn({2, 2, 5, 4});
  input.value = torch::randn({2, 2, 5, 3});
  input.pattern =
      CausalPattern({.queries = 5, .keys = 5, .lengths = {{5, 5}, {5, 5}}});
  input.residual.mode = ResidualAttention::kMean;
  input.previous = {.sum = torch::randn({2, 2, 5, 5}), .layers = 1};
  const SoftmaxView view = InspectAttention(input, {.heads = {1}});
  EXPECT_EQ(view.probabilities.own.size(-1), 0);
  const torch::Tensor future =
      torch::ones({5, 5}, torch::kBool).triu(/*diagonal=*/1);
  const torch::Tensor expected =
      torch::softmax(((input.query.matmul(input.key.transpose(-1, -2)) / 2 +
                       *input.previous.sum) /
                      2)
                         .masked_fill(future, -1e30),
                     -1);
  EXPECT_TRUE(
      IsClose(view.probabilities.other, expected.narrow(1, 1, 1), kTolerance));
}

// With a window its keys are own keys, and a row has as many columns.
TEST(InspectionRowsTest, OfDotProductAttentionInAWindow) {
  torch::manual_seed(1);
  DotProductAttentionInput input;
  input.query = torch::randn({1, 2, 6, 4});
  input.key = torch::randn({1, 2, 6, 4});
  input.value = torch::randn({1, 2, 6, 3});
  input.pattern =
      WindowPattern({.queries = 6, .keys = 6, .batch = 1}, {.before = 2});
  const SoftmaxView view = InspectAttention(input);
  EXPECT_EQ(view.probabilities.other.size(-1), 0);
  const torch::Tensor ones = torch::ones({6, 6}, torch::kBool);
  const torch::Tensor hidden = ones.triu(1).logical_or(ones.tril(-3));
  const torch::Tensor expected =
      torch::softmax((input.query.matmul(input.key.transpose(-1, -2)) / 2)
                         .masked_fill(hidden, -1e30),
                     -1);
  EXPECT_TRUE(IsClose(view.probabilities.own,
                      Windows(expected, {.before = 2, .after = 0}),
                      kTolerance));
}

TEST(InspectionRowsTest, RefusesHeadsAndRowsThatAreNotThere) {
  const SparseAttentionInput input =
      LayersOf(ACase(ResidualAttention::kOff), QuerySide::kLong)[0];
  const auto message = [&](const SoftmaxSelection& which) {
    return MessageOf([&] { InspectAttention(input, which); });
  };
  EXPECT_THAT(message({.heads = {3}}), HasSubstr("heads to look at should be "
                                                 "in [0, 3), but one is 3"));
  EXPECT_THAT(message({.heads = {-1}}), HasSubstr("one is -1"));
  EXPECT_THAT(message({.rows = Indices({0, 260})}),
              HasSubstr("rows to look at should be in [0, 260), but are from "
                        "0 to 260"));
  EXPECT_THAT(message({.rows = torch::ones({2})}),
              HasSubstr("should be [R] int64 or int32"));
}

TEST(InspectionRowsTest, RefusesScoresThatTheNextLayerOverwrote) {
  const auto layers =
      LayersOf(ACase(ResidualAttention::kSum), QuerySide::kLong);
  SparseAttentionInput input = layers[0];
  input.residual.storage = ScoreStorage::kReverse;
  const SparseAttentionOutput below = SparseAttention(input);
  input = layers[1];
  input.residual.storage = ScoreStorage::kReverse;
  input.previous = below.scores;
  SparseAttention(input);
  EXPECT_THAT(MessageOf([&] { InspectAttention(input); }),
              HasSubstr("of 1 layers, are gone"));
}

GlobalLocalAttentionOptions Options(int sharing) {
  return {.long_hidden_size = 6,
          .global_hidden_size = 6,
          .num_heads = 2,
          .head_size = 3,
          .local_radius = 2,
          .relative_vocab_size = 8,
          .share_qkv_projections = sharing == 2,
          .share_kv_projections = sharing == 1,
          .dropout = 0.5,
          .initializer_range = 0.5};
}

// new + carried scores of a layer are those that it carries on, and the
// probabilities are the softmax of them.
TEST(InspectionModuleTest, AgreesWithTheScoresThatTheModuleCarries) {
  torch::manual_seed(1);
  const AttentionInputs inputs(std::vector{UnrestrictedPattern(21, 4, 2, 2),
                                           UnrestrictedPattern(9, 3, 2, 2)});
  const torch::Tensor longs = torch::randn({2, 21, 6});
  const torch::Tensor globals = torch::randn({2, 4, 6});
  for (const int sharing : {0, 1, 2}) {
    GlobalLocalAttention attention(Options(sharing));
    CarriedScores carried{.residual = {.mode = ResidualAttention::kMean,
                                       .storage = ScoreStorage::kReverse}};
    for (int64_t layer = 0; layer < 2; ++layer) {
      const AttentionView view =
          attention->Inspect(longs, globals, inputs, carried, {.scores = true});
      const ResidualScores scores =
          attention->forward(longs, globals, inputs, carried).scores;
      const ExplicitInputs masks = inputs.Tensors(2, 21, 4, 2, torch::kCPU);
      const auto expect = [&](torch::Tensor FourBlocks::*block,
                              const torch::Tensor& all,
                              const torch::Tensor& mask) {
        torch::Tensor sum = view.new_scores.*block;
        if (layer > 0) {
          sum = sum + view.carried_scores.*block;
        }
        EXPECT_TRUE(IsClose(sum, all * mask.unsqueeze(1), 1e-5));
      };
      expect(&FourBlocks::g2g, scores.g2g, masks.g2g_mask);
      expect(&FourBlocks::g2l, scores.g2l, masks.g2l_mask);
      expect(&FourBlocks::l2g, scores.l2g, masks.l2g_mask);
      expect(&FourBlocks::l2l, scores.l2l, masks.l2l_mask);
      const torch::Tensor logits =
          (torch::cat({*scores.g2g, *scores.g2l}, -1) / (layer + 1))
              .masked_fill(torch::cat({masks.g2g_mask, masks.g2l_mask}, -1)
                               .logical_not()
                               .unsqueeze(1),
                           -1e30);
      // Row 3 of the second example is padding.
      const torch::Tensor p =
          torch::cat({view.probabilities.g2g, view.probabilities.g2l}, -1);
      EXPECT_TRUE(IsClose(p[0], torch::softmax(logits, -1)[0], kTolerance));
      EXPECT_TRUE(IsClose(p[1].narrow(1, 0, 3),
                          torch::softmax(logits, -1)[1].narrow(1, 0, 3),
                          kTolerance));
      carried.previous = scores;
    }
  }
}

TEST(InspectionModuleTest, ChangesNothingAndDrawsNoRandomNumbers) {
  torch::manual_seed(1);
  GlobalLocalAttention attention(Options(0));
  attention->train();
  const torch::Tensor longs = torch::randn({1, 9, 6});
  const torch::Tensor globals = torch::randn({1, 3, 6});
  const AttentionInputs inputs = AttentionInputs::Everything(2);
  const auto run = [&](bool inspect) {
    torch::manual_seed(2);
    if (inspect) {
      attention->Inspect(longs, globals, inputs);
    }
    return attention->forward(longs, globals, inputs).long_output;
  };
  EXPECT_TRUE(run(true).equal(run(false)));
}

TEST(InspectionModuleTest, AStreamMayBeEmptyOrOfNoRows) {
  torch::manual_seed(1);
  GlobalLocalAttention attention(Options(0));
  const AttentionInputs inputs = AttentionInputs::Everything(2);
  const AttentionView view = attention->Inspect(
      torch::randn({2, 7, 6}), torch::randn({2, 0, 6}), inputs, {},
      {.heads = {1}, .rows = {.longs = Indices({13, 0})}});
  EXPECT_EQ(view.probabilities.l2l.sizes(), at::IntArrayRef({2, 1, 5}));
  EXPECT_EQ(view.probabilities.g2l.sizes(), at::IntArrayRef({2, 1, 0, 7}));
  EXPECT_TRUE(
      IsClose(view.probabilities.l2l.sum(-1), torch::ones({2, 1}), kTolerance));
  const AttentionView no_longs =
      attention->Inspect(torch::randn({2, 7, 6}), torch::randn({2, 3, 6}),
                         inputs, {}, {.rows = {.longs = Indices({})}});
  EXPECT_EQ(no_longs.probabilities.l2g.sizes(), at::IntArrayRef({0, 2, 3}));
  EXPECT_EQ(no_longs.probabilities.g2g.sizes(), at::IntArrayRef({2, 2, 3, 3}));
}

}  // namespace
}  // namespace etc
