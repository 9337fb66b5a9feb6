// AttentionPass over encoders with random weights, ETC and BERT, without and
// with residual scores: by the kernels in float32, in one slice and in many,
// against the definitions (distribution.h) of the weights that the reference
// backend gives in float64. Two examples, the second shorter, so that padding
// must be left out; distance 2 and radius 2 of toy models. Tolerance 2e-5:
// weights to 1e-6, times |ln p| below 15. Also the mean entropy against that of
// attention/score_statistics.h, whose definition is another one.

#include "tasks/analysis/pass.h"

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/toy_model.h"

namespace etc {
namespace {

constexpr double kNear = 2e-5;
constexpr int64_t kPassLayers = 3;

EtcModel PassModel(bool bert, const std::string& residual) {
  EtcConfig config = bert ? ToyBertConfig(/*positions=*/9) : ToyConfig();
  config.num_hidden_layers = kPassLayers;
  config.initializer_range = 0.8;
  config.residual_attention = residual;
  config.residual_gate_init = 0.5;
  torch::manual_seed(3);
  EtcModel model(config);
  model->eval();
  return model;
}

// Long and global lengths of both examples.
struct PassLengths {
  std::vector<int64_t> longs;
  std::vector<int64_t> globals;
};

PassLengths LengthsOfPass(bool bert) {
  return bert ? PassLengths{{0, 0}, {9, 5}} : PassLengths{{8, 5}, {3, 1}};
}

EtcInput PassInput(bool bert) {
  const PassLengths lengths = LengthsOfPass(bert);
  const int64_t longs = lengths.longs[0];
  const int64_t globals = lengths.globals[0];
  const auto ids = [](int64_t length) {
    return torch::arange(2 * length).remainder(11).reshape({2, length});
  };
  EtcInput input;
  input.token_ids = ids(longs);
  input.global_token_ids = ids(globals);
  const int64_t distance = bert ? 0 : 2;
  std::vector<AttentionPattern> patterns;
  for (size_t b = 0; b < 2; ++b) {
    patterns.push_back(UnrestrictedPattern(lengths.longs[b], lengths.globals[b],
                                           /*local_radius=*/2, distance));
  }
  // A border within the window of the first example.
  for (size_t i = 6; i < patterns[0].long_segment.size(); ++i) {
    patterns[0].long_segment[i] = 1;
  }
  input.attention = AttentionInputs(patterns);
  return input;
}

AttentionPassOptions PassOptions(bool bert) {
  const PassLengths lengths = LengthsOfPass(bert);
  return {.max_long_length = lengths.longs[0],
          .max_global_length = lengths.globals[0]};
}

using Numbers = std::vector<double>;

// One row of both blocks, [own + other keys].
Numbers WeightsOf(const torch::Tensor& own, const torch::Tensor& other,
                  int64_t b, int64_t head, int64_t row) {
  const torch::Tensor p =
      torch::cat({own[b][head][row], other[b][head][row]}).contiguous();
  return {p.data_ptr<double>(), p.data_ptr<double>() + p.numel()};
}

// The definitions over all rows of one head.
struct ExpectedHead {
  Numbers entropy, normalised, own_mass, divergence;
  Numbers by_offset;
  double top_1 = 0;
  double own_entropy = 0;
  double other_entropy = 0;
};

ExpectedHead Expected(const Inspected& inspected, bool is_long, int64_t layer,
                      int64_t head, const std::vector<int64_t>& lengths) {
  const auto blocks = [&](int64_t l) {
    const FourBlocks& p = inspected.layers.at(l).probabilities;
    return is_long ? std::tuple(p.l2l, p.l2g) : std::tuple(p.g2g, p.g2l);
  };
  const auto [own, other] = blocks(layer);
  ExpectedHead expected;
  const int64_t keys = own.size(3);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < lengths[static_cast<size_t>(b)]; ++i) {
      const Numbers p = WeightsOf(own, other, b, head, i);
      const auto visible =
          static_cast<int64_t>(p.size()) - std::count(p.begin(), p.end(), 0.0);
      const auto span = absl::MakeConstSpan(p);
      const BlockEntropy split =
          SplitEntropy(span.subspan(0, static_cast<size_t>(keys)),
                       span.subspan(static_cast<size_t>(keys)));
      expected.entropy.push_back(Entropy(p));
      expected.normalised.push_back(NormalisedEntropy(Entropy(p), visible));
      expected.own_mass.push_back(split.own_mass);
      expected.own_entropy += split.own;
      expected.other_entropy += split.other;
      expected.top_1 += *std::max_element(p.begin(), p.end());
      const int64_t radius = is_long ? 2 : keys - 1;
      expected.by_offset.resize(static_cast<size_t>(2 * radius + 1), 0.0);
      for (int64_t k = 0; k < keys; ++k) {
        const int64_t offset = is_long ? k - radius : k - i;
        expected.by_offset[static_cast<size_t>(offset + radius)] +=
            p[static_cast<size_t>(k)];
      }
      if (layer > 0) {
        const auto [own_below, other_below] = blocks(layer - 1);
        expected.divergence.push_back(
            JensenShannon(p, WeightsOf(own_below, other_below, b, head, i)));
      }
    }
  }
  return expected;
}

