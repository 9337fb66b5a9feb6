// Matching a classifier's outputs in a file to the labels of a task: by name in
// any order, by number where a side has no names, and not at all where the
// names are others.
#include "etc/weights/output_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace etc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MatchOutputsTest, MatchesByNameInAnyOrder) {
  const OutputMatch same = MatchOutputs({"a", "b"}, {"a", "b"}, 2);
  EXPECT_THAT(same.rows, ElementsAre(0, 1));
  EXPECT_EQ(same.message, "");
  const OutputMatch match = MatchOutputs({"a", "b", "c"}, {"c", "a", "b"}, 3);
  EXPECT_THAT(match.rows, ElementsAre(1, 2, 0));
  EXPECT_THAT(match.message, HasSubstr("by name: 1 is \"a\", 2 is \"b\""));
  EXPECT_FALSE(match.is_guess);
  EXPECT_THAT(MatchOutputs({"a", "b"}, {"c", "B", "A"}, 3).rows,
              ElementsAre(2, 1))
      << "without regard to case, the others left out";
  EXPECT_THAT(MatchOutputs({"a", "A"}, {"A", "a"}, 2).rows, ElementsAre(1, 0));
}

TEST(MatchOutputsTest, RefusesOtherNames) {
  for (const std::vector<std::string>& theirs :
       {std::vector<std::string>{"a", "c"}, {"A", "a"}, {"b", "c", "d"}}) {
    const OutputMatch match =
        MatchOutputs({"a", "b"}, theirs, static_cast<int64_t>(theirs.size()));
    EXPECT_THAT(match.rows, IsEmpty());
    EXPECT_THAT(match.message, HasSubstr("but the labels are \"a\", \"b\""));
  }
  EXPECT_THAT(MatchOutputs({"a", "b"}, {}, 3).rows, IsEmpty());
}

TEST(MatchOutputsTest, CountsWhereASideHasNoNames) {
  // A guess: nobody says what the outputs are.
  const OutputMatch guess = MatchOutputs({"no", "yes"}, {}, 2);
  EXPECT_THAT(guess.rows, ElementsAre(0, 1));
  EXPECT_TRUE(guess.is_guess);
  EXPECT_THAT(guess.message, HasSubstr("0 is \"no\", 1 is \"yes\""));
  EXPECT_THAT(MatchOutputs({"no", "yes"}, {"1", "0"}, 2).rows,
              ElementsAre(1, 0));
  // The data say which number each class has.
  const OutputMatch numbers = MatchOutputs({"1", "0"}, {"bad", "good"}, 2);
  EXPECT_THAT(numbers.rows, ElementsAre(1, 0));
  EXPECT_FALSE(numbers.is_guess);
  EXPECT_THAT(numbers.message, HasSubstr("0 is \"bad\""));
  EXPECT_THAT(MatchOutputs({"0", "1"}, {}, 2).rows, ElementsAre(0, 1));
  // Sorted as texts, as the labels of data are.
  EXPECT_THAT(MatchOutputs({"LABEL_0", "LABEL_1", "LABEL_2"}, {}, 3).rows,
              ElementsAre(0, 1, 2));
  EXPECT_THAT(MatchOutputs({"LABEL_1", "LABEL_10", "LABEL_2"}, {}, 11).rows,
              ElementsAre(1, 10, 2));
}

}  // namespace
}  // namespace etc
