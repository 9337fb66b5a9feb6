// The definitions of entropy, divergence and block quantities that
// AttentionPass is tested against, by the golden numbers of the toy model
// (doc/attention_analysis.md), from its probabilities. The file has quantities
// to 6 decimals and probabilities to 8, so the tolerance is 1e-6: 5e-7, and 10
// probabilities' 5e-9 by |ln p| + 1 < 5.

#include "tests/tasks/analysis/definitions.h"

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

TEST(AnalysisDefinitionsTest, PairsAreThoseOfTheDefinition) {
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

TEST(AnalysisDefinitionsTest, GoldenNumbersOfTheToyModel) {
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

TEST(AnalysisDefinitionsTest, BlockWithoutMassHasNoEntropy) {
  const BlockEntropy split = SplitEntropy(Numbers{0.5, 0.5}, Numbers{0, 0});
  EXPECT_EQ(split.own_mass, 1.0);
  EXPECT_EQ(split.other, 0.0);
  EXPECT_NEAR(split.joint(), std::log(2.0), 1e-15);
}

}  // namespace
}  // namespace etc
