// Beam search: the golden searches of doc/translation.md 11.3 over a table of
// probabilities; 400 random searches over random tables and 360 over random
// models, by incremental decoding, against a plain search that computes the
// whole prefix anew for each hypothesis: the same tokens and scores to 1e-5
// (float32 log-probabilities); ties; sentences of a batch, which do not see
// each other; options out of range.

#include "etc/encoder_decoder/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "etc/encoder_decoder/model.h"
#include "etc/encoder_decoder/translate.h"
#include "tests/support/error_message.h"
#include "tests/support/sanitizers.h"
#include "tests/support/toy_translation.h"

namespace etc {
namespace {

using Prefix = std::vector<int64_t>;
// Log-probabilities of the token behind a prefix, without the start.
using PrefixModel = std::function<std::vector<float>(const Prefix&)>;

// The search as doc/translation.md 7 has it, one sentence, no batch, no state.
std::vector<BeamHypothesis> PlainSearch(const PrefixModel& model,
                                        int64_t vocabulary,
                                        const BeamSearchOptions& options) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  std::vector<std::pair<Prefix, double>> beams = {{{}, 0.0}};
  std::vector<BeamHypothesis> done;
  const auto k = static_cast<size_t>(options.beam_size);
  for (int64_t step = 0; step <= options.max_length; ++step) {
    std::vector<std::tuple<double, int64_t, int64_t>> candidates;
    for (size_t b = 0; b < beams.size(); ++b) {
      const std::vector<float> row = model(beams[b].first);
      for (int64_t v = 0; v < vocabulary; ++v) {
        auto lp = static_cast<double>(row[static_cast<size_t>(v)]);
        lp = v == kPaddingId ? kNever : lp;
        lp -= v == kUnknownId ? options.unknown_penalty : 0.0;
        lp = step >= options.max_length && v != kEndId ? kNever : lp;
        lp = step < options.min_length && v == kEndId ? kNever : lp;
        candidates.emplace_back(beams[b].second + lp, static_cast<int64_t>(b),
                                v);
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) {
                       return std::get<0>(a) > std::get<0>(b);
                     });
    candidates.resize(std::min(2 * k, candidates.size() - 1));
    std::vector<std::pair<Prefix, double>> next;
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const auto& [sum, beam, token] = candidates[rank];
      Prefix longer = beams[static_cast<size_t>(beam)].first;
      longer.push_back(token);
      if (token != kEndId) {
        if (next.size() < k) {
          next.emplace_back(longer, sum);
        }
      } else if (rank < k && done.size() < k && sum > kNever) {
        done.push_back({.tokens = longer,
                        .score = sum / std::pow(static_cast<double>(step + 1),
                                                options.length_penalty),
                        .log_probability = sum});
      }
    }
    if (done.size() == k) {
      break;
    }
    beams = next;
  }
  std::stable_sort(done.begin(), done.end(),
                   [](const BeamHypothesis& a, const BeamHypothesis& b) {
                     return a.score > b.score;
                   });
  done.resize(std::min(done.size(), static_cast<size_t>(options.num_best)));
  return done;
}

// BeamSearch over models of prefixes, one for each sentence: keeps prefixes by
// the rows of each step, as incremental decoding keeps its caches.
class PrefixSearch {
 public:
  PrefixSearch(std::vector<PrefixModel> models, int64_t vocabulary)
      : models_(std::move(models)), vocabulary_(vocabulary) {
    for (size_t i = 0; i < models_.size(); ++i) {
      rows_.push_back({static_cast<int64_t>(i), {}});
    }
  }

  std::vector<std::vector<BeamHypothesis>> Run(
      const BeamSearchOptions& options) {
    return BeamSearch(options, vocabulary_,
                      static_cast<int64_t>(models_.size()),
                      [this](const BeamStep& step) { return Next(step); });
  }

 private:
  struct Row {
    int64_t sentence;
    Prefix prefix;
  };

  const float* Next(const BeamStep& step) {
    EXPECT_EQ(step.parents.size(),
              step.sentences.size() * static_cast<size_t>(step.width));
    std::vector<Row> rows;
    logits_.clear();
    for (size_t i = 0; i < step.parents.size(); ++i) {
      Row row = rows_[static_cast<size_t>(step.parents[i])];
      if (!is_first_) {
        row.prefix.push_back(step.tokens[i]);
      } else {
        EXPECT_EQ(step.tokens[i], kEndId);
      }
      const std::vector<float> next =
          models_[static_cast<size_t>(row.sentence)](row.prefix);
      logits_.insert(logits_.end(), next.begin(), next.end());
      rows.push_back(std::move(row));
    }
    is_first_ = false;
    rows_ = std::move(rows);
    return logits_.data();
  }

