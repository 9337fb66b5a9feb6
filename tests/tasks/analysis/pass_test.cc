// AttentionPass over encoders with random weights, ETC and BERT, without and
// with residual scores: by the kernels in float32, in one slice and in many,
// against the definitions (definitions.h) of the weights that the reference
// backend gives in float64. Two examples, the second shorter, so that padding
// must be left out; distance 2 and radius 2 of toy models. Tolerance 2e-5:
// weights to 1e-6, times |ln p| below 15. Keys of the own sentence, kinds of
// keys and classes of rows are found by loops over all pairs there. Also the
// mean entropy against that of attention/score_statistics.h, and the
// correlation of carried and new scores and their ratio in the logits against
// their definitions in double, to 1e-5.

#include "tasks/analysis/pass.h"

#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop_guard.h"
#include "tests/support/toy_model.h"
#include "tests/tasks/analysis/definitions.h"

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

// The global tokens of long ones; a sentence of the second example has a gap.
std::vector<std::vector<int32_t>> SentencesOfPass() {
  return {{0, 0, 1, 1, 1, -1, 2, 2}, {0, 0, 0, -1, 0}};
}

// A global token of id 2 is a candidate, a long one is not.
std::vector<KeyKind> KindsOfPass() {
  return {{.name = "candidate", .id = 2, .globals_only = true},
          {.name = "[CLS]", .id = 2},
          {.name = "[SEP]", .id = 5}};
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
  if (!bert) {
    for (size_t b = 0; b < 2; ++b) {
      patterns[b].sentence = SentencesOfPass()[b];
    }
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
          .max_global_length = lengths.globals[0],
          .kinds = KindsOfPass()};
}

using Numbers = std::vector<double>;

// One row of both blocks, [own + other keys].
Numbers WeightsOf(const torch::Tensor& own, const torch::Tensor& other,
                  int64_t b, int64_t head, int64_t row) {
  const torch::Tensor p =
      torch::cat({own[b][head][row], other[b][head][row]}).contiguous();
  return {p.data_ptr<double>(), p.data_ptr<double>() + p.numel()};
}

// The keys of one row, by loops over all tokens.
struct PlainRow {
  EtcInput input;
  bool bert = false;
  bool is_long = false;
  int64_t example = 0;
  int64_t query = 0;
  int64_t own_keys = 0;

  // The token that column `k` of both blocks is of, and whether it is global;
  // -1 beyond the ends.
  std::pair<int64_t, bool> Key(int64_t k) const {
    if (k >= own_keys) {
      return {k - own_keys, is_long};
    }
    if (!is_long) {
      return {k, true};
    }
    const int64_t key = query + k - 2;
    return {key < input.token_ids.size(1) ? key : -1, false};
  }
  // The index of its kind, -1: none.
  int64_t Kind(int64_t k) const {
    const auto [token, is_global] = Key(k);
    if (token < 0) {
      return -1;
    }
    const auto id =
        (is_global ? input.global_token_ids : input.token_ids)[example][token]
            .item<int64_t>();
    return id == 5 ? 2 : (id == 2 ? (is_global ? 0 : 1) : -1);
  }
  bool IsLinked(int64_t k) const {
    const auto [token, is_global] = Key(k);
    if (bert || is_long != is_global) {
      return false;
    }
    const std::vector<int32_t> sentences =
        SentencesOfPass()[static_cast<size_t>(example)];
    const int64_t longs = is_long ? query : token;
    return longs < static_cast<int64_t>(sentences.size()) &&
           sentences[static_cast<size_t>(longs)] == (is_long ? token : query);
  }
  // Tokens of the row's sentence, 0: it has none.
  int64_t SentenceSize() const {
    const std::vector<int32_t> sentences =
        SentencesOfPass()[static_cast<size_t>(example)];
    const int32_t own = sentences[static_cast<size_t>(query)];
    return own < 0 ? 0 : std::count(sentences.begin(), sentences.end(), own);
  }
};

// Sums over rows of what a head gives to linked keys and to each kind, and
// their shares of the visible keys.
struct PlainMasses {
  double linked = 0, linked_share = 0;
  int64_t rows_linked = 0;
  Numbers kinds = Numbers(3, 0.0), kind_share = Numbers(3, 0.0);

  void Add(const PlainRow& row, const Numbers& p) {
    const auto visible =
        static_cast<double>(p.size()) -
        static_cast<double>(std::count(p.begin(), p.end(), 0.0));
    bool any_linked = false;
    for (size_t k = 0; k < p.size(); ++k) {
      const auto column = static_cast<int64_t>(k);
      const double share = p[k] > 0 ? 1 / visible : 0;
      if (row.IsLinked(column)) {
        linked += p[k];
        linked_share += share;
        any_linked = any_linked || p[k] > 0;
      }
      if (const int64_t kind = row.Kind(column); kind >= 0) {
        kinds[static_cast<size_t>(kind)] += p[k];
        kind_share[static_cast<size_t>(kind)] += share;
      }
    }
    rows_linked += any_linked ? 1 : 0;
  }
};

