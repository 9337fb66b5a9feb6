// BLEU against sacrebleu 2.6.0 and against the definition of tokenised BLEU
// (golden numbers of doc/translation.md 11.4; more where Multi30k lies beside
// the checkout). Random corpora are compared with sacrebleu itself by
// tests/random_bleu.py. Tolerance: the six digits that are given.

#include "tasks/translation/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tasks/text/text_folding.h"
#include "tests/support/shared_data.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

using Lines = std::vector<std::string>;
using Counts = std::array<int64_t, 4>;

constexpr double kTolerance = 6e-7;

BleuScore Bleu(const Lines& hypotheses, const Lines& references,
               const BleuOptions& options = {}) {
  const absl::StatusOr<BleuScore> score =
      CorpusBleu(hypotheses, references, options);
  EXPECT_TRUE(score.ok()) << score.status();
  return score.value_or(BleuScore());
}

std::string MessageOf(const absl::StatusOr<BleuScore>& score) {
  EXPECT_EQ(score.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(score.status().message());
}

const Lines& ThreeHypotheses() {
  static const auto* const lines =
      new Lines{"Ein Mann fährt Rad.", "Zwei Hunde spielen im Schnee .",
                "Ein kleines Mädchen lacht"};
  return *lines;
}
const Lines& ThreeReferences() {
  static const auto* const lines =
      new Lines{"Ein Mann fährt ein Rad.", "Zwei Hunde spielen im Schnee.",
                "Das kleine Mädchen lacht laut."};
  return *lines;
}

TEST(BleuTest, TokenizesAsSacrebleuDoes) {
  for (const auto& [text, tokens] :
       std::vector<std::pair<std::string, std::string>>{
           {"Hello, world!", "Hello , world !"},
           {"It's 3.14, e.g. 1,000.5 (or so).",
            "It's 3.14 , e . g . 1,000.5 ( or so ) ."},
           {"U.S. 10-year 20-30 x-ray well-known",
            "U . S . 10 - year 20 - 30 x-ray well-known"},
           {"a...b -- c", "a . . . b -- c"},
           {"„Guten Tag“, sagte er.", "„Guten Tag“ , sagte er ."},
           {"50% & $5/day &amp; &lt;b&gt; &quot;x&quot;",
            "50 % & $ 5 / day & < b > \" x \""},
           {"3. and .5 5, ,5", "3 . and . 5 5 , , 5"},
           {"a.b,c", "a . b , c"},
           {"don't stop-\nping", "don't stopping"},
           {"1-2 -3 a-4", "1 - 2 -3 a-4"},
           {"tab\there\u00a0nbsp\u2028ls", "tab here nbsp ls"},
           {"[x] {y} ^z^ ~w~ `v` @u #t *s +r =q <p> |o| \\n _m_",
            "[ x ] { y } ^ z ^ ~ w ~ ` v ` @ u # t * s + r = q < p > | o | \\ "
            "n _ m _"},
           {"…“”—–’", "…“”—–’"},
           {"&amp;lt;", "<"},
           {"<skipped>a b", "a b"},
           {"Nr.5 v1.2.3 ...", "Nr . 5 v1.2.3 . . ."},
           {"ü.ü ü,5", "ü . ü ü , 5"},
           {"", ""}}) {
    EXPECT_EQ(Tokenize13a(text), tokens) << text;
  }
}

TEST(BleuTest, SplitsCompoundsFromTheLeftWithoutOverlap) {
  for (const auto& [text, split] :
       std::vector<std::pair<std::string, std::string>>{
           {"rich-text-format", "rich ##AT##-##AT## text ##AT##-##AT## format"},
           {"a-b-c", "a ##AT##-##AT## b-c"},
           {"@-@ x - y -z", "@ ##AT##-##AT## @ x - y -z"},
           {"semi- -x", "semi- -x"},
           {"ab-c-d", "ab ##AT##-##AT## c-d"},
           {"ä-ö", "ä ##AT##-##AT## ö"},
           {"a\u00a0-b", "a\u00a0-b"}}) {
    EXPECT_EQ(SplitCompounds(text), split) << text;
  }
}

TEST(BleuTest, HasTheCountsAndTheScoreOfSacrebleu) {
  const BleuOptions plain;
  struct Case {
    Lines hypotheses;
    Lines references;
    BleuOptions options;
    double score;
    Counts matches;
    Counts totals;
    int64_t hypothesis_length;
    int64_t reference_length;
  };
  const Lines the_cat = {"the cat is on the mat"};
  const Lines sevenfold = {"the the the the the the the"};
  for (const Case& c : std::vector<Case>{
           {ThreeHypotheses(),
            ThreeReferences(),
            plain,
            53.369584,
            {13, 9, 5, 3},
            {15, 12, 9, 6},
            15,
            18},
           {ThreeHypotheses(),
            ThreeReferences(),
            TokenizedBleu(),
            38.494786,
            {10, 6, 3, 1},
            {14, 11, 8, 5},
            14,
            15},
           {{"a b c d e"},
            {"e x d y c z"},
            plain,
            11.510153,
            {3, 0, 0, 0},
            {5, 4, 3, 2},
            5,
            6},
           {{"a b c d e"},
            {"e x d y c z"},
            {.smooth = false},
            0,
            {3, 0, 0, 0},
            {5, 4, 3, 2},
            5,
            6},
           {sevenfold,
            the_cat,
            plain,
            7.809850,
            {2, 0, 0, 0},
            {7, 6, 5, 4},
            7,
            6},
           {{"a b c"}, {"a b c"}, plain, 0, {3, 2, 1, 0}, {3, 2, 1, 0}, 3, 3},
           {{"", "a b c d e"},
            {"x y", "a b c d e"},
            plain,
            67.032005,
            {5, 4, 3, 2},
            {5, 4, 3, 2},
            5,
            7},
           {{"a b c d"},
            {"e f g h"},
            plain,
            0,
            {0, 0, 0, 0},
            {4, 3, 2, 1},
            4,
            4},
           {{"a b c d e f g"},
            {"a b c d e"},
            plain,
            61.478815,
            {5, 4, 3, 2},
            {7, 6, 5, 4},
            7,
            5},
           {{"a b c d"},
            {"a b c d e f"},
            plain,
            60.653066,
            {4, 3, 2, 1},
            {4, 3, 2, 1},
            4,
            6},
           {{""}, {"a"}, plain, 0, {}, {}, 0, 1},
           {{"der Text-Editor mit Rich-Text-Format ist gut heute"},
            {"der Text-Editor mit dem RTF-Format ist sehr gut heute"},
            TokenizedBleu(),
            0,
            {6, 3, 1, 0},
            {7, 6, 5, 4},
            7,
            9},
           {{"der Text-Editor mit Rich-Text-Format ist gut heute"},
            {"der Text-Editor mit dem RTF-Format ist sehr gut heute"},
            TokenizedBleu(/*split_compounds=*/true),
            42.502814,
            {10, 7, 4, 2},
            {13, 12, 11, 10},
            13,
            13}}) {
    const BleuScore score = Bleu(c.hypotheses, c.references, c.options);
    SCOPED_TRACE(c.hypotheses[0]);
    EXPECT_NEAR(score.score, c.score, kTolerance);
    EXPECT_EQ(score.matches, c.matches);
    EXPECT_EQ(score.totals, c.totals);
    EXPECT_EQ(score.hypothesis_length, c.hypothesis_length);
    EXPECT_EQ(score.reference_length, c.reference_length);
  }
  const BleuScore score = Bleu(ThreeHypotheses(), ThreeReferences());
  EXPECT_NEAR(score.brevity_penalty, 0.818731, kTolerance);
  EXPECT_DOUBLE_EQ(score.precisions[3], 0.5);
}

TEST(BleuTest, SaysItsVariantInSacrebleusForm) {
  EXPECT_EQ(BleuSignature({}), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
  EXPECT_EQ(BleuSignature({.lower_case = true}),
            "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp");
  EXPECT_EQ(BleuSignature(TokenizedBleu()),
            "nrefs:1|case:mixed|eff:no|tok:none|smooth:none");
  EXPECT_EQ(BleuSignature(TokenizedBleu(/*split_compounds=*/true)),
            "nrefs:1|case:mixed|eff:no|tok:none+compounds|smooth:none");
}

TEST(BleuTest, RefusesOtherThanPairsOfUtf8) {
  EXPECT_THAT(MessageOf(CorpusBleu({"a", "b", "c"}, {"a", "b"})),
              HasSubstr("hypotheses: 3, references: 2"));
  EXPECT_THAT(MessageOf(CorpusBleu({}, {})), HasSubstr("at least one"));
  EXPECT_THAT(MessageOf(CorpusBleu({"a", "\xC3"}, {"a", "b"})),
              HasSubstr("hypothesis 2 should be UTF-8"));
  EXPECT_THAT(MessageOf(CorpusBleu({"a"}, {"\xFF"})),
              HasSubstr("reference 1 should be UTF-8"));
  EXPECT_THAT(MessageOf(CorpusBleu({"a"}, {"a"}, {.split_compounds = true})),
              HasSubstr("tokenised text only"));
}

// The lines of a file of Multi30k's test set.
Lines TestSet(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  Lines lines = absl::StrSplit(text.value_or(""), '\n');
  lines.pop_back();
  EXPECT_EQ(lines.size(), 1000);
  return lines;
}

TEST(BleuTest, HasSacrebleusScoresOfMulti30k) {
  ETC_SHARED_DATA_OR_SKIP(const std::string german,
                          "data/multi30k/test_2016_flickr.de");
  ETC_SHARED_DATA_OR_SKIP(const std::string english,
                          "data/multi30k/test_2016_flickr.en");
  const Lines references = TestSet(german);
  Lines shortened;
  Lines shifted;
  Lines folded;
  for (size_t i = 0; i < references.size(); ++i) {
    Lines words = absl::StrSplit(references[i], ' ');
    words.pop_back();
    shortened.push_back(absl::StrJoin(words, " "));
    shifted.push_back(
        references[(i + (i % 3 == 0 ? 1 : 0)) % references.size()]);
    folded.push_back(LowerCase(references[i]));
  }
  const BleuScore source = Bleu(TestSet(english), references);
  EXPECT_NEAR(source.score, 0.478288, kTolerance);
  EXPECT_EQ(source.matches, (Counts{1403, 35, 18, 10}));
  EXPECT_EQ(source.totals, (Counts{12955, 11955, 10955, 9955}));
  EXPECT_EQ(source.reference_length, 12106);
  EXPECT_NEAR(Bleu(shortened, references).score, 82.219933, kTolerance);
  EXPECT_NEAR(Bleu(shortened, references, TokenizedBleu()).score, 90.396999,
              kTolerance);
  const BleuScore moved = Bleu(shifted, references);
  EXPECT_NEAR(moved.score, 68.197968, kTolerance);
  EXPECT_EQ(moved.matches, (Counts{8800, 7465, 6754, 6083}));
  EXPECT_NEAR(Bleu(folded, references).score, 23.272363, kTolerance);
  EXPECT_NEAR(Bleu(folded, references, {.lower_case = true}).score, 100,
              kTolerance);
}

// Scores the random corpora that tests/random_bleu.py made, which compares them
// with sacrebleu's scores: one process for all of them.
TEST(RandomBleuTest, ScoresEachCorpus) {
  const char* const folder = std::getenv("ETC_RANDOM_BLEU");
  if (folder == nullptr) {
    GTEST_SKIP() << "needs files that tests/random_bleu.py makes";
  }
  using nlohmann::json;
  const std::string directory = absl::StrCat(folder, "/");
  const auto cases = ReadFile(directory + "cases.json");
  ASSERT_TRUE(cases.ok()) << cases.status();
  json all = json::array();
  for (const json& one : json::parse(*cases)) {
    const json& said = one.at("options");
    const BleuOptions options = {.tokens = said.value("tokens", "13a") == "none"
                                               ? BleuTokens::kWhiteSpace
                                               : BleuTokens::k13a,
                                 .smooth = said.value("smooth", true),
                                 .lower_case = said.value("lower_case", false)};
    const BleuScore score = Bleu(one.at("hypotheses").get<Lines>(),
                                 one.at("references").get<Lines>(), options);
    all.push_back({{"score", score.score},
                   {"matches", score.matches},
                   {"totals", score.totals},
                   {"precisions", score.precisions},
                   {"bp", score.brevity_penalty},
                   {"hypothesis_length", score.hypothesis_length},
                   {"reference_length", score.reference_length},
                   {"signature", BleuSignature(options)}});
  }
  ASSERT_GT(all.size(), 0);
  const absl::Status written =
      WriteFileAtomically(directory + "scores.json", all.dump());
  EXPECT_TRUE(written.ok()) << written;
}

}  // namespace
}  // namespace etc
