// MeasureAttention and GlobalLocalAttention::Measure. The expected numbers come
// from loops over pairs in double, which share no code with the library but the
// masks and ids of the pattern: 3 layers of both sides in all residual modes,
// carried by each backend and storage, of 130 rows (blocks of 64 with windows
// that straddle them) with an example that ends halfway. Counts are exact.
// Means, deviations, correlations of both scores in each head and entropies are
// within 1e-5 and the largest score within
// 1e-5 of its size: float32 scores of at most about 30, whose sums are double.

#include "attention/score_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attention/global_local_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/error_message.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

constexpr double kDecay = 0.6;

AttentionCase StatisticsCase(ResidualAttention mode, bool causal = false) {
  return {.longs = 130,
          .globals = 9,
          .radius = 4,
          .head_dim = 4,
          .value_dim = 4,
          .heads = 3,
          .residual = mode,
          .hard = true,
          .causal = causal};
}

// Layers with gates where the mode has them.
std::vector<SparseAttentionInput> StatisticsLayers(ResidualAttention mode,
                                                   QuerySide side,
                                                   bool causal = false) {
  torch::manual_seed(3);
  const AttentionCase c = StatisticsCase(mode, causal);
  std::vector<SparseAttentionInput> layers =
      AttentionStack(c, side, MakeAttention(c)).layers;
  for (SparseAttentionInput& input : layers) {
    input.residual.decay = kDecay;
    if (mode == ResidualAttention::kGate) {
      input.gates = {.own = torch::rand({c.heads}),
                     .other = torch::rand({c.heads})};
    }
  }
  return layers;
}

// The statistics of each layer by loops, in double.
class PlainStatistics {
 public:
  explicit PlainStatistics(const SparseAttentionInput& first)
      : batch_(first.operands.query.size(0)),
        heads_(first.operands.query.size(1)),
        queries_(first.operands.query.size(2)),
        masks_(first.pattern.masks(torch::kCPU)),
        carried_({Zeros(masks_.own_mask), Zeros(masks_.other_mask)}) {}

  // Pairs of a new and a carried score, those of head h of the own block at h,
  // of the other block at heads + h.
  using Pairs = std::vector<std::vector<std::pair<double, double>>>;

  // Correlation by its definition, with the means taken first.
  static double Correlation(
      const std::vector<std::pair<double, double>>& pairs) {
    const auto count = static_cast<double>(pairs.size());
    double x = 0;
    double y = 0;
    for (const auto& [score, carried] : pairs) {
      x += score / count;
      y += carried / count;
    }
    double xx = 0;
    double yy = 0;
    double xy = 0;
    for (const auto& [score, carried] : pairs) {
      xx += (score - x) * (score - x);
      yy += (carried - y) * (carried - y);
      xy += (score - x) * (carried - y);
    }
    return xy / std::sqrt(xx * yy);
  }

  // Statistics of the next layer, of `rows`; empty: all.
  SoftmaxStatistics Add(const SparseAttentionInput& input,
                        const std::vector<int64_t>& rows) {
    SoftmaxStatistics result;
    pairs_.assign(static_cast<size_t>(2 * heads_), {});
    for (int64_t row = 0; row < batch_ * queries_; ++row) {
      const auto times =
          rows.empty() ? int64_t{1} : std::count(rows.begin(), rows.end(), row);
      for (int64_t head = 0; head < heads_; ++head) {
        AddRow(input, {row / queries_, head, row % queries_}, times, &result);
      }
    }
    ++layers_;
    return result;
  }

  // Moments of the layer that Add saw last; empty lists if nothing is carried.
  const Pairs& pairs() const { return pairs_; }

 private:
  struct Place {
    int64_t example, head, query;
  };

  torch::Tensor Zeros(const torch::Tensor& mask) const {
    return torch::zeros({batch_, heads_, queries_, mask.size(2)},
                        torch::kFloat64);
  }

  double Score(const SparseAttentionInput& input, const Place& at, bool is_own,
               int64_t column) const {
    const AttentionOperands& o = input.operands;
    const int64_t before = input.pattern.window.before;
    const int64_t key_at =
        is_own && before >= 0 ? at.query + column - before : column;
    const auto query =
        o.query.accessor<float, 4>()[at.example][at.head][at.query];
    const auto key = (is_own ? o.own_key : o.other_key)
                         .accessor<float, 4>()[at.example][at.head][key_at];
    const int64_t id =
        (is_own ? masks_.own_ids : masks_.other_ids)
            .accessor<int64_t, 3>()[at.example][at.query][column];
    const auto embedding =
        o.relative.embedding.accessor<float, 3>()[id][at.head];
    double sum = o.relative.bias.accessor<float, 2>()[id][at.head];
    for (int64_t d = 0; d < query.size(0); ++d) {
      sum += double{query[d]} * (double{key[d]} + double{embedding[d]});
    }
    return sum / std::sqrt(static_cast<double>(query.size(0)));
  }