  const std::vector<PrefixModel> models_;
  const int64_t vocabulary_;
  std::vector<Row> rows_;
  std::vector<float> logits_;
  bool is_first_ = true;
};

void ExpectSameSearch(const std::vector<BeamHypothesis>& actual,
                      const std::vector<BeamHypothesis>& expected,
                      double atol) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].tokens, expected[i].tokens) << i;
    EXPECT_NEAR(actual[i].score, expected[i].score, atol) << i;
    EXPECT_NEAR(actual[i].log_probability, expected[i].log_probability, atol);
  }
}

// The table of doc/translation.md 11.3, by the last token (start: -1).
std::vector<float> GoldenTable(const Prefix& prefix) {
  static const std::map<int64_t, std::map<int64_t, double>> kTable = {
      {-1, {{4, .5}, {5, .3}, {6, .15}, {2, .05}}},
      {4, {{2, .1}, {5, .45}, {6, .35}, {4, .1}}},
      {5, {{2, .4}, {6, .3}, {7, .3}}},
      {6, {{2, .5}, {7, .3}, {4, .2}}},
      {7, {{2, .6}, {5, .25}, {6, .15}}}};
  std::vector<float> row(8, -30.0f);
  const auto found = kTable.find(prefix.empty() ? -1 : prefix.back());
  if (found == kTable.end()) {
    row[kEndId] = 0.0f;
    return row;
  }
  for (const auto& [token, probability] : found->second) {
    row[static_cast<size_t>(token)] = static_cast<float>(std::log(probability));
  }
  return row;
}

struct GoldenSearch {
  int64_t beam, max_length;
  double penalty;
  std::vector<std::pair<double, Prefix>> results;
};

TEST(BeamSearchTest, FindsTheGoldenHypotheses) {
  const std::vector<GoldenSearch> all = {
      {1, 6, 1.0, {{-0.802649, {4, 5, 2}}}},
      {2, 6, 0.0, {{-2.407946, {4, 5, 2}}, {-2.436116, {4, 6, 2}}}},
      {2, 6, 0.6, {{-1.245587, {4, 5, 2}}, {-1.260159, {4, 6, 2}}}},
      {2, 6, 1.0, {{-0.802649, {4, 5, 2}}, {-0.812039, {4, 6, 2}}}},
      {4,
       6,
       0.0,
       {{-2.120264, {5, 2}},
        {-2.407946, {4, 5, 2}},
        {-2.436116, {4, 6, 2}},
        {-3.206453, {4, 5, 7, 2}}}},
      {4,
       6,
       0.6,
       {{-1.245587, {4, 5, 2}},
        {-1.260159, {4, 6, 2}},
        {-1.395690, {4, 5, 7, 2}},
        {-1.398852, {5, 2}}}},
      {4,
       6,
       1.0,
       {{-0.801613, {4, 5, 7, 2}},
        {-0.802649, {4, 5, 2}},
        {-0.812039, {4, 6, 2}},
        {-1.060132, {5, 2}}}},
      {4,
       6,
       1.5,
       {{-0.400807, {4, 5, 7, 2}},
        {-0.463409, {4, 5, 2}},
        {-0.468831, {4, 6, 2}},
        {-0.749626, {5, 2}}}},
      {4,
       2,
       1.0,
       {{-0.802649, {4, 5, 2}},
        {-0.812039, {4, 6, 2}},
        {-0.972924, {5, 7, 2}},
        {-1.060132, {5, 2}}}},
      {2, 1, 1.0, {{-1.060132, {5, 2}}, {-1.497866, {4, 2}}}}};
  for (const GoldenSearch& golden : all) {
    SCOPED_TRACE(testing::Message()
                 << "beam " << golden.beam << ", at most " << golden.max_length
                 << ", penalty " << golden.penalty);
    const auto found = PrefixSearch({GoldenTable}, 8)
                           .Run({.beam_size = golden.beam,
                                 .length_penalty = golden.penalty,
                                 .max_length = golden.max_length,
                                 .num_best = golden.beam})[0];
    ASSERT_EQ(found.size(), golden.results.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].score, golden.results[i].first, 1.5e-6);
      EXPECT_EQ(found[i].tokens, golden.results[i].second);
    }
  }
}

