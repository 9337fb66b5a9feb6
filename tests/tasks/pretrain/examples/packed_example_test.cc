// ETC's examples: hidden sentences, masked words, what the target run reads and
// who sees whom, field by field those of golden/text_tasks/etc_input.json and
// doc/pretraining.md 12.3; and what holds for any draws.

#include "tasks/pretrain/examples/packed_example.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pretrain/golden_file.h"
#include "tests/tasks/pretrain/scripted_draws.h"

namespace etc {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Ids = std::vector<int32_t>;

DocumentPart PartOf(const std::vector<Ids>& sentences,
                    const std::vector<std::vector<int>>& continues = {}) {
  DocumentPart part;
  for (size_t s = 0; s < sentences.size(); ++s) {
    for (size_t i = 0; i < sentences[s].size(); ++i) {
      part.pieces.Add(sentences[s][i],
                      !continues.empty() && continues[s][i] != 0);
    }
    part.sentence_ends.push_back(part.pieces.size());
  }
  return part;
}

// 1 at the last token of each example (doc/pretraining.md 8, "Packing").
Ids BreakpointsOf(const Ids& examples) {
  Ids breakpoints(examples.size(), 0);
  for (size_t i = 0; i < examples.size(); ++i) {
    breakpoints[i] =
        i + 1 == examples.size() || examples[i] != examples[i + 1] ? 1 : 0;
  }
  return breakpoints;
}

TEST(PackedExampleTest, HasTheGoldenMasks) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/etc_input.json");
  const nlohmann::json cases = ReadGolden(path)["masking"];
  ASSERT_EQ(cases.size(), 12);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const nlohmann::json& golden = cases[i];
    const PackedExampleOptions options{
        .mlm = {.rate = golden["mlm_rate"].get<double>(),
                .max_predictions = golden["max_pred"].get<int64_t>(),
                .whole_words = golden["whole_word"].get<bool>(),
                .vocab_size = golden["vocab"].get<int32_t>()},
        .cpc_rate = golden["cpc_rate"].get<double>()};
    PackedExampleWriter writer(&options);
    ScriptedDraws draws(golden["draws"]);
    writer.Add(
        PartOf(golden["sentences"].get<std::vector<Ids>>(),
               golden["is_continuation"].get<std::vector<std::vector<int>>>()),
        draws, draws);
    EXPECT_EQ(draws.left(), 0);
    const std::shared_ptr<PretrainExample> example = writer.Finish();
    const nlohmann::json& expected = golden["expect"];
    EXPECT_EQ(example->hidden_globals, expected["cpc_sentences"].get<Ids>());
    EXPECT_EQ(example->long_token_ids, expected["long_ids"].get<Ids>());
    EXPECT_EQ(example->global_token_ids, expected["global_ids"].get<Ids>());
    EXPECT_EQ(example->masked_positions, expected["mlm_positions"].get<Ids>());
    EXPECT_EQ(example->masked_labels, expected["mlm_labels"].get<Ids>());
    const bool hides = !example->hidden_globals.empty();
    EXPECT_EQ(example->targets != nullptr, hides);
    const Example targets = hides ? *example->targets : Example();
    EXPECT_EQ(targets.long_token_ids, expected["target_long_ids"].get<Ids>());
    EXPECT_EQ(targets.pattern.sentence,
              expected["target_sentence_ids"].get<Ids>());
    EXPECT_EQ(targets.global_token_ids,
              expected["target_global_ids"].get<Ids>());
    EXPECT_EQ(BreakpointsOf(targets.pattern.long_example),
              expected["target_long_breakpoints"].get<Ids>());
    EXPECT_EQ(BreakpointsOf(targets.pattern.global_example),
              expected["target_global_breakpoints"].get<Ids>());
  }
}

