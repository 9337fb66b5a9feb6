// BERT's examples: field by field those of the official generator for scripted
// draws (golden/text_tasks/pretraining.json, doc/pretraining.md 12.1, 12.2),
// all draws used with the same bounds; and what follows from the rules for any
// draws.

#include "tasks/pretrain/examples/sentence_pairs.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pretrain/golden_file.h"
#include "tests/tasks/pretrain/listed_documents.h"
#include "tests/tasks/pretrain/scripted_draws.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr absl::string_view kGolden = "golden/text_tasks/pretraining.json";

// The options of a golden case. The words to draw from have the first ids.
MaskedLmOptions GoldenMaskedLm(const nlohmann::json& golden, WordList* words) {
  const auto vocabulary = golden["random_words"].get<Words>();
  *words = WordList(vocabulary);
  return {.rate = golden["masked_lm_prob"].get<double>(),
          .max_predictions = golden["max_predictions"].get<int64_t>(),
          .whole_words = golden.value("whole_word", false),
          .mask_id = words->Id("[MASK]"),
          .vocab_size = static_cast<int32_t>(vocabulary.size())};
}

TEST(MaskPairTest, HasTheGoldenMasks) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json cases = ReadGolden(path)["masking"];
  ASSERT_EQ(cases.size(), 48);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const nlohmann::json& golden = cases[i];
    WordList words;
    const MaskedLmOptions options = GoldenMaskedLm(golden, &words);
    const Pieces pieces = words.ToPieces(golden["tokens"].get<Words>());
    SentencePair pair{.tokens = pieces.ids};
    const auto inner =
        std::find(pair.tokens.begin(), pair.tokens.end(), words.Id("[SEP]"));
    pair.types.assign(pair.tokens.size(), 1);
    std::fill_n(pair.types.begin(), inner - pair.tokens.begin() + 1, 0);
    ScriptedDraws draws(golden["draws"]);
    MaskPair(pieces.continues_word, options, draws, &pair);
    const nlohmann::json& expected = golden["expect"];
    EXPECT_EQ(words.ToWords(pair.tokens), expected["tokens"].get<Words>());
    EXPECT_EQ(pair.masked.positions,
              expected["positions"].get<std::vector<int32_t>>());
    EXPECT_EQ(words.ToWords(pair.masked.labels),
              expected["labels"].get<Words>());
    EXPECT_EQ(draws.left(), 0);
  }
}

TEST(NumPredictionsTest, IsGolden) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json cases = ReadGolden(path)["num_to_predict"];
  ASSERT_EQ(cases.size(), 17);
  for (const nlohmann::json& golden : cases) {
    EXPECT_EQ(NumPredictions(golden[0].get<int64_t>(),
                             {.rate = golden[2].get<double>(),
                              .max_predictions = golden[1].get<int64_t>()}),
              golden[3].get<int64_t>())
        << golden;
  }
}

// The table of doc/pretraining.md 12.2: 4.5, 7.5, 10.5, ... go to the even
// number.
TEST(NumPredictionsTest, RoundsHalvesToTheEvenNumber) {
  const MaskedLmOptions options{.max_predictions = 20};
  const auto expect = [&options](int64_t tokens, int64_t predictions) {
    EXPECT_EQ(NumPredictions(tokens, options), predictions) << tokens;
  };
  expect(3, 1);
  expect(10, 2);
  expect(30, 4);
  expect(50, 8);
  expect(70, 10);
  expect(90, 14);
  expect(110, 16);
  expect(128, 19);
  expect(130, 20);
  EXPECT_EQ(NumPredictions(512, {.max_predictions = 80}), 77);
  EXPECT_EQ(NumPredictions(4096, {}), 614);
}

Words PrefixedWords(const std::string& prefix, int64_t count) {
  Words words;
  for (int64_t i = 0; i < count; ++i) {
    words.push_back(prefix + std::to_string(i));
  }
  return words;
}

