// Words and answers' pieces of SQuAD and HotpotQA (doc/squad.md 2 and 3,
// doc/hotpotqa.md 2.1, 2.2 and 10.3), by hand.

#include "tasks/inputs/unigrams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitUnigramsTest, SplitsAtFiveCharactersOnly) {  // doc/hotpotqa.md 10.3
  const std::string text = "  Ab c\u202fd ";
  std::vector<std::string> unigrams;
  for (const ByteRange& range : SplitUnigrams(text)) {
    unigrams.push_back(
        text.substr(static_cast<size_t>(range.begin),
                    static_cast<size_t>(range.end - range.begin)));
  }
  EXPECT_THAT(unigrams, ElementsAre("Ab", "c", "d"));
  EXPECT_EQ(SplitUnigrams("a\u00a0b\u2003c").size(), 1u);
  EXPECT_EQ(SplitUnigrams("a\tb\rc\nd").size(), 4u);
  EXPECT_THAT(SplitUnigrams(" \u202f"), IsEmpty());
}

struct Items {
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const Items&, const Items&) = default;
};

TEST(FirstOccurrenceTest, IsWithinTheSpanOrTheSpan) {
  const std::vector<Token> pieces = {{1}, {2}, {3}, {2}, {3}, {2}};
  const auto found = [&](const std::vector<Token>& answer, Items span) {
    return FirstOccurrence(answer, span, pieces);
  };
  EXPECT_EQ(found({{2}, {3}}, {0, 5}), (Items{1, 2}));
  EXPECT_EQ(found({{2}, {3}}, {2, 5}), (Items{3, 4}));
  EXPECT_EQ(found({{2}, {3}}, {4, 5}), (Items{4, 5}));
  EXPECT_EQ(found({{2}}, {5, 5}), (Items{5, 5}));
  EXPECT_EQ(found({{3}, {2}, {3}}, {0, 3}), (Items{0, 3}));
  // An answer without pieces, and words without some.
  EXPECT_EQ(found({}, {1, 2}), (Items{1, 2}));
  EXPECT_EQ(found({{2}}, {6, 5}), (Items{6, 5}));
}

}  // namespace
}  // namespace etc
