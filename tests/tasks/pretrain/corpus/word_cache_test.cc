// WordCache against Tokenizer::Encode, its definition: the same ids for texts
// of any characters, cold and warm, over the point where it begins anew.
// WordPiece with both foldings, also on real text where it is at hand;
// SentencePiece where words are encoded on their own, or scores are whole.

#include "tasks/pretrain/corpus/word_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentencepiece_tokenizer.h"
#include "tasks/text/wordpiece_tokenizer.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/tiny_sentencepiece_model.h"

namespace etc {
namespace {

std::vector<int32_t> Ids(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> ids;
  for (const Token& piece : tokenizer.Encode(text)) {
    ids.push_back(piece.id);
  }
  return ids;
}

// Words, marks, capitals, accents, ideographs, white space of all kinds and
// SentencePiece's own, controls, a final sigma, marks that combine with what is
// before them, and bytes that are not UTF-8.
const std::vector<std::string>& Parts() {
  static const std::vector<std::string>& parts = *new std::vector<std::string>{
      " ",      " ",      " ",
      "\n",     "\t",     "\r\n",
      "a",      "b",      "the",
      "The",    "ab",     "12",
      "12,",    ",",      ".",
      "(",      "é",      "e\u0301",
      "\u0301", "\u0323", "博",
      "推",     "\u00A0", "\u3000",
      "\u2028", "\u200B", "▁",
      "the▁",   "\x01",   "\v",
      "ΣΑΣ",    "Σ",      "İ",
      "\uFFFD", "\xFF",   "\xE5\x8D",
      "don't",  "a-b",    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  return parts;
}

std::string RandomText(uint64_t seed) {
  std::string text;
  const uint64_t size = CombineSeeds({seed, 0}) % 40;
  for (uint64_t i = 1; i <= size; ++i) {
    text += Parts()[CombineSeeds({seed, i}) % Parts().size()];
  }
  return text;
}

void ExpectSameIds(const Tokenizer& tokenizer) {
  WordCache cache(&tokenizer);
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const std::string text = RandomText(seed % 2000);
    // Existing ids stay.
    std::vector<int32_t> ids = {7};
    cache.Encode(text, &ids);
    std::vector<int32_t> expected = Ids(tokenizer, text);
    expected.insert(expected.begin(), 7);
    ASSERT_EQ(ids, expected) << text;
  }
}

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nthe\nThe\n##b\n##a\n12\n##2\n1\n"
    ",\n.\n(\ne\né\n博\ndon\n'\nt\n-\nσας\nσ\nς\nΣ\nΑ\ni\n";

TEST(WordCacheTest, HasTheIdsOfWordPiece) {
  for (const bool lower_case : {true, false}) {
    ExpectSameIds(**ParseWordPieceTokenizer(kVocabulary, "test",
                                            {.lower_case = lower_case}));
  }
}

TEST(WordCacheTest, HasTheIdsOfSentencePieceWordByWord) {
  TemporaryDirectory directory;
  const TinySentencePieceModel model({{"▁", -4.0F},
                                      {"▁the", -2.0F},
                                      {"▁12", -3.0F},
                                      {"▁12,", -2.5F},
                                      {"12", -3.1F},
                                      {"a", -3.0F},
                                      {"▁a", -2.9F},
                                      {"b", -3.0F},
                                      {",", -3.0F},
                                      {"é", -3.0F}});
  const auto tokenizer =
      LoadSentencePieceTokenizer(directory.Write("tiny.model", model.bytes()),
                                 {.split_punctuation = true});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ExpectSameIds(**tokenizer);
}

using Pieces = std::vector<std::pair<std::string, float>>;

std::unique_ptr<Tokenizer> TinySentencePiece(const Pieces& pieces) {
  TemporaryDirectory directory;
  auto tokenizer = LoadSentencePieceTokenizer(
      directory.Write("tiny.model", TinySentencePieceModel(pieces).bytes()));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Scores that are never rounded; "ab" goes over blanks.
TEST(WordCacheTest, HasTheIdsOfSentencePieceWithWholeScores) {
  for (const float score : {0.0F, -7.0F}) {
    Pieces pieces = {{"▁", 0.0F},    {"▁the", 0.0F},   {"▁12", score},
                     {"▁12,", 0.0F}, {"12", 0.0F},     {"a", score},
                     {"▁a", 0.0F},   {"aa", 0.0F},     {"b", -3.0F},
                     {",", 0.0F},    {"é", score},     {"博", 0.0F},
                     {"t", -1.0F},   {"▁ab▁ab", 0.0F}, {"▁t", -1.0F}};
    const auto tokenizer = TinySentencePiece(pieces);
    EXPECT_EQ(tokenizer->cutting_places().blanks, " ");
    EXPECT_EQ(tokenizer->cutting_places().joining,
              (std::vector<std::string>{"ab", "▁"}));
    ExpectSameIds(*tokenizer);
    // All pieces consist of marks.
    pieces.emplace_back("▁▁", 0.0F);
    const auto other = TinySentencePiece(pieces);
    EXPECT_EQ(other->cutting_places().blanks, "");
    ExpectSameIds(*other);
  }
}

// "the" as one piece or as three differs by less than the rounding of a sum of
// many scores: the text before it decides too.
TEST(WordCacheTest, CutsNothingWhereScoresAreRounded) {
  const auto tokenizer = TinySentencePiece({{"▁", -3.1F},
                                            {"▁a", -7.3F},
                                            {"t", -2.7F},
                                            {"h", -3.3F},
                                            {"e", -1.9F},
                                            {"the", -7.900002F}});
  EXPECT_EQ(tokenizer->cutting_places().blanks, "");
  ExpectSameIds(*tokenizer);
}

// 2 MB of books and articles with ETC's vocabulary, whose scores are all 0.
TEST(WordCacheTest, HasTheIdsOfRealTextInSentencePieces) {
  ETC_SHARED_DATA_OR_SKIP(const std::string model,
                          "data/vocab/sentencepiece/bigbird_gpt2.model");
  ETC_SHARED_DATA_OR_SKIP(const std::string articles,
                          "data/wikitext-2/valid.txt");
  ETC_SHARED_DATA_OR_SKIP(const std::string book, "data/books/moby_dick.txt");
  const auto tokenizer = *LoadSentencePieceTokenizer(model);
  EXPECT_EQ(tokenizer->cutting_places().blanks, " ");
  WordCache cache(tokenizer.get());
  int64_t lines = 0;
  for (const std::string& path : {articles, book}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line); ++lines) {
      std::vector<int32_t> ids;
      cache.Encode(line, &ids);
      ASSERT_EQ(ids, Ids(*tokenizer, line)) << line;
    }
  }
  EXPECT_GT(lines, 10'000);
}

// 0.8 MB of articles with the vocabulary of BERT.
TEST(WordCacheTest, HasTheIdsOfRealText) {
  ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                          "data/vocab/bert-uncased/vocab.txt");
  ETC_SHARED_DATA_OR_SKIP(const std::string text, "data/wikitext-2/valid.txt");
  const auto tokenizer = *LoadTokenizer(vocabulary);
  WordCache cache(tokenizer.get());
  std::ifstream file(text);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::vector<int32_t> ids;
    cache.Encode(line, &ids);
    ASSERT_EQ(ids, Ids(*tokenizer, line)) << line;
  }
  EXPECT_GT(lines, 1000);
}

TEST(WordCacheTest, BeginsAnewWhenItIsFull) {
  const auto tokenizer = *ParseWordPieceTokenizer(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n##0\n##1\n##"
      "2\n"
      "##3\n##4\n##5\n##6\n##7\n##8\n##9\n",
      "test");
  // Each word comes again at once, and when the cache has begun anew.
  WordCache cache(tokenizer.get(), /*most_words=*/100);
  for (int i = 0; i < 1000; ++i) {
    const std::string word = absl::StrCat(i / 2 % 150);
    std::vector<int32_t> ids;
    cache.Encode(word, &ids);
    ASSERT_EQ(ids, Ids(*tokenizer, word)) << i;
  }
}

}  // namespace
}  // namespace etc
