// Cuts of sentences and documents: the tests published with ReadTwice and cases
// made from them (doc/pretraining.md 12.3, golden/text_tasks/ etc_input.json),
// and the bounds that hold for any document.

#include "tasks/pretrain/examples/document_parts.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/pretrain/examples/draws.h"
#include "tests/support/shared_data.h"
#include "tests/tasks/pretrain/golden_file.h"

namespace etc {
namespace {

using ::testing::ElementsAre;

constexpr absl::string_view kGolden = "golden/text_tasks/etc_input.json";
constexpr int64_t kNoLimit = int64_t{1} << 40;

std::vector<int64_t> EndsOf(int64_t num_tokens,
                            const std::vector<int>& continues,
                            const SentenceSplitOptions& options) {
  return SplitSentence(
      num_tokens,
      [&continues](int64_t i) {
        return !continues.empty() && continues[static_cast<size_t>(i)] != 0;
      },
      options);
}

TEST(SplitSentenceTest, IsGolden) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json cases = ReadGolden(path)["split_sentence"];
  ASSERT_EQ(cases.size(), 30);
  for (const nlohmann::json& golden : cases) {
    const nlohmann::json& continues = golden["is_continuation"];
    EXPECT_EQ(EndsOf(golden["n"].get<int64_t>(),
                     continues.is_null() ? std::vector<int>()
                                         : continues.get<std::vector<int>>(),
                     {.max_tokens = golden["max_tokens"].get<int64_t>(),
                      .min_graceful = golden["min_graceful"].get<int64_t>()}),
              golden["ends"].get<std::vector<int64_t>>())
        << golden;
  }
}

// The published ones.
TEST(SplitSentenceTest, CutsAtWords) {
  std::vector<int> alternating(20);
  for (size_t i = 0; i < 20; ++i) {
    alternating[i] = static_cast<int>(i % 2);
  }
  EXPECT_THAT(EndsOf(20, {}, {.max_tokens = 10}), ElementsAre(10, 20));
  EXPECT_THAT(EndsOf(20, {}, {.max_tokens = 7}), ElementsAre(7, 14, 20));
  EXPECT_THAT(EndsOf(20, alternating, {.max_tokens = 8}),
              ElementsAre(8, 16, 20));
  EXPECT_THAT(EndsOf(20, alternating, {.max_tokens = 7}),
              ElementsAre(6, 12, 18, 20));
  EXPECT_THAT(EndsOf(20, alternating, {.max_tokens = 5}),
              ElementsAre(4, 8, 12, 16, 20));
  EXPECT_THAT(EndsOf(20, alternating, {.max_tokens = 7, .min_graceful = 7}),
              ElementsAre(7, 14, 20));
  EXPECT_THAT(EndsOf(20, alternating, {.max_tokens = 5, .min_graceful = 5}),
              ElementsAre(5, 10, 15, 20));
}

TEST(SplitSentenceTest, KeepsWhatIsNotTooLong) {
  const std::vector<int> one_word(8, 1);
  EXPECT_THAT(EndsOf(8, one_word, {.max_tokens = 8}), ElementsAre(8));
  EXPECT_THAT(EndsOf(7, one_word, {.max_tokens = 8}), ElementsAre(7));
  // A word without an end is cut hard.
  EXPECT_THAT(EndsOf(8, one_word, {.max_tokens = 3, .min_graceful = 2}),
              ElementsAre(3, 6, 8));
}

TEST(SplitDocumentTest, IsGolden) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path, std::string(kGolden));
  const nlohmann::json cases = ReadGolden(path)["split_document"];
  ASSERT_EQ(cases.size(), 20);
  for (const nlohmann::json& golden : cases) {
    const nlohmann::json& most = golden["max_sentences"];
    EXPECT_EQ(SplitDocument(golden["lengths"].get<std::vector<int64_t>>(),
                            golden["max_tokens"].get<int64_t>(),
                            most.is_null() ? kNoLimit : most.get<int64_t>()),
              golden["parts"].get<std::vector<int64_t>>())
        << golden;
  }
}

// The published ones.
TEST(SplitDocumentTest, LevelsParts) {
  const auto ones = [](size_t n) { return std::vector<int64_t>(n, 1); };
  EXPECT_THAT(SplitDocument(ones(12), 4, kNoLimit), ElementsAre(4, 4, 4));
  EXPECT_THAT(SplitDocument(ones(11), 5, kNoLimit), ElementsAre(4, 4, 3));
  EXPECT_THAT(SplitDocument({5, 5, 5}, 9, kNoLimit), ElementsAre(1, 1, 1));
  EXPECT_THAT(SplitDocument(ones(9), 9, 4), ElementsAre(4, 4, 1));
}

TEST(SplitDocumentTest, PartsNeverExceedTheirLimits) {
  for (uint64_t key = 0; key < 200; ++key) {
    KeyedDraws draws({key});
    const int64_t max_tokens = draws.Integer(5, 60);
    const int64_t max_sentences = draws.Integer(1, 9);
    std::vector<int64_t> lengths;
    for (int64_t i = draws.Integer(0, 40); i > 0; --i) {
      lengths.push_back(draws.Integer(1, max_tokens));
    }
    size_t sentence = 0;
    for (const int64_t part :
         SplitDocument(lengths, max_tokens, max_sentences)) {
      EXPECT_GE(part, 1);
      EXPECT_LE(part, max_sentences);
      int64_t tokens = 0;
      for (int64_t i = 0; i < part; ++i) {
        tokens += lengths.at(sentence++);
      }
      EXPECT_LE(tokens, max_tokens);
    }
    EXPECT_EQ(sentence, lengths.size());
  }
}

}  // namespace
}  // namespace etc