// The definitions over all rows of one head.
struct ExpectedHead {
  Numbers entropy, normalised, own_mass, divergence;
  Numbers by_offset;
  double top_1 = 0;
  double own_entropy = 0;
  double other_entropy = 0;
  PlainMasses masses;
  Numbers by_position = Numbers(kPositionClasses, 0.0);
  Numbers by_sentence = Numbers(kSentenceClasses, 0.0);
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
      expected.normalised.push_back(Entropy(p) /
                                    std::log(static_cast<double>(visible)));
      expected.own_mass.push_back(split.own_mass);
      expected.own_entropy += split.own;
      expected.other_entropy += split.other;
      expected.top_1 += *std::max_element(p.begin(), p.end());
      const bool bert = inspected.layers.at(0).probabilities.g2l.size(3) == 0;
      const PlainRow row = {.input = PassInput(bert),
                            .bert = bert,
                            .is_long = is_long,
                            .example = b,
                            .query = i,
                            .own_keys = keys};
      expected.masses.Add(row, p);
      expected.by_position[static_cast<size_t>(
          20 * i / lengths[static_cast<size_t>(b)])] += Entropy(p);
      if (is_long && row.SentenceSize() > 0) {
        expected.by_sentence[static_cast<size_t>(
            std::floor(std::log2(row.SentenceSize())))] += Entropy(p);
      }
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

// Masses, and entropy by classes of rows.
void ExpectSums(const PopulationStatistics& population, const RowSums& actual,
                const ExpectedHead& expected, double slack) {
  const PlainMasses& masses = expected.masses;
  EXPECT_NEAR(actual.linked_mass, masses.linked, slack);
  EXPECT_EQ(population.rows_linked, masses.rows_linked);
  EXPECT_NEAR(population.linked_share, masses.linked_share, 1e-9);
  EXPECT_THAT(actual.kind_mass,
              testing::Pointwise(testing::DoubleNear(slack), masses.kinds));
  EXPECT_THAT(population.kind_share,
              testing::Pointwise(testing::DoubleNear(1e-9), masses.kind_share));
  if (population.name == "global") {
    EXPECT_TRUE(actual.entropy_by_position.empty());
    return;
  }
  EXPECT_THAT(
      actual.entropy_by_position,
      testing::Pointwise(testing::DoubleNear(slack), expected.by_position));
  if (population.name == "long") {
    EXPECT_THAT(
        actual.entropy_by_sentence,
        testing::Pointwise(testing::DoubleNear(slack), expected.by_sentence));
  }
}

// Divergence of heads i and j of neighbouring layers over all rows of both
// examples, of which there are fewer than are sampled.
double ExpectedSimilarity(const Inspected& inspected, bool is_long,
                          int64_t layer, int64_t i, int64_t j,
                          const std::vector<int64_t>& lengths) {
  const auto weights = [&](int64_t l, int64_t b, int64_t head, int64_t row) {
    const FourBlocks& p = inspected.layers.at(l).probabilities;
    return is_long ? WeightsOf(p.l2l, p.l2g, b, head, row)
                   : WeightsOf(p.g2g, p.g2l, b, head, row);
  };
  double sum = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t row = 0; row < lengths[static_cast<size_t>(b)]; ++row) {
      sum += JensenShannon(weights(layer + 1, b, i, row),
                           weights(layer, b, j, row));
    }
  }
  return sum / static_cast<double>(lengths[0] + lengths[1]);
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

// Weights and scores of all layers on PassInput, by the reference in double.
Inspected ExactlyInspected(const EtcModel& model, bool bert) {
  const c10::InferenceMode no_gradients;
  EtcModel exact(std::dynamic_pointer_cast<EtcModelImpl>(model->clone()));
  exact->to(torch::kFloat64);
  exact->set_attention_implementation(AttentionImplementation::kReference);
  EtcInput input = PassInput(bert);
  input.inspect.probabilities_of = {0, 1, 2};
  input.inspect.scores_of = {0, 1, 2};
  return exact(input).inspected;
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
  const Inspected inspected = ExactlyInspected(model, bert);
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
        ExpectSums(population, actual.sums, expected, slack);
        for (int64_t j = 0; layer > 0 && j < 2; ++j) {
          EXPECT_NEAR(
              MeanSimilarity(population, static_cast<size_t>(layer - 1),
                             static_cast<size_t>(head), static_cast<size_t>(j)),
              ExpectedSimilarity(inspected, is_long, layer - 1, head, j, rows),
              kNear);
        }
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
    ASSERT_EQ(scores[l][0].carried_scores.has_value(), l > 0);
    EXPECT_NEAR(scores[l][0].carried_scores.value_or(0),
                layers[l].l2l.carried_scores.standard_deviation(), 1e-12);
  }
}

