// Correlations against those of scikit-learn and SciPy (doc/glue.md 12.2), to
// the seven digits that are given, and degenerate cases (doc/glue.md 7).

#include "tasks/task/label_metrics.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/digit_labels.h"

namespace etc {
namespace {

constexpr double kTolerance = 6e-8;

TEST(MatthewsCorrelationTest, IsThatOfScikitLearn) {
  const auto matthews = [](const char* gold, const char* predicted) {
    return MatthewsCorrelation(DigitLabels(gold), DigitLabels(predicted));
  };
  EXPECT_NEAR(matthews("1011001011", "1001011011"), 0.5833333, kTolerance);
  EXPECT_NEAR(matthews("1100", "0011"), -1, kTolerance);
  EXPECT_NEAR(matthews("0122100211", "0222101210"), 0.5606061, kTolerance);
  for (const auto& [gold, predicted] :
       {std::pair("1110", "1111"), std::pair("0000", "0000"),
        std::pair("001", "000"), std::pair("", "")}) {
    EXPECT_EQ(matthews(gold, predicted), 0) << gold;
  }
}

TEST(MatthewsCorrelationTest, TakesMoreThan64Bits) {
  // Twice as many right as wrong in each class: (2 - 1) / 3.
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
  for (int64_t i = 0; i < 600'000; ++i) {
    gold.push_back(std::to_string(i % 2));
    predicted.push_back(std::to_string(i % 6 < 4 ? i % 2 : 1 - i % 2));
  }
  EXPECT_NEAR(MatthewsCorrelation(gold, predicted), 1.0 / 3, 1e-12);
}

struct Correlations {
  std::vector<double> gold;
  std::vector<double> predicted;
  double pearson;
  double spearman;
};

TEST(CorrelationTest, IsThatOfScipy) {
  for (const auto& [gold, predicted, pearson, spearman] :
       std::vector<Correlations>{
           {{5, 4.75, 2.4, 2.75, 2.615}, {4.8, 4.9, 1.2, 3, 2}, 0.9514693, 0.9},
           {{0, 0, 1, 1, 2, 2, 3, 5},
            {.1, .1, .4, .3, .3, 2.2, 2.2, 4.9},
            0.9267801,
            0.9074074},
           {{1, 2, 3, 4}, {4, 3, 2, 1}, -1, -1},
           {{1, 2, 3, 4}, {10, 20, 30, 41}, 0.9997173, 1},
           {{1, 1, 1}, {1, 2, 3}, 0, 0},
           {{1, 2, 3}, {2, 2, 2}, 0, 0},
           {{}, {}, 0, 0}}) {
    SCOPED_TRACE(testing::PrintToString(gold));
    EXPECT_NEAR(PearsonCorrelation(gold, predicted), pearson, kTolerance);
    EXPECT_NEAR(SpearmanCorrelation(gold, predicted), spearman, kTolerance);
  }
}

TEST(CorrelationTest, DoesNotDependOnALargeMean) {
  const std::vector<double> gold = {1, 2, 4};
  const std::vector<double> shifted = {1e8 + 1, 1e8 + 2, 1e8 + 4};
  EXPECT_NEAR(PearsonCorrelation(gold, shifted), 1, 1e-12);
}

// Squares of these are 0 or infinite.
TEST(CorrelationTest, DoesNotDependOnTheScale) {
  const std::vector<double> gold = {1, 2, 4, 3};
  for (const double scale : {1e-200, 1e-305, 1e200, 1e305}) {
    const std::vector<double> scaled = {2 * scale, 4 * scale, 8 * scale,
                                        6 * scale};
    EXPECT_NEAR(PearsonCorrelation(gold, scaled), 1, 1e-12) << scale;
    EXPECT_NEAR(PearsonCorrelation(scaled, gold), 1, 1e-12) << scale;
    EXPECT_NEAR(SpearmanCorrelation(gold, scaled), 1, 1e-12) << scale;
  }
}

TEST(CorrelationTest, RefusesOtherSizes) {
  const std::vector<double> two = {1, 2};
  const std::vector<double> one = {1};
  EXPECT_THROW(PearsonCorrelation(two, one), std::invalid_argument);
  EXPECT_THROW(SpearmanCorrelation(two, one), std::invalid_argument);
  EXPECT_THROW(MatthewsCorrelation(DigitLabels("01"), DigitLabels("0")),
               std::invalid_argument);
}

}  // namespace
}  // namespace etc