// The published one: two examples of 4 tokens and 2 sentences.
TEST(PackedExampleTest, PacksPartsThatDoNotSeeEachOther) {
  const PackedExampleOptions options{.mlm = {.max_predictions = 0},
                                     .cpc_rate = 0};
  PackedExampleWriter writer(&options);
  KeyedDraws draws({1});
  writer.Add(PartOf({{1}, {2, 3, 4}}), draws, draws);
  writer.Add(PartOf({{1}, {2, 3, 4}}), draws, draws);
  const std::shared_ptr<PretrainExample> example = writer.Finish();
  EXPECT_THAT(example->long_token_ids, ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_THAT(example->global_token_ids, ElementsAre(1, 1, 1, 1));
  const AttentionPattern& pattern = example->pattern;
  EXPECT_THAT(pattern.sentence, ElementsAre(0, 1, 1, 1, 2, 3, 3, 3));
  EXPECT_THAT(BreakpointsOf(pattern.long_segment),
              ElementsAre(0, 0, 0, 1, 0, 0, 0, 1));
  EXPECT_EQ(pattern.long_example, pattern.long_segment);
  EXPECT_THAT(BreakpointsOf(pattern.global_example), ElementsAre(0, 1, 0, 1));
  EXPECT_NE(pattern.global_example[0], pattern.long_example[4]);
  EXPECT_TRUE(pattern.hard_g2l);
  EXPECT_THAT(example->masked_positions, IsEmpty());
  EXPECT_EQ(example->targets, nullptr);
  EXPECT_EQ(example->long_type_ids.size(), 8);
  EXPECT_EQ(example->global_type_ids.size(), 4);
}

// Also one that begins with a piece that would continue a word, as those of a
// cut sentence may.
TEST(PackedExampleTest, WordsDoNotReachOverSentences) {
  const PackedExampleOptions options{.mlm = {.rate = 0.5, .whole_words = true},
                                     .cpc_rate = 0};
  PackedExampleWriter writer(&options);
  // Words: 10; 11 and 12; 13; 14 and 15. 3 pieces are wanted, so that the last
  // word is one too many after the second.
  ScriptedDraws draws(nlohmann::json::parse(
      R"([["permutation", [1, 3, 2, 0]], ["uniform", 0], ["uniform", 0],
          ["uniform", 0]])"));
  writer.Add(PartOf({{10, 11, 12}, {13, 14, 15}}, {{0, 0, 1}, {1, 0, 1}}),
             draws, draws);
  EXPECT_EQ(draws.left(), 0);
  EXPECT_THAT(writer.Finish()->masked_labels, ElementsAre(11, 12, 13));
}

TEST(DrawHiddenSentencesTest, HidesAboutTheRateButNeverAll) {
  KeyedDraws draws({2});
  EXPECT_THAT(DrawHiddenSentences(1, 0.5, draws), IsEmpty());
  EXPECT_THAT(DrawHiddenSentences(9, 0, draws), IsEmpty());
  EXPECT_EQ(DrawHiddenSentences(5, 1.0, draws).size(), 4);
  EXPECT_EQ(DrawHiddenSentences(2, 0.01, draws).size(), 1);
  int64_t hidden = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int32_t> sentences = DrawHiddenSentences(25, 0.1, draws);
    EXPECT_TRUE(std::is_sorted(sentences.begin(), sentences.end()));
    hidden += static_cast<int64_t>(sentences.size());
  }
  // 2.5 each; the standard deviation of the mean is 0.016.
  EXPECT_NEAR(static_cast<double>(hidden) / 1000, 2.5, 0.08);
}

struct RandomParts {
  std::vector<DocumentPart> parts;
  Ids originals;  // the long tokens before masking
};

RandomParts DrawParts(uint64_t key) {
  KeyedDraws draws({key, 99});
  RandomParts result;
  for (int64_t p = draws.Integer(1, 4); p > 0; --p) {
    DocumentPart part;
    for (int64_t s = draws.Integer(1, 9); s > 0; --s) {
      for (int64_t t = draws.Integer(1, 12); t > 0; --t) {
        part.pieces.Add(static_cast<int32_t>(draws.Integer(1000, 2000)),
                        draws.Uniform() < 0.3);
        result.originals.push_back(part.pieces.ids.back());
      }
      part.sentence_ends.push_back(part.pieces.size());
    }
    result.parts.push_back(part);
  }
  return result;
}

