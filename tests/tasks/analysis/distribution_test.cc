// Entropy, divergence and block quantities against the golden numbers of the
// toy model (doc/attention_analysis.md), from its probabilities. The file has
// quantities to 6 decimals and probabilities to 8, so the tolerance is 1e-6:
// 5e-7, and 10 probabilities' 5e-9 by |ln p| + 1 < 5. Histograms against
// numbers that are known exactly.

#include "tasks/analysis/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tests/support/shared_data.h"

namespace etc {
namespace {

using Numbers = std::vector<double>;

TEST(DistributionTest, PairsAreThoseOfTheDefinition) {
  EXPECT_EQ(JensenShannon(Numbers{0.7, 0.3}, Numbers{0.7, 0.3}), 0.0);
  EXPECT_EQ(JensenShannon(Numbers{1, 0}, Numbers{0, 1}), 1.0);
  EXPECT_NEAR(JensenShannon(Numbers{0.5, 0.5}, Numbers{1, 0}), 0.311278, 1e-6);
  EXPECT_NEAR(JensenShannon(Numbers{.7, .2, .1}, Numbers{.1, .2, .7}), 0.365148,
              1e-6);
  EXPECT_NEAR(JensenShannon(Numbers{.9, .1, 0}, Numbers{.8, 0, .2}), 0.152123,
              1e-6);
  EXPECT_EQ(Entropy(Numbers{1, 0}), 0.0);
  EXPECT_NEAR(Entropy(Numbers(512, 1.0 / 512)), std::log(512.0), 1e-12);
}

TEST(DistributionTest, GoldenNumbersOfTheToyModel) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "golden/text_tasks/analysis.json");
  const nlohmann::json golden = nlohmann::json::parse(*ReadFile(path));
  for (const char* mode : {"off", "sum", "mean"}) {
    const nlohmann::json& all = golden.at(mode);
    for (const std::string side : {"long", "global"}) {
      const size_t own_keys = side == "long" ? 7 : 3;
      const char* mass = side == "long" ? "l2l_mass" : "g2g_mass";
      for (size_t head = 0; head < 2; ++head) {
        for (size_t row = 0; row < own_keys; ++row) {
          SCOPED_TRACE(testing::Message() << mode << ", " << side << ", head "
                                          << head << ", row " << row);
          std::vector<Numbers> layers;
          for (const char* name : {"layer0", "layer1"}) {
            const nlohmann::json& layer = all.at(name);
            const Numbers p = layer.at(side + "_probs").at(head).at(row);
            const double entropy = layer.at(side + "_entropy").at(head).at(row);
            EXPECT_NEAR(Entropy(p), entropy, 1e-6);
            const auto span = absl::MakeConstSpan(p);
            const BlockEntropy split =
                SplitEntropy(span.subspan(0, own_keys), span.subspan(own_keys));
            EXPECT_NEAR(split.own_mass,
                        layer.at(mass).at(head).at(row).get<double>(), 1e-6);
            EXPECT_NEAR(split.joint(), entropy, 1e-6);
            layers.push_back(p);
          }
          EXPECT_NEAR(JensenShannon(layers[0], layers[1]),
                      all.at("jsd_" + side).at(head).at(row).get<double>(),
                      1e-6);
        }
      }
    }
  }
}

TEST(DistributionTest, BlockWithoutMassHasNoEntropy) {
  const BlockEntropy split = SplitEntropy(Numbers{0.5, 0.5}, Numbers{0, 0});
  EXPECT_EQ(split.own_mass, 1.0);
  EXPECT_EQ(split.other, 0.0);
  EXPECT_NEAR(split.joint(), std::log(2.0), 1e-15);
  EXPECT_NEAR(NormalisedEntropy(split.joint(), 2), 1.0, 1e-15);
}

TEST(StreamingHistogramTest, MedianIsTheLowestPointOfHalfTheCount) {
  StreamingHistogram histogram(0, 1);
  for (const double value : {0.1, 0.2, 0.3, 0.4}) {
    histogram.Add(value);
  }
  EXPECT_NEAR(histogram.Quantile(0.5), 0.201, 1e-12);
}

TEST(StreamingHistogramTest, MergedPartsAreTheWhole) {
  StreamingHistogram whole(0, 6), first(0, 6), second(0, 6);
  for (int i = 0; i < 997; ++i) {
    const double value = 3.0 + 2.9 * std::sin(i * 0.7);
    whole.Add(value);
    (i < 300 ? first : second).Add(value);
  }
  StreamingHistogram empty(0, 6);
  first.Merge(empty);
  first.Merge(second);
  empty.Merge(first);
  EXPECT_EQ(empty.counts(), whole.counts());
  EXPECT_EQ(empty.count(), 997);
  EXPECT_NEAR(empty.mean(), whole.mean(), 1e-12);
  EXPECT_NEAR(empty.standard_deviation(), whole.standard_deviation(), 1e-12);
  EXPECT_EQ(empty.least(), whole.least());
  EXPECT_EQ(empty.greatest(), whole.greatest());
}

TEST(StreamingHistogramTest, NumbersAtAndBeyondTheEndsCountInTheLastBins) {
  StreamingHistogram histogram(0, 1, 10);
  histogram.Add(1.0);
  histogram.Add(1.0000001);
  histogram.Add(-1e-9);
  EXPECT_EQ(histogram.counts().back(), 2);
  EXPECT_EQ(histogram.counts().front(), 1);
}

TEST(MedianColourTest, ChangesBesideTheThresholds) {
  EXPECT_EQ(ColourOfEntropy(4.5), MedianColour::kYellow);
  EXPECT_EQ(ColourOfEntropy(4.5000001), MedianColour::kRed);
  EXPECT_EQ(ColourOfEntropy(1.5), MedianColour::kYellow);
  EXPECT_EQ(ColourOfEntropy(1.4999), MedianColour::kBlue);
  EXPECT_EQ(ColourOfDivergence(0.25), MedianColour::kYellow);
  EXPECT_EQ(ColourOfDivergence(0.75), MedianColour::kYellow);
  EXPECT_EQ(ColourOfDivergence(0.7501), MedianColour::kRed);
}

}  // namespace
}  // namespace etc