TEST(TruncatePairTest, IsGolden) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json cases = ReadGolden(path)["truncate_seq_pair"];
  ASSERT_EQ(cases.size(), 12);
  for (const nlohmann::json& golden : cases) {
    SCOPED_TRACE(golden.dump());
    WordList words;
    Pieces a = words.ToPieces(PrefixedWords("a", golden["a"].get<int64_t>()));
    Pieces b = words.ToPieces(PrefixedWords("b", golden["b"].get<int64_t>()));
    ScriptedDraws draws(golden["draws"]);
    TruncatePair(golden["max_num_tokens"].get<int64_t>(), draws, &a, &b);
    EXPECT_EQ(words.ToWords(a.ids), golden["expect_a"].get<Words>());
    EXPECT_EQ(words.ToWords(b.ids), golden["expect_b"].get<Words>());
    EXPECT_EQ(draws.left(), 0);
  }
}

TEST(CreateInstancesTest, AreThoseOfTheOfficialGenerator) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json golden_file = ReadGolden(path);
  const auto texts =
      golden_file["documents"].get<std::vector<std::vector<Words>>>();
  const nlohmann::json& cases = golden_file["instances"];
  ASSERT_EQ(cases.size(), 27);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const nlohmann::json& golden = cases[i];
    WordList words;
    SentencePairOptions options{
        .max_length = golden["max_seq_length"].get<int64_t>(),
        .short_sequence_rate = golden["short_seq_prob"].get<double>(),
        .mlm = GoldenMaskedLm(golden, &words)};
    options.cls_id = words.Id("[CLS]");
    options.separator_id = words.Id("[SEP]");
    std::vector<std::vector<Pieces>> documents;
    for (const std::vector<Words>& text : texts) {
      documents.emplace_back();
      for (const Words& sentence : text) {
        documents.back().push_back(words.ToPieces(sentence));
      }
    }
    ScriptedDraws draws(golden["draws"]);
    const std::vector<SentencePair> pairs =
        *CreateInstances(ListedDocuments(documents),
                         golden["document"].get<int64_t>(), options, draws);
    EXPECT_EQ(draws.left(), 0);
    const nlohmann::json& expected = golden["expect"];
    ASSERT_EQ(pairs.size(), expected.size());
    for (size_t p = 0; p < pairs.size(); ++p) {
      SCOPED_TRACE(p);
      const SentencePair& pair = pairs[p];
      EXPECT_EQ(words.ToWords(pair.tokens), expected[p]["tokens"].get<Words>());
      EXPECT_EQ(pair.types,
                expected[p]["segment_ids"].get<std::vector<int32_t>>());
      EXPECT_EQ(pair.random_next, expected[p]["is_random_next"].get<bool>());
      EXPECT_EQ(pair.masked.positions,
                expected[p]["positions"].get<std::vector<int32_t>>());
      EXPECT_EQ(words.ToWords(pair.masked.labels),
                expected[p]["labels"].get<Words>());
    }
  }
}

// Small cases of our own, which need no golden file.

constexpr int32_t kClassToken = 1;
constexpr int32_t kSeparatorToken = 2;
constexpr int32_t kMaskToken = 3;

SentencePairOptions SmallPairs(int64_t max_length) {
  return {.max_length = max_length,
          .short_sequence_rate = 0,
          .cls_id = kClassToken,
          .separator_id = kSeparatorToken,
          .mlm = {.mask_id = kMaskToken, .vocab_size = 100}};
}

Pieces PlainPieces(const std::vector<int32_t>& ids) {
  return {.ids = ids, .continues_word = std::vector<uint8_t>(ids.size(), 0)};
}