// Pearson's correlation by its definition, with the means taken first.
double Correlation(const torch::Tensor& x, const torch::Tensor& y) {
  const torch::Tensor dx = x - x.mean();
  const torch::Tensor dy = y - y.mean();
  return ((dx * dy).sum() / (dx.square().sum() * dy.square().sum()).sqrt())
      .item<double>();
}

torch::Tensor BlockNamed(const FourBlocks& blocks, const std::string& name) {
  return name == "l2l"   ? blocks.l2l
         : name == "l2g" ? blocks.l2g
         : name == "g2g" ? blocks.g2g
                         : blocks.g2l;
}

// Gates that differ by head and layer, some of them negative.
void SetGates(const EtcModel& model) {
  const torch::NoGradGuard no_gradients;
  double next = -0.3;
  for (auto& parameter : model->named_parameters()) {
    if (parameter.key().ends_with("_gate")) {
      for (int64_t head = 0; head < parameter.value().size(0); ++head) {
        parameter.value()[head] = next;
        next = next > 0.8 ? -0.3 : next + 0.17;
      }
    }
  }
}

// The parts a s and b S of the logits of one block of `layer`, from its scores,
// [B, N, rows, keys] (attention/residual_attention.h).
std::pair<torch::Tensor, torch::Tensor> LogitParts(const EtcModel& model,
                                                   const AttentionView& view,
                                                   size_t layer,
                                                   const std::string& block) {
  const torch::Tensor own = BlockNamed(view.new_scores, block);
  const torch::Tensor carried = BlockNamed(view.carried_scores, block);
  const std::string residual = model->config().residual_attention;
  const auto n = static_cast<double>(layer);
  if (residual == "mean") {
    return {own / (n + 1), carried / (n + 1)};
  }
  if (residual == "decay") {
    const double beta = model->config().residual_decay;
    return {(1 - beta) * own, std::pow(beta, n) * carried};
  }
  if (residual == "gate") {
    const torch::Tensor gates =
        model
            ->named_parameters()[absl::StrCat("layers.", layer, ".attention.",
                                              block, "_gate")]
            .detach()
            .to(torch::kFloat64);
    return {own, gates.reshape({1, -1, 1, 1}) * carried};
  }
  return {own, carried};
}

// Expects that p, of visible pairs above 0, are a softmax of the logits up to a
// factor of each row, so that the logits are those that the model computes.
void ExpectSoftmaxOf(const torch::Tensor& logits, const torch::Tensor& p) {
  const torch::Tensor sees = p > 0;
  const torch::Tensor rest = p.log() - logits;  // a number for each row
  const torch::Tensor least =
      rest.masked_fill(~sees, std::numeric_limits<double>::infinity()).amin(-1);
  const torch::Tensor greatest =
      rest.masked_fill(~sees, -std::numeric_limits<double>::infinity())
          .amax(-1);
  EXPECT_LT((greatest - least).masked_select(sees.any(-1)).max().item<double>(),
            1e-9);
}

class CarriedScoresTest
    : public testing::TestWithParam<std::tuple<bool, std::string>> {};