  // a, b and c of attention/residual_attention.h.
  double Logit(const SparseAttentionInput& input, double score, double carried,
               const Place& at, bool is_own) const {
    const auto n = static_cast<double>(layers_);
    switch (input.residual.mode) {
      case ResidualAttention::kOff:
        return score;
      case ResidualAttention::kSum:
        return score + carried;
      case ResidualAttention::kMean:
        return (score + carried) / (n + 1);
      case ResidualAttention::kDecay:
        return (1 - kDecay) * score + std::pow(kDecay, n) * carried;
      case ResidualAttention::kGate:
        return score + (is_own ? input.gates.own : input.gates.other)[at.head]
                               .item<double>() *
                           carried;
    }
    return 0;
  }

  void AddRow(const SparseAttentionInput& input, const Place& at, int64_t times,
              SoftmaxStatistics* result) {
    const bool carries = input.residual.mode != ResidualAttention::kOff;
    const double factor =
        input.residual.mode == ResidualAttention::kDecay
            ? (1 - kDecay) * std::pow(kDecay, -static_cast<double>(layers_))
            : 1;
    std::vector<double> logits;
    for (const bool is_own : {true, false}) {
      const auto mask = (is_own ? masks_.own_mask : masks_.other_mask)
                            .accessor<bool, 3>()[at.example][at.query];
      auto sums = carried_[is_own ? 0 : 1].accessor<double, 4>();
      BlockStatistics& block = is_own ? result->own : result->other;
      for (int64_t column = 0; column < mask.size(0); ++column) {
        if (!mask[column]) {
          continue;
        }
        double& sum = sums[at.example][at.head][at.query][column];
        const double score = Score(input, at, is_own, column);
        logits.push_back(Logit(input, score, sum, at, is_own));
        for (int64_t i = 0; i < times; ++i) {
          Count(score, &block.new_scores);
          if (carries && layers_ > 0) {
            Count(sum, &block.carried_scores);
            pairs_[static_cast<size_t>(at.head + (is_own ? 0 : heads_))]
                .emplace_back(score, sum);
          }
          block.largest_score =
              std::max(block.largest_score,
                       std::abs((carries ? sum : 0.0) + factor * score));
        }
        sum += factor * score;
      }
    }
    if (!logits.empty()) {
      result->entropy.rows += times;
      result->entropy.sum += static_cast<double>(times) * Entropy(logits);
    }
  }

  static void Count(double number, NumberMoments* moments) {
    ++moments->count;
    moments->sum += number;
    moments->sum_of_squares += number * number;
  }

  static double Entropy(const std::vector<double>& logits) {
    const torch::Tensor p =
        torch::softmax(torch::tensor(logits, torch::kFloat64), 0);
    return -(p * p.log()).sum().item<double>();
  }

  const int64_t batch_, heads_, queries_;
  const SoftmaxMasks masks_;
  std::vector<torch::Tensor> carried_;  // own and other
  int64_t layers_ = 0;
  Pairs pairs_;
};

// Long tokens of causal layers see no global ones: a block without pairs.
void ExpectCorrelations(const SoftmaxStatistics& actual, bool carries,
                        const PlainStatistics::Pairs& pairs) {
  const size_t heads = pairs.size() / 2;
  size_t next = 0;
  for (const BlockStatistics* block : {&actual.own, &actual.other}) {
    ASSERT_EQ(block->heads.size(), carries ? heads : 0);
    for (size_t h = 0; carries && h < heads; ++h, ++next) {
      const ScorePairMoments& head = block->heads[h];
      EXPECT_EQ(head.new_scores.count, pairs[next].size());
      ASSERT_EQ(head.correlation().has_value(), !pairs[next].empty());
      if (!pairs[next].empty()) {
        EXPECT_NEAR(*head.correlation(),
                    PlainStatistics::Correlation(pairs[next]), 1e-5);
      }
    }
  }
}

void ExpectMoments(const NumberMoments& actual, const NumberMoments& expected) {
  EXPECT_EQ(actual.count, expected.count);
  EXPECT_NEAR(actual.mean(), expected.mean(), 1e-5);
  EXPECT_NEAR(actual.standard_deviation(), expected.standard_deviation(), 1e-5);
}