void ExpectNear(const StreamingHistogram& actual, const Numbers& expected) {
  StreamingHistogram whole(actual.lo(), actual.hi());
  for (const double number : expected) {
    whole.Add(number);
  }
  EXPECT_EQ(actual.count(), whole.count());
  EXPECT_NEAR(actual.mean(), whole.mean(), kNear);
  EXPECT_NEAR(actual.standard_deviation(), whole.standard_deviation(), kNear);
  EXPECT_NEAR(actual.least(), whole.least(), kNear);
  EXPECT_NEAR(actual.greatest(), whole.greatest(), kNear);
}

class PassTest
    : public testing::TestWithParam<std::tuple<bool, std::string, int64_t>> {};

TEST_P(PassTest, MatchesTheDefinitionsOfTheReference) {
  const auto [bert, residual, slice_bytes] = GetParam();
  const EtcModel model = PassModel(bert, residual);
  AttentionPassOptions options = PassOptions(bert);
  options.slice_bytes = slice_bytes;
  AttentionPass pass(model, options);
  ASSERT_TRUE(pass.Add(PassInput(bert), 0).ok());

  const c10::InferenceMode no_gradients;
  EtcModel exact(std::dynamic_pointer_cast<EtcModelImpl>(model->clone()));
  exact->to(torch::kFloat64);
  exact->set_attention_implementation(AttentionImplementation::kReference);
  EtcInput input = PassInput(bert);
  input.inspect.probabilities_of = {0, 1, 2};
  const Inspected inspected = exact(input).inspected;
  const PassLengths lengths = LengthsOfPass(bert);
  ASSERT_EQ(pass.populations().size(), bert ? 1u : 2u);
  for (const PopulationStatistics& population : pass.populations()) {
    const bool is_long = population.name == "long";
    const std::vector<int64_t>& rows =
        is_long ? lengths.longs : lengths.globals;
    EXPECT_EQ(population.rows, rows[0] + rows[1]);
    for (int64_t layer = 0; layer < kPassLayers; ++layer) {
      for (int64_t head = 0; head < 2; ++head) {
        SCOPED_TRACE(testing::Message() << population.name << ", layer "
                                        << layer << ", head " << head);
        const HeadStatistics& actual =
            population
                .heads[static_cast<size_t>(layer)][static_cast<size_t>(head)];
        const ExpectedHead expected =
            Expected(inspected, is_long, layer, head, rows);
        ExpectNear(actual.entropy, expected.entropy);
        ExpectNear(actual.normalised, expected.normalised);
        ExpectNear(actual.own_mass, expected.own_mass);
        const double slack = kNear * static_cast<double>(population.rows);
        EXPECT_NEAR(actual.sums.top_1, expected.top_1, slack);
        EXPECT_NEAR(actual.sums.own_entropy, expected.own_entropy, slack);
        EXPECT_NEAR(actual.sums.other_entropy, expected.other_entropy, slack);
        if (population.radius > 0) {
          EXPECT_THAT(actual.sums.by_offset,
                      testing::Pointwise(testing::DoubleNear(slack),
                                         expected.by_offset));
        }
        if (layer > 0) {
          ExpectNear(population.divergence[static_cast<size_t>(layer - 1)]
                                          [static_cast<size_t>(head)],
                     expected.divergence);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PassTest,
    testing::Combine(testing::Bool(),
                     testing::Values("off", "sum", "mean", "gate"),
                     testing::Values(int64_t{1} << 28, int64_t{700})));

TEST(AttentionPassTest, AgreesWithScoreStatistics) {
  EtcModel model = PassModel(/*bert=*/false, "sum");
  AttentionPass pass(model, PassOptions(/*bert=*/false));
  ASSERT_TRUE(pass.Add(PassInput(/*bert=*/false), 0).ok());
  const c10::InferenceMode no_gradients;
  model->set_statistics_rows(100);
  model(PassInput(/*bert=*/false));
  const std::vector<LayerStatistics> layers = model->TakeStatistics();
  ASSERT_EQ(layers.size(), 3u);
  const std::vector<std::vector<ScoreDeviations>> scores = pass.Scores();
  ASSERT_EQ(scores.size(), 3u);
  for (size_t l = 0; l < 3; ++l) {
    double mean = 0;
    for (const HeadStatistics& head : pass.populations().front().heads[l]) {
      mean += head.entropy.mean() / 2;
    }
    EXPECT_NEAR(mean, layers[l].long_entropy.mean(), kNear);
    ASSERT_EQ(scores[l].size(), 4u);
    EXPECT_EQ(scores[l][0].block, "l2l");
    EXPECT_NEAR(scores[l][0].new_scores,
                layers[l].l2l.new_scores.standard_deviation(), 1e-12);
    EXPECT_NEAR(scores[l][0].carried_scores,
                layers[l].l2l.carried_scores.standard_deviation(), 1e-12);
    EXPECT_EQ(scores[l][0].carried_scores > 0, l > 0);
  }
}

// A token that sees itself alone, and rows drawn by a seed.
TEST(AttentionPassTest, CountsSingleKeysAndDrawsRows) {
  EtcInput input = PassInput(/*bert=*/false);
  AttentionPattern lonely = UnrestrictedPattern(8, 3, 2, 2);
  lonely.global_example[2] = 7;
  input.attention =
      AttentionInputs(std::vector{lonely, UnrestrictedPattern(8, 3, 2, 2)});
  AttentionPassOptions options = PassOptions(/*bert=*/false);
  AttentionPass all(PassModel(/*bert=*/false, "off"), options);
  ASSERT_TRUE(all.Add(input, 0).ok());
  EXPECT_EQ(all.populations().back().rows, 5);
  EXPECT_EQ(all.populations().back().rows_single_key, 1);
  EXPECT_EQ(all.populations().back().heads[2][1].entropy.count(), 5);
  options.max_rows = 2;
  Numbers means;
  for (const uint64_t seed : {1u, 1u, 2u}) {
    options.seed = seed;
    AttentionPass some(PassModel(/*bert=*/false, "off"), options);
    ASSERT_TRUE(some.Add(input, 0).ok());
    EXPECT_EQ(some.populations().front().rows, 4);
    means.push_back(some.populations().front().heads[0][0].entropy.mean());
  }
  EXPECT_EQ(means[0], means[1]);
  EXPECT_NE(means[0], means[2]);
}

TEST(AttentionPassTest, RefusesWeightsThatAreNoNumbers) {
  EtcModel model = PassModel(/*bert=*/true, "off");
  {
    const torch::NoGradGuard no_gradients;
    model->token_embedding_table()[3].fill_(
        std::numeric_limits<float>::quiet_NaN());
  }
  AttentionPass pass(model, PassOptions(/*bert=*/true));
  const absl::Status status = pass.Add(PassInput(/*bert=*/true), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("should have weights that sum to 1"));
}

}  // namespace
}  // namespace etc