// Over all visible pairs, since there are fewer rows than are measured; of two
// batches together.
TEST_P(CarriedScoresTest, AreThoseOfTheReferenceInDouble) {
  const auto [bert, residual] = GetParam();
  const EtcModel model = PassModel(bert, residual);
  SetGates(model);
  AttentionPass pass(model, PassOptions(bert));
  ASSERT_TRUE(pass.Add(PassInput(bert), 0).ok());
  ASSERT_TRUE(pass.Add(PassInput(bert), 2).ok());
  const c10::InferenceMode no_gradients;
  const Inspected inspected = ExactlyInspected(model, bert);
  const std::vector<std::vector<ScoreDeviations>> scores = pass.Scores();
  ASSERT_EQ(scores.size(), 3u);
  for (size_t l = 0; l < 3; ++l) {
    ASSERT_EQ(scores[l].size(), bert ? 1u : 4u);
    const AttentionView& view = inspected.layers.at(static_cast<int64_t>(l));
    for (const ScoreDeviations& block : scores[l]) {
      SCOPED_TRACE(testing::Message() << "layer " << l << ", " << block.block);
      if (l == 0 || residual == "off") {
        EXPECT_FALSE(block.carried_scores.has_value());
        EXPECT_FALSE(block.logit_ratio.has_value());
        EXPECT_TRUE(block.correlations.empty());
        continue;
      }
      const torch::Tensor p = BlockNamed(view.probabilities, block.block);
      const auto [own, carried] = LogitParts(model, view, l, block.block);
      ExpectSoftmaxOf(own + carried, p);
      const auto deviation = [&](const torch::Tensor& part) {
        return part.masked_select(p > 0).std(/*unbiased=*/false).item<double>();
      };
      const double ratio = deviation(carried) / deviation(own);
      ASSERT_TRUE(block.logit_ratio.has_value());
      EXPECT_NEAR(*block.logit_ratio, ratio, 1e-5 * std::max(1.0, ratio));
      ASSERT_EQ(block.correlations.size(), 2u);
      for (int64_t head = 0; head < 2; ++head) {
        const auto visible = [&](const FourBlocks& blocks) {
          return BlockNamed(blocks, block.block)
              .select(1, head)
              .masked_select(p.select(1, head) > 0);
        };
        const std::optional<double>& actual =
            block.correlations[static_cast<size_t>(head)];
        ASSERT_TRUE(actual.has_value());
        EXPECT_NEAR(
            *actual,
            Correlation(visible(view.new_scores), visible(view.carried_scores)),
            1e-5);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CarriedScoresTest,
                         testing::Combine(testing::Bool(),
                                          testing::Values("off", "sum", "mean",
                                                          "decay", "gate")));

// Time and memory of long documents depend on it: slices of rows do not run the
// encoder again.
TEST(AttentionPassTest, RunsTheEncoderOnceForAllSlices) {
  static std::vector<int> embeddings;  // calls in each pass
  embeddings.clear();
  AttentionPassOptions options = PassOptions(/*bert=*/false);
  for (const int64_t slice_bytes : {int64_t{1} << 28, int64_t{1}}) {
    options.slice_bytes = slice_bytes;
    AttentionPass pass(PassModel(/*bert=*/false, "sum"), options);
    embeddings.push_back(0);
    const at::CallbackHandle handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
          embeddings.back() +=
              function.name() == std::string("aten::embedding") ? 1 : 0;
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
    const absl::Status status = pass.Add(PassInput(/*bert=*/false), 0);
    at::removeCallback(handle);
    ASSERT_TRUE(status.ok());
  }
  EXPECT_GT(embeddings[0], 0);
  EXPECT_EQ(embeddings[0], embeddings[1]);
}

TEST(AttentionPassTest, LeavesAnEncoderThatIsStoppedWithoutStatistics) {
  EtcModel model = PassModel(/*bert=*/false, "sum");
  AttentionPass pass(model, PassOptions(/*bert=*/false));
  const std::atomic<bool> stop = true;
  {
    const StopGuard guard(&stop);
    EXPECT_THROW(static_cast<void>(pass.Add(PassInput(/*bert=*/false), 0)),
                 Stopped);
  }
  const c10::InferenceMode no_gradients;
  model(PassInput(/*bert=*/false));
  EXPECT_TRUE(model->TakeStatistics().empty());
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

// The rows of the similarity do not depend on how an example is sliced.
TEST(AttentionPassTest, SamplesSixteenRowsOfEachStream) {
  EtcInput input;
  input.token_ids = torch::arange(20).remainder(11).reshape({1, 20});
  input.global_token_ids = torch::arange(3).reshape({1, 3});
  input.attention =
      AttentionInputs(std::vector{UnrestrictedPattern(20, 3, 2, 2)});
  AttentionPassOptions options = PassOptions(/*bert=*/false);
  options.max_long_length = 20;
  Numbers similarities;
  for (const int64_t slice_bytes : {int64_t{1} << 28, int64_t{700}}) {
    options.slice_bytes = slice_bytes;
    AttentionPass pass(PassModel(/*bert=*/false, "sum"), options);
    ASSERT_TRUE(pass.Add(input, 0).ok());
    EXPECT_EQ(pass.populations().front().rows, 20);
    EXPECT_EQ(pass.populations().front().rows_sampled, 16);
    EXPECT_EQ(pass.populations().back().rows_sampled, 3);
    similarities.push_back(MeanSimilarity(pass.populations().front(), 1, 0, 1));
    // Later examples are left out.
    ASSERT_TRUE(pass.Add(input, 256).ok());
    EXPECT_EQ(pass.populations().front().rows, 40);
    EXPECT_EQ(pass.populations().front().rows_sampled, 16);
  }
  EXPECT_NEAR(similarities[0], similarities[1], kNear);
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