std::shared_ptr<PretrainExample> Write(const RandomParts& random,
                                       const PackedExampleOptions& options,
                                       uint64_t key) {
  PackedExampleWriter writer(&options);
  for (size_t p = 0; p < random.parts.size(); ++p) {
    KeyedDraws hide({key, p, 1});
    KeyedDraws mask({key, p, 2});
    writer.Add(random.parts[p], hide, mask);
  }
  return writer.Finish();
}

// Hidden sentences are all [MASK] and never among the labels; what is labelled
// stood there; the target run reads the hidden sentences as they were.
TEST(PackedExampleTest, KeepsHiddenSentencesFromTheMaskedWords) {
  PackedExampleOptions options{.cpc_rate = 0.3};
  for (uint64_t key = 0; key < 300; ++key) {
    SCOPED_TRACE(key);
    options.mlm.whole_words = key % 2 == 0;
    const RandomParts random = DrawParts(key);
    const auto example = Write(random, options, key);
    const std::set<int32_t> hidden(example->hidden_globals.begin(),
                                   example->hidden_globals.end());
    Ids originals = example->long_token_ids;
    for (size_t m = 0; m < example->masked_positions.size(); ++m) {
      const auto position = static_cast<size_t>(example->masked_positions[m]);
      EXPECT_THAT(hidden, Not(Contains(example->pattern.sentence[position])));
      originals[position] = example->masked_labels[m];
    }
    Ids targets;
    for (size_t i = 0; i < originals.size(); ++i) {
      if (hidden.contains(example->pattern.sentence[i])) {
        EXPECT_EQ(example->long_token_ids[i], options.mlm.mask_id);
        targets.push_back(random.originals[i]);
        originals[i] = random.originals[i];
      }
    }
    EXPECT_EQ(originals, random.originals);
    EXPECT_EQ(std::adjacent_find(example->masked_positions.begin(),
                                 example->masked_positions.end(),
                                 std::greater_equal<>()),
              example->masked_positions.end());
    for (size_t g = 0; g < example->global_token_ids.size(); ++g) {
      EXPECT_EQ(example->global_token_ids[g],
                hidden.contains(static_cast<int32_t>(g)) ? 2 : 1);
    }
    if (hidden.empty()) {
      EXPECT_EQ(example->targets, nullptr);
      continue;
    }
    EXPECT_EQ(example->targets->long_token_ids, targets);
    EXPECT_EQ(example->targets->global_token_ids.size(), hidden.size());
    EXPECT_THAT(example->targets->global_token_ids, Each(1));
    // Each hidden sentence is an example of its own.
    const AttentionPattern& pattern = example->targets->pattern;
    EXPECT_EQ(pattern.sentence, pattern.long_example);
    EXPECT_THAT(BreakpointsOf(pattern.global_example), Each(1));
  }
}

TEST(PackedExampleTest, FollowsFromTheKey) {
  const PackedExampleOptions options{.cpc_rate = 0.3};
  const RandomParts random = DrawParts(7);
  const auto example = Write(random, options, 1);
  const auto same = Write(random, options, 1);
  const auto other = Write(random, options, 2);
  EXPECT_EQ(example->long_token_ids, same->long_token_ids);
  EXPECT_EQ(example->hidden_globals, same->hidden_globals);
  EXPECT_EQ(example->masked_labels, same->masked_labels);
  EXPECT_NE(example->long_token_ids, other->long_token_ids);
}

TEST(PackedExampleTest, CountsTheBytesOfTheTargets) {
  PackedExampleOptions options{.cpc_rate = 0.5};
  const RandomParts random = DrawParts(8);
  const auto with_targets = Write(random, options, 1);
  options.cpc_rate = 0;
  const auto without = Write(random, options, 1);
  ASSERT_NE(with_targets->targets, nullptr);
  EXPECT_GT(with_targets->TaskBytes(),
            without->TaskBytes() + 8 * with_targets->targets->long_length());
}

}  // namespace
}  // namespace etc