void ExpectStatistics(const SoftmaxStatistics& actual,
                      const SoftmaxStatistics& expected) {
  for (const auto block :
       {&SoftmaxStatistics::own, &SoftmaxStatistics::other}) {
    const BlockStatistics& one = actual.*block;
    const BlockStatistics& other = expected.*block;
    ExpectMoments(one.new_scores, other.new_scores);
    ExpectMoments(one.carried_scores, other.carried_scores);
    EXPECT_NEAR(one.largest_score, other.largest_score,
                1e-5 * other.largest_score);
  }
  EXPECT_EQ(actual.entropy.rows, expected.entropy.rows);
  EXPECT_NEAR(actual.entropy.mean(), expected.entropy.mean(), 1e-5);
}

class ScoreStatisticsTest
    : public testing::TestWithParam<
          std::tuple<ResidualAttention, QuerySide, bool>> {};

INSTANTIATE_TEST_SUITE_P(
    AllModes, ScoreStatisticsTest,
    testing::Combine(testing::Values(ResidualAttention::kOff,
                                     ResidualAttention::kSum,
                                     ResidualAttention::kMean,
                                     ResidualAttention::kDecay,
                                     ResidualAttention::kGate),
                     testing::Values(QuerySide::kLong, QuerySide::kGlobal),
                     testing::Bool()));

TEST_P(ScoreStatisticsTest, AreThoseOfLoopsInDouble) {
  const auto [mode, side, causal] = GetParam();
  const auto layers = StatisticsLayers(mode, side, causal);
  const int64_t rows = 2 * layers[0].pattern.queries;
  // Unordered rows, one twice, the last two of the example that has ended.
  const std::vector<int64_t> some = {rows / 2 + 1, 3, rows - 1, 0, 3, rows - 2};
  PlainStatistics plain_all(layers[0]);
  PlainStatistics plain_some(layers[0]);
  std::vector<SoftmaxStatistics> of_all;
  std::vector<SoftmaxStatistics> of_some;
  std::vector<PlainStatistics::Pairs> pairs_of_all;
  std::vector<PlainStatistics::Pairs> pairs_of_some;
  for (const SparseAttentionInput& layer : layers) {
    of_all.push_back(plain_all.Add(layer, {}));
    of_some.push_back(plain_some.Add(layer, some));
    pairs_of_all.push_back(plain_all.pairs());
    pairs_of_some.push_back(plain_some.pairs());
  }
  EXPECT_LT(of_all[0].entropy.rows, 3 * rows);  // padding
  EXPECT_GT(of_all[0].own.new_scores.count, 0);
  EXPECT_GT(of_all[0].other.new_scores.count, 0);
  EXPECT_GT(of_some[0].own.new_scores.count, 0);
  for (const auto implementation :
       {AttentionImplementation::kReference, AttentionImplementation::kBlocked,
        AttentionImplementation::kKernel}) {
    for (const ScoreStorage storage :
         {ScoreStorage::kStore, ScoreStorage::kReverse,
          ScoreStorage::kRecompute}) {
      SparseAttentionOutput below;
      for (size_t n = 0; n < layers.size(); ++n) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(implementation) << ", "
                     << static_cast<int>(storage) << ", layer " << n);
        SparseAttentionInput input = layers[n];
        input.previous = below.scores;
        input.residual.storage = storage;
        const SoftmaxStatistics all_rows = MeasureAttention(input);
        ExpectStatistics(all_rows, of_all[n]);
        ExpectCorrelations(all_rows, input.previous.defined(), pairs_of_all[n]);
        const SoftmaxStatistics some_rows =
            MeasureAttention(input, torch::tensor(some, torch::kInt64));
        ExpectStatistics(some_rows, of_some[n]);
        ExpectCorrelations(some_rows, input.previous.defined(),
                           pairs_of_some[n]);
        below = SparseAttention(input, implementation);
      }
    }
  }
}

// Three pairs by hand, and scores that are all the same.
TEST(ScorePairMomentsTest, HaveACorrelationWhereBothVary) {
  const auto moments = [](const std::vector<std::pair<double, double>>& pairs) {
    ScorePairMoments all;
    for (const auto& [score, carried] : pairs) {
      ++all.new_scores.count;
      ++all.carried_scores.count;
      all.new_scores.sum += score;
      all.new_scores.sum_of_squares += score * score;
      all.carried_scores.sum += carried;
      all.carried_scores.sum_of_squares += carried * carried;
      all.sum_of_products += score * carried;
    }
    return all;
  };
  EXPECT_NEAR(*moments({{1, 2}, {2, 2}, {3, 5}}).correlation(), std::sqrt(0.75),
              1e-12);
  EXPECT_NEAR(*moments({{1, -2}, {3, -6}}).correlation(), -1, 1e-12);
  EXPECT_FALSE(moments({}).correlation().has_value());
  EXPECT_FALSE(moments({{1, 2}}).correlation().has_value());
  // A third is no number of binary digits.
  const std::vector<std::pair<double, double>> equal(1000, {1.0 / 3, 0.1});
  EXPECT_FALSE(moments(equal).correlation().has_value());
}