TEST(CreateInstancesTest, PutsReplacedSentencesBackIntoTheNextChunk) {
  const ListedDocuments documents({
      {PlainPieces({10, 11}), PlainPieces({12, 13}), PlainPieces({14, 15})},
      {PlainPieces({20, 21, 22})},
  });
  // Room for 4: chunks of two sentences.
  ScriptedDraws draws(nlohmann::json::parse(R"([
    ["uniform", 0.5],
    ["integer", 1, 1, 1], ["uniform", 0.4],
    ["integer", 0, 1, 0], ["integer", 0, 1, 1], ["integer", 0, 0, 0],
    ["uniform", 0.7],
    ["permutation", [0, 1, 2, 3]], ["uniform", 0.9], ["uniform", 0.1],
    ["integer", 1, 1, 1], ["uniform", 0.6],
    ["permutation", [3, 1, 2, 0]], ["uniform", 0.1]])"));
  const std::vector<SentencePair> pairs =
      *CreateInstances(documents, 0, SmallPairs(/*max_length=*/7), draws);
  EXPECT_EQ(draws.left(), 0);
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_TRUE(pairs[0].random_next);
  EXPECT_THAT(pairs[0].tokens, ElementsAre(1, 10, 11, 2, 20, 21, 2));
  EXPECT_THAT(pairs[0].types, ElementsAre(0, 0, 0, 0, 1, 1, 1));
  // Kept as it is, and still to be predicted.
  EXPECT_THAT(pairs[0].masked.positions, ElementsAre(1));
  EXPECT_THAT(pairs[0].masked.labels, ElementsAre(10));
  // 12 and 13, which B took the place of, come again as A.
  EXPECT_FALSE(pairs[1].random_next);
  EXPECT_THAT(pairs[1].tokens, ElementsAre(1, 12, 13, 2, 14, kMaskToken, 2));
  EXPECT_THAT(pairs[1].masked.labels, ElementsAre(15));
}

// Byte-level pieces mark the blank before a word, which the first word of a
// sentence does not have.
TEST(CreateInstancesTest, BeginsAWordWithEachSentence) {
  const auto sentence = [](int32_t id) {
    return Pieces{.ids = {id}, .continues_word = {1}};
  };
  const ListedDocuments documents({
      {sentence(10), sentence(11), sentence(12)},
      {sentence(20), sentence(21)},
  });
  SentencePairOptions options = SmallPairs(/*max_length=*/6);
  options.mlm.whole_words = true;
  // Room for 3: A is 10 and 11 and B is 12, each with a candidate of its own.
  ScriptedDraws draws(nlohmann::json::parse(R"([
    ["uniform", 0.5],
    ["integer", 1, 2, 2], ["uniform", 0.6],
    ["permutation", [1, 2, 0]], ["uniform", 0.1]])"));
  const std::vector<SentencePair> pairs =
      *CreateInstances(documents, 0, options, draws);
  EXPECT_EQ(draws.left(), 0);
  ASSERT_EQ(pairs.size(), 1);
  EXPECT_THAT(pairs[0].tokens, ElementsAre(1, 10, kMaskToken, 2, 12, 2));
  EXPECT_THAT(pairs[0].masked.labels, ElementsAre(11));
}

TEST(MaskPairTest, MasksAllPiecesOfAWordOrNone) {
  WordList words({"[CLS]", "[SEP]"});
  const Pieces pieces = words.ToPieces(
      {"[CLS]", "##un", "play", "##ing", "[SEP]", "##s", "so", "[SEP]"});
  MaskedLmOptions options{.rate = 0.4, .whole_words = true, .mask_id = 99};
  // 8 * 0.4 rounds to 3. The last word of A is of 3 pieces, with the one behind
  // the inner [SEP]; after "so" it is one too many, and is left out.
  ScriptedDraws draws(nlohmann::json::parse(
      R"([["permutation", [2, 1, 0]], ["uniform", 0.1], ["uniform", 0.1]])"));
  SentencePair pair{.tokens = pieces.ids, .types = {0, 0, 0, 0, 0, 1, 1, 1}};
  MaskPair(pieces.continues_word, options, draws, &pair);
  EXPECT_THAT(pair.masked.positions, ElementsAre(1, 6));
  EXPECT_EQ(words.ToWords(pair.masked.labels), (Words{"##un", "so"}));
  EXPECT_EQ(draws.left(), 0);
}

TEST(MaskTokensTest, RandomTokensKeepToTheirRange) {
  MaskCandidates candidates;
  for (int32_t i = 0; i < 400; ++i) {
    candidates.Add(i);
  }
  std::vector<int32_t> tokens(400, 7);
  const MaskedLmOptions options{
      .mask_id = 3, .random_min_id = 50, .vocab_size = 53};
  KeyedDraws draws({4});
  const MaskedTokens masked =
      MaskTokens(candidates, 400, options, draws, tokens);
  EXPECT_EQ(masked.positions.size(), 400);
  const std::set<int32_t> found(tokens.begin(), tokens.end());
  EXPECT_THAT(found, ElementsAre(3, 7, 50, 51, 52));
  // 80, 10 and 10 %; standard deviations are 8 and 6.
  EXPECT_NEAR(std::count(tokens.begin(), tokens.end(), 3), 320, 40);
  EXPECT_NEAR(std::count(tokens.begin(), tokens.end(), 7), 40, 30);
}