// Log-probabilities that depend on the whole prefix, drawn anew from its hash;
// with `coarse` of few values, so that many are equal.
PrefixModel RandomModel(uint64_t seed, int64_t vocabulary, bool coarse) {
  return [=](const Prefix& prefix) {
    uint64_t hash = seed;
    for (const int64_t token : prefix) {
      hash = hash * 1000003 + static_cast<uint64_t>(token) + 17;
    }
    std::mt19937_64 random(hash);
    std::vector<float> row;
    for (int64_t v = 0; v < vocabulary; ++v) {
      row.push_back(coarse ? -0.5f * static_cast<float>(1 + random() % 4)
                           : -0.01f * static_cast<float>(1 + random() % 500));
    }
    return row;
  };
}

BeamSearchOptions RandomOptions(int64_t vocabulary, std::mt19937_64* random) {
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>((*random)() % static_cast<uint64_t>(below));
  };
  BeamSearchOptions options = {
      .beam_size = 1 + draw(std::min<int64_t>(vocabulary - 1, 6)),
      .length_penalty = 0.4 * static_cast<double>(draw(5)),
      .unknown_penalty = static_cast<double>(draw(2)),
      .min_length = draw(3)};
  options.max_length = options.min_length + draw(7);
  options.num_best = 1 + draw(options.beam_size);
  return options;
}

TEST(BeamSearchTest, EqualsAPlainSearchOverRandomTables) {
  std::mt19937_64 random(5);
  int64_t hypotheses = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    const int64_t vocabulary = 5 + static_cast<int64_t>(random() % 8);
    const BeamSearchOptions options = RandomOptions(vocabulary, &random);
    std::vector<PrefixModel> models;
    for (uint64_t sentence = 0; sentence < 1 + random() % 4; ++sentence) {
      models.push_back(
          RandomModel(random(), vocabulary, /*coarse=*/trial % 2 == 1));
    }
    const auto found = PrefixSearch(models, vocabulary).Run(options);
    ASSERT_EQ(found.size(), models.size());
    for (size_t i = 0; i < models.size(); ++i) {
      ExpectSameSearch(found[i], PlainSearch(models[i], vocabulary, options),
                       1e-12);
      hypotheses += static_cast<int64_t>(found[i].size());
    }
  }
  EXPECT_GT(hypotheses, 1000);
}

// The model's log-probabilities behind a prefix, by teacher forcing.
PrefixModel WholePrefix(EncoderDecoder model, const torch::Tensor& source) {
  return [=](const Prefix& prefix) mutable {
    const torch::NoGradGuard no_grad;
    std::vector<int64_t> ids = {kEndId};
    ids.insert(ids.end(), prefix.begin(), prefix.end());
    const torch::Tensor logits =
        model->forward(source, torch::tensor(ids, torch::kInt64).unsqueeze(0));
    const torch::Tensor row =
        torch::log_softmax(logits[0][-1], -1).to(torch::kFloat32).contiguous();
    return std::vector<float>(row.data_ptr<float>(),
                              row.data_ptr<float>() + row.numel());
  };
}

// A model with weights large enough for its probabilities to differ.
EncoderDecoder RandomTranslator(const std::string& mode, int64_t vocabulary,
                                uint64_t seed) {
  torch::manual_seed(seed);
  EncoderDecoderConfig config = ToyTranslationConfig(mode);
  config.vocab_size = vocabulary;
  config.residual_gate_init = 0.7;
  config.num_encoder_layers = 1;
  config.num_decoder_layers = 2;
  EncoderDecoder model(config);
  model->to(torch::kFloat64);
  model->eval();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : model->parameters()) {
    parameter.add_(torch::randn_like(parameter).mul_(0.5));
  }
  return model;
}