TEST(ScoreStatisticsRowsTest, NoRowsAndRowsThatAreNotThere) {
  const SparseAttentionInput input =
      StatisticsLayers(ResidualAttention::kSum, QuerySide::kLong)[0];
  const SoftmaxStatistics none =
      MeasureAttention(input, torch::zeros({0}, torch::kInt64));
  EXPECT_EQ(none.own.new_scores.count, 0);
  EXPECT_EQ(none.own.new_scores.standard_deviation(), 0);
  EXPECT_EQ(none.own.largest_score, 0);
  EXPECT_EQ(none.entropy.mean(), 0);
  EXPECT_THAT(MessageOf([&] {
                MeasureAttention(input, torch::tensor({260}, torch::kInt64));
              }),
              HasSubstr("rows to look at should be in [0, 260)"));
}

// Equal scores: an entropy of ln(keys), and no deviation. One score far above
// all others: none.
TEST(ScoreStatisticsRowsTest, EntropyIsInNats) {
  SparseAttentionInput input =
      StatisticsLayers(ResidualAttention::kOff, QuerySide::kGlobal)[0];
  input.pattern = AttentionInputs().Softmax(QuerySide::kGlobal, 2, 130, 9, 4);
  input.operands.relative = {};
  input.operands.query.zero_();
  SoftmaxStatistics statistics = MeasureAttention(input);
  EXPECT_NEAR(statistics.entropy.mean(), std::log(139.0), 1e-5);
  EXPECT_EQ(statistics.own.new_scores.standard_deviation(), 0);
  input.operands.query.fill_(1);
  input.operands.own_key.zero_();
  input.operands.other_key.zero_();
  input.operands.own_key.select(2, 4).fill_(1000);
  statistics = MeasureAttention(input);
  EXPECT_EQ(statistics.entropy.mean(), 0);
  EXPECT_EQ(statistics.own.largest_score, 2000);  // 4 * 1000 / sqrt(4)
  EXPECT_EQ(statistics.other.largest_score, 0);
}

// Blocks are those of Inspect; without long tokens there is g2g alone.
TEST(ScoreStatisticsRowsTest, OfAModuleAreThoseOfItsScores) {
  torch::manual_seed(1);
  for (const bool has_longs : {true, false}) {
    GlobalLocalAttention attention(
        GlobalLocalAttentionOptions{.long_hidden_size = 6,
                                    .global_hidden_size = 6,
                                    .num_heads = 2,
                                    .head_size = 3,
                                    .local_radius = 2,
                                    .relative_vocab_size = 8,
                                    .has_long_tokens = has_longs,
                                    .share_output_projection = true,
                                    .initializer_range = 0.5});
    const int64_t length = has_longs ? 21 : 0;
    const AttentionInputs inputs(
        std::vector{UnrestrictedPattern(length, 4, 2, 2)});
    const torch::Tensor longs = torch::randn({1, length, 6});
    const torch::Tensor globals = torch::randn({1, 4, 6});
    const CarriedScores carried{.residual = {.mode = ResidualAttention::kSum}};
    const OutputRows rows = {.globals = torch::tensor({2, 0}, torch::kInt64)};
    const LayerStatistics statistics =
        attention->Measure(longs, globals, inputs, carried, rows);
    const FourBlocks scores = attention
                                  ->Inspect(longs, globals, inputs, carried,
                                            {.rows = rows, .scores = true})
                                  .new_scores;
    const auto expect = [](const BlockStatistics& block,
                           const torch::Tensor& all, int64_t pairs) {
      EXPECT_EQ(block.new_scores.count, pairs);
      EXPECT_NEAR(block.new_scores.sum, all.sum().item<double>(), 1e-4);
      EXPECT_NEAR(block.largest_score,
                  all.numel() == 0 ? 0 : all.abs().max().item<double>(), 1e-6);
    };
    const int64_t heads = 2;
    expect(statistics.g2g, scores.g2g, heads * 2 * 4);
    expect(statistics.g2l, scores.g2l, heads * 2 * length);
    expect(statistics.l2g, scores.l2g, heads * length * 4);
    // Windows of 5, of which the ends lack 2, 1, 1 and 2.
    expect(statistics.l2l, scores.l2l, has_longs ? heads * (21 * 5 - 6) : 0);
    EXPECT_EQ(statistics.long_entropy.rows, heads * length);
    EXPECT_EQ(statistics.global_entropy.rows, heads * 2);
    EXPECT_EQ(
        statistics.largest_score(),
        std::max({statistics.g2g.largest_score, statistics.g2l.largest_score,
                  statistics.l2g.largest_score, statistics.l2l.largest_score}));
  }
}

}  // namespace
}  // namespace etc