TEST(MaskTokensTest, RejectsAVocabularyWithoutRandomTokens) {
  MaskCandidates candidates;
  candidates.Add(0);
  std::vector<int32_t> tokens = {7};
  KeyedDraws draws({5});
  EXPECT_ANY_THROW(MaskTokens(
      candidates, 1, {.random_min_id = 10, .vocab_size = 10}, draws, tokens));
}

TEST(MaskTokensTest, OfNoCandidatesMasksNothing) {
  std::vector<int32_t> tokens;
  KeyedDraws draws({6});
  const MaskedTokens masked =
      MaskTokens(MaskCandidates(), 1, {}, draws, tokens);
  EXPECT_THAT(masked.positions, IsEmpty());
}

// Invariants for any draws: lengths, types, labels equal to the original
// tokens, each sentence of the document read.
TEST(CreateInstancesTest, HoldsToItsRulesForAnyDraws) {
  std::vector<std::vector<Pieces>> documents;
  int32_t next = 10;
  for (const int num_sentences : {1, 5, 30}) {
    documents.emplace_back();
    for (int s = 0; s < num_sentences; ++s) {
      Pieces pieces;
      for (int t = 0; t < 1 + (s * 7) % 23; ++t) {
        pieces.Add(next++, t % 3 == 1);
      }
      documents.back().push_back(pieces);
    }
  }
  const ListedDocuments set(documents);
  SentencePairOptions options = SmallPairs(/*max_length=*/24);
  options.short_sequence_rate = 0.3;
  options.mlm.whole_words = true;
  options.mlm.vocab_size = next;
  for (uint64_t key = 0; key < 300; ++key) {
    SCOPED_TRACE(key);
    const auto document = static_cast<int64_t>(key % 3);
    KeyedDraws draws({key});
    KeyedDraws same({key});
    const auto pairs = *CreateInstances(set, document, options, draws);
    const auto again = *CreateInstances(set, document, options, same);
    ASSERT_EQ(pairs.size(), again.size());
    ASSERT_GE(pairs.size(), 1);
    for (size_t p = 0; p < pairs.size(); ++p) {
      const SentencePair& pair = pairs[p];
      EXPECT_EQ(pair.tokens, again[p].tokens);
      EXPECT_LE(pair.tokens.size(), 24);
      EXPECT_EQ(pair.tokens.front(), kClassToken);
      EXPECT_EQ(pair.tokens.back(), kSeparatorToken);
      EXPECT_TRUE(std::is_sorted(pair.types.begin(), pair.types.end()));
      EXPECT_TRUE(std::is_sorted(pair.masked.positions.begin(),
                                 pair.masked.positions.end()));
      EXPECT_LE(static_cast<int64_t>(pair.masked.positions.size()),
                NumPredictions(static_cast<int64_t>(pair.tokens.size()),
                               options.mlm));
      // The original tokens are consecutive numbers within A and within B.
      std::vector<int32_t> originals = pair.tokens;
      for (size_t m = 0; m < pair.masked.positions.size(); ++m) {
        originals[static_cast<size_t>(pair.masked.positions[m])] =
            pair.masked.labels[m];
      }
      for (size_t i = 2; i + 1 < originals.size(); ++i) {
        if (originals[i] >= 10 && originals[i - 1] >= 10) {
          EXPECT_EQ(originals[i], originals[i - 1] + 1);
        }
      }
      EXPECT_EQ(std::count(originals.begin(), originals.end(), kSeparatorToken),
                2);
    }
    if (document == 0) {  // one sentence
      EXPECT_TRUE(pairs[0].random_next);
    }
  }
}

TEST(CreateInstancesTest, RejectsALengthWithoutRoom) {
  const ListedDocuments documents({{PlainPieces({10})}, {PlainPieces({11})}});
  KeyedDraws draws({7});
  EXPECT_ANY_THROW(CreateInstances(documents, 0, SmallPairs(4), draws));
  EXPECT_EQ(CreateInstances(documents, 0, SmallPairs(5), draws)->size(), 1);
}

}  // namespace
}  // namespace etc
