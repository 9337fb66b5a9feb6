// KeptSentences on the golden cases of doc/wikihop.md 11.2, and against the
// official rule written out in the simplest way on random documents.

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <numeric>
#include <random>
#include <vector>

#include "tasks/wikihop/example.h"

namespace etc {
namespace {

using ::testing::ElementsAre;

using Pieces = std::vector<std::vector<int64_t>>;

constexpr int64_t kNoLimit = 1000000;

// Documents of so many sentences with `pieces` pieces each.
Pieces Documents(const std::vector<size_t>& counts, int64_t pieces = 1) {
  Pieces documents;
  for (const size_t count : counts) {
    documents.emplace_back(count, pieces);
  }
  return documents;
}

TEST(KeptSentencesTest, MatchesGoldenCases) {  // doc/wikihop.md 11.2
  EXPECT_THAT(KeptSentences(Documents({3, 5, 5, 1}), 14 - 4, kNoLimit),
              ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(KeptSentences(Documents({3, 5, 5, 1}), 14 - 5, kNoLimit),
              ElementsAre(2, 3, 3, 1));
  EXPECT_THAT(KeptSentences(Documents({2, 2, 2}), 6 - 4, kNoLimit),
              ElementsAre(0, 1, 1));
}

TEST(KeptSentencesTest, KeepsAllThatJustFits) {
  EXPECT_THAT(KeptSentences(Documents({2, 3}, 7), 5, 35), ElementsAre(2, 3));
  EXPECT_THAT(KeptSentences(Documents({2, 3}, 7), 5, 34), ElementsAre(2, 2));
  EXPECT_THAT(KeptSentences(Documents({2, 3}, 7), 4, 35), ElementsAre(2, 2));
}

TEST(KeptSentencesTest, TakesFromMostSentencesEvenForPieces) {
  // The first document has more pieces, the second more sentences.
  EXPECT_THAT(KeptSentences({{90, 90}, {1, 1, 1, 1}}, kNoLimit, 183),
              ElementsAre(2, 3));
  EXPECT_THAT(KeptSentences({{90, 90}, {1, 1, 1, 1}}, kNoLimit, 181),
              ElementsAre(1, 2));
}

TEST(KeptSentencesTest, CanDropEverything) {
  EXPECT_THAT(KeptSentences(Documents({2, 0, 1}), 0, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(KeptSentences({}, 0, 0), ElementsAre());
  EXPECT_THROW(KeptSentences({}, 0, -1), c10::Error);
}

// The queue as a plain list in order of waiting.
std::vector<int64_t> KeptSentencesReference(const Pieces& documents,
                                            int64_t max_sentences,
                                            int64_t max_pieces) {
  std::vector<int64_t> kept;
  std::list<size_t> waiting;
  int64_t sentences = 0;
  int64_t pieces = 0;
  for (const std::vector<int64_t>& document : documents) {
    waiting.push_back(kept.size());
    kept.push_back(static_cast<int64_t>(document.size()));
    sentences += kept.back();
    pieces = std::accumulate(document.begin(), document.end(), pieces);
  }
  while (sentences > max_sentences || pieces > max_pieces) {
    auto longest = waiting.begin();
    for (auto it = waiting.begin(); it != waiting.end(); ++it) {
      if (kept[*it] > kept[*longest]) {
        longest = it;
      }
    }
    const size_t document = *longest;
    waiting.erase(longest);
    --kept[document];
    --sentences;
    pieces -= documents[document][static_cast<size_t>(kept[document])];
    waiting.push_back(document);
  }
  return kept;
}

TEST(KeptSentencesTest, MatchesThePlainRule) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    Pieces documents(random() % 8);
    int64_t pieces = 0;
    for (std::vector<int64_t>& document : documents) {
      document.resize(random() % 9);
      for (int64_t& sentence : document) {
        sentence = static_cast<int64_t>(random() % 12);
        pieces += sentence;
      }
    }
    const auto max_sentences = static_cast<int64_t>(random() % 40);
    const auto max_pieces =
        static_cast<int64_t>(random() % static_cast<uint64_t>(pieces + 1));
    EXPECT_EQ(KeptSentences(documents, max_sentences, max_pieces),
              KeptSentencesReference(documents, max_sentences, max_pieces))
        << "round " << round;
  }
}

}  // namespace
}  // namespace etc