TEST(BeamSearchTest, EqualsAPlainSearchOverRandomModels) {
  std::mt19937_64 random(7);
  const int trials = kSanitized ? 20 : 120;
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    const int64_t vocabulary = 6 + static_cast<int64_t>(random() % 7);
    const char* const modes[] = {"off", "sum", "mean", "gate", "decay"};
    EncoderDecoder model =
        RandomTranslator(modes[trial % 5], vocabulary, random());
    BeamSearchOptions options = RandomOptions(vocabulary, &random);
    options.beam_size = 1 + options.beam_size % 4;
    options.num_best = options.beam_size;
    // Three sentences of other lengths, padded on either side.
    torch::Tensor sources = torch::full({3, 5}, kPaddingId, torch::kInt64);
    std::vector<torch::Tensor> alone;
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t length = 1 + static_cast<int64_t>(random() % 5);
      torch::Tensor source =
          torch::randint(kUnknownId, vocabulary, {length}, torch::kInt64);
      source[length - 1] = kEndId;
      const int64_t begin = trial % 2 == 0 ? 5 - length : 0;
      sources[i].narrow(0, begin, length).copy_(source);
      alone.push_back(source.unsqueeze(0));
    }
    const auto found = Translate(model, sources, {.beam = options});
    for (size_t i = 0; i < 3; ++i) {
      ExpectSameSearch(
          found[i],
          PlainSearch(WholePrefix(model, alone[i]), vocabulary, options), 1e-5);
    }
  }
}

TEST(BeamSearchTest, PrefersTheFirstOfEqualCandidates) {
  const auto all_equal = [](const Prefix&) {
    return std::vector<float>(8, -1.0f);
  };
  const auto found = PrefixSearch({all_equal}, 8)
                         .Run({.beam_size = 3,
                               .length_penalty = 1.0,
                               .max_length = 4,
                               .num_best = 3})[0];
  // At step 0 tokens 0, 3 and 4 (1 is padding, 2 the end, which may not come
  // first); at step 1 the ends of the three stand at ranks 1, 7, ...: one.
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].tokens, (Prefix{0, 2}));
}

TEST(BeamSearchTest, LimitsLengths) {
  EncoderDecoder model = ToyTranslationModel(ToyTranslationConfig());
  const torch::Tensor source = ToyIds("45672");
  const auto length = [&](const TranslateOptions& options) {
    return Translate(model, source, options)[0][0].tokens.size();
  };
  // The end in addition.
  EXPECT_EQ(
      length({.beam = {.beam_size = 1, .min_length = 4, .max_length = 4}}), 5u);
  EXPECT_EQ(
      length({.beam = {.beam_size = 1, .min_length = 7, .max_length = 7}}), 8u);
  // floor(0.5 * 5 + 1) = 3 tokens, all unknown: the end is never better.
  EXPECT_EQ(
      length({.beam = {.beam_size = 1, .unknown_penalty = -50, .max_length = 1},
              .max_length_per_source = 0.5}),
      4u);
  // The model's positions are the last limit.
  EncoderDecoderConfig config = ToyTranslationConfig();
  config.max_target_positions = 5;
  EncoderDecoder short_model = ToyTranslationModel(config);
  EXPECT_LE(Translate(short_model, source,
                      {.beam = {.beam_size = 1, .unknown_penalty = -50}})[0][0]
                .tokens.size(),
            5u);
}

TEST(BeamSearchTest, RefusesOptionsOutOfRange) {
  using testing::HasSubstr;
  const auto message = [](const BeamSearchOptions& options) {
    return std::string(
        CheckBeamSearchOptions(options, 9, "translate").message());
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.beam_size = 8}), "");
  EXPECT_EQ(message({.beam_size = 9}),
            "translate: beam_size should be from 1 to 8 (the vocabulary but "
            "one), but is 9");
  EXPECT_THAT(message({.beam_size = 0}), HasSubstr("beam_size"));
  EXPECT_THAT(message({.num_best = 6}), HasSubstr("num_best"));
  EXPECT_THAT(message({.min_length = 3, .max_length = 2}),
              HasSubstr("max_length"));
  EXPECT_THAT(message({.min_length = -1}), HasSubstr("min_length"));
  EXPECT_THAT(message({.length_penalty = NAN}), HasSubstr("length_penalty"));
  EncoderDecoder model = ToyTranslationModel(ToyTranslationConfig());
  EXPECT_THAT(MessageOf([&] {
                Translate(model, ToyIds("452"), {.beam = {.beam_size = 9}});
              }),
              HasSubstr("from 1 to 8"));
  model->train();
  EXPECT_THAT(MessageOf([&] { Translate(model, ToyIds("452"), {}); }),
              HasSubstr("evaluation mode"));
}

}  // namespace
}  // namespace etc
