// The warning of a run where residual scores are so large that bringing them
// back by subtraction rounds: once, with "reverse" alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using ScoreWarningTest = ToyRunTest;

constexpr char kWarning[] = "attention scores reach ";

TEST_F(ScoreWarningTest, IsGivenOnceWhereScoresAreReversed) {
  // Queries and keys of about 80 give scores of about 20,000.
  json_["model"]["initializer_range"] = 20;
  json_["train"]["learning_rate"] = 1e-5;
  FakeReporter reporter;
  const auto result = Run("reverse", &reporter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(reporter.warnings, Contains(StartsWith(kWarning)).Times(1));
  EXPECT_THAT(reporter.warnings, Contains(HasSubstr("\"recompute\"")));
  for (const char* storage : {"recompute", "store"}) {
    json_["train"]["score_storage"] = storage;
    FakeReporter exact;
    ASSERT_TRUE(Run(storage, &exact).ok());
    EXPECT_THAT(exact.warnings, Not(Contains(StartsWith(kWarning)))) << storage;
  }
}

TEST_F(ScoreWarningTest, IsNotGivenOfOrdinaryScores) {
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  EXPECT_THAT(reporter.warnings, Not(Contains(StartsWith(kWarning))));
}

}  // namespace
}  // namespace etc
