// The numbers that the look of a page becomes: the golden values of
// doc/openkp.md 3.6, 4.1, 10.7 and 10.8, to 1e-6.

#include "tasks/openkp/visual_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr float kTolerance = 1e-5F;

TEST(ScaleToUnitTest, ClipsAndCentres) {  // doc/openkp.md 10.7
  for (const auto& [value, scaled] : std::vector<std::pair<double, double>>{
           {-15, 0}, {-12, 0.6}, {-20, -1}, {5, 1}, {-100, -1}}) {
    EXPECT_NEAR(ScaleToUnit(value, {-20, -10}), scaled, 1e-12);
  }
}

TEST(FontIdTest, IsThatOfTheFirstCutoffNotBelow) {  // doc/openkp.md 3.6
  for (const auto& [size, id] :
       std::vector<std::pair<double, int64_t>>{{-3, 0},
                                               {0, 0},
                                               {1, 1},
                                               {8, 1},
                                               {9, 2},
                                               {12, 5},
                                               {13, 6},
                                               {20, 13},
                                               {24, 17},
                                               {25, 18},
                                               {29, 18},
                                               {30, 19},
                                               {34, 19},
                                               {35, 20},
                                               {39, 20},
                                               {44, 21},
                                               {49, 22},
                                               {50, 23},
                                               {100, 23}}) {
    EXPECT_EQ(FontId(size), id) << size;
  }
}

TEST(FontIdTest, RoundsHalvesToEven) {  // doc/openkp.md 11, trap 14
  EXPECT_EQ(FontId(8.5), 1);
  EXPECT_EQ(FontId(9.5), 3);
  EXPECT_EQ(FontId(8.51), 2);
  EXPECT_EQ(FontId(0.5), 0);
}

OpenkpElement SpecElement(size_t index) {
  return OpenkpSpecRecord(StarTrekPieces(), {}).elements[index];
}

TEST(CrossIdTest, HasTheFirstIndicatorInFront) {  // doc/openkp.md 4.1, 10.8
  const OpenkpVisualOptions options;
  EXPECT_EQ(CrossId(SpecElement(0), options), 6);
  EXPECT_EQ(CrossId(SpecElement(1), options), 1);
  EXPECT_EQ(options.CrossVocabulary(), 8);
  const OpenkpVisualOptions others = {
      .crossed_indicators = {"bold", "parent_bold", "block", "heading"}};
  EXPECT_EQ(CrossId(SpecElement(0), others), 3);
  EXPECT_EQ(CrossId(SpecElement(1), others), 12);
}

TEST(CrossIdTest, CountsInBinary) {  // doc/openkp.md 10.7
  const OpenkpVisualOptions options = {
      .crossed_indicators = {"block", "inline", "heading"}};
  OpenkpElement element;
  for (const auto& [bits, id] :
       std::vector<std::pair<std::vector<bool>, int64_t>>{
           {{false, true, false}, 2},
           {{true, false, true}, 5},
           {{false, false, true}, 1},
           {{true, true, true}, 7}}) {
    element.node.is_block = bits[0];
    element.node.is_inline = bits[1];
    element.node.in_heading = bits[2];
    EXPECT_EQ(CrossId(element, options), id);
  }
}

TEST(DenseFeaturesTest, HaveTheirOwnOrder) {  // doc/openkp.md 10.8; trap 1
  EXPECT_EQ(OpenkpVisualOptions().DenseSize(), 13);
  EXPECT_THAT(
      DenseFeatures(SpecElement(0), {}),
      Pointwise(FloatNear(kTolerance),
                {-0.8787097, -0.9576860, -0.0293333, -0.995, -0.8787097,
                 -0.9576860, -0.0293333, -0.995, 0.0, 0.0, 1.0, 0.0, 0.0}));
  const std::vector<float> second = DenseFeatures(SpecElement(1), {});
  EXPECT_THAT(std::vector<float>(second.begin(), second.begin() + 4),
              Pointwise(FloatNear(kTolerance),
                        {-0.6670968, -0.9378512, -0.9346667, -0.9983333}));
  EXPECT_THAT(std::vector<float>(second.begin() + 8, second.end()),
              Pointwise(FloatNear(0), {0, 0, 0, 0, 1}));
}

TEST(DenseFeaturesTest, AreThoseOfZerosForPadding) {  // doc/openkp.md 4.1
  EXPECT_THAT(DenseFeatures({}, {}),
              Pointwise(FloatNear(kTolerance),
                        {-0.93548, -0.98347, -1.0, -1.0, -0.93548, -0.98347,
                         -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
}

TEST(DenseFeaturesTest, HaveAllIndicatorsThatAreNotCrossed) {
  const OpenkpVisualOptions options = {.crossed_indicators = {"leaf"}};
  EXPECT_EQ(options.DenseSize(), 15);
  const std::vector<float> dense = DenseFeatures(SpecElement(0), options);
  ASSERT_EQ(dense.size(), 15u);
  EXPECT_EQ(dense[8], 1);   // block
  EXPECT_EQ(dense[10], 1);  // heading
}

}  // namespace
}  // namespace etc
