#include "tasks/pages/svg_chart.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(ChartTicksTest, AreRoundAndWithinTheRange) {
  EXPECT_THAT(ChartTicks(-10, 300, 5), ElementsAre(0, 100, 200, 300));
  EXPECT_EQ(ChartNumber(ChartTicks(-10, 300, 5)[0]), "0");
  EXPECT_THAT(ChartTicks(0.2, 1.04, 5),
              ElementsAre(DoubleNear(0.2, 1e-12), DoubleNear(0.4, 1e-12),
                          DoubleNear(0.6, 1e-12), DoubleNear(0.8, 1e-12),
                          DoubleNear(1.0, 1e-12)));
  EXPECT_THAT(ChartTicks(3, 3, 5), ElementsAre(3));
  const double next = std::nextafter(1.0, 2.0);
  EXPECT_THAT(ChartTicks(1, next, 5), ElementsAre(1));
  EXPECT_THAT(ChartTicks(-next, -1, 5), ElementsAre(-next));
}

TEST(ChartNumberTest, IsShort) {
  EXPECT_EQ(ChartNumber(0.001), "0.001");
  EXPECT_EQ(ChartNumber(1e-5), "1e-05");
  EXPECT_EQ(ChartNumber(25000), "25k");
  EXPECT_EQ(ChartNumber(1.5e6), "1.5M");
  EXPECT_EQ(ChartNumber(2000), "2000");
}

TEST(ChartNumberTest, TellsTicksApart) {
  EXPECT_EQ(ChartNumber(4.963, 0.0005), "4.963");
  EXPECT_EQ(ChartNumber(4.9635, 0.0005), "4.9635");
  EXPECT_EQ(ChartNumber(-1234.25, 0.05), "-1234.25");
  EXPECT_EQ(ChartNumber(100'200, 200), "100.2k");
  EXPECT_EQ(ChartNumber(1'234'500, 500), "1.2345M");
  EXPECT_EQ(ChartNumber(0, 0.0005), "0");
  for (const double low : {4.9628, 4962.8, 496'280.0, 4'962'800.0}) {
    std::set<std::string> texts;
    const std::vector<double> ticks = ChartTicks(low, low * 1.0003, 5);
    for (const double tick : ticks) {
      texts.insert(ChartNumber(tick, ticks[1] - ticks[0]));
    }
    EXPECT_GT(ticks.size(), 2u) << low;
    EXPECT_EQ(texts.size(), ticks.size()) << low;
  }
}

// The numbers beside the y axis.
std::vector<std::string> YNumbers(const LineChart& chart) {
  constexpr absl::string_view kBegin = "text-anchor=\"end\">";
  std::vector<std::string> numbers;
  const std::vector<std::string> parts = absl::StrSplit(ToSvg(chart), kBegin);
  for (size_t i = 1; i < parts.size(); ++i) {
    numbers.push_back(parts[i].substr(0, parts[i].find('<')));
  }
  return numbers;
}

LineChart ChartFrom(double low, double high) {
  return {.title = "t",
          .x_label = "x",
          .y_label = "y",
          .series = {{.name = "a",
                      .points = {{1, low, low, low}, {2, high, high, high}}}}};
}

TEST(ToSvgTest, HasOtherNumbersAtOtherTicks) {
  EXPECT_THAT(YNumbers(ChartFrom(4.9629, 4.9642)),
              ElementsAre("4.963", "4.9635", "4.964"));
}

// The usual norms of gradients are within a decade, or around one power.
TEST(ToSvgTest, HasNumbersOnALogarithmicAxisOfLessThanTwoPowersOfTen) {
  LineChart chart = ChartFrom(2, 8);
  chart.log_y = true;
  EXPECT_THAT(YNumbers(chart), ElementsAre("2", "4", "6", "8"));
  chart = ChartFrom(5, 15);
  chart.log_y = true;
  EXPECT_THAT(YNumbers(chart), Contains("10"));
  EXPECT_THAT(YNumbers(chart), SizeIs(Gt(2u)));
  chart = ChartFrom(1.98, 2.03);
  chart.log_y = true;
  EXPECT_THAT(YNumbers(chart), SizeIs(Gt(2u)));
  chart = ChartFrom(1.2, 80);
  chart.log_y = true;
  EXPECT_THAT(YNumbers(chart), ElementsAre("2", "5", "10", "20", "50"));
  // Room above it is beyond the largest double.
  chart = ChartFrom(3e307, 1.7e308);
  chart.log_y = true;
  EXPECT_THAT(YNumbers(chart),
              AllOf(SizeIs(Gt(2u)), Each(Not(HasSubstr("inf")))));
}

// 340 units of 11 px: six characters have room in the usual margin.
TEST(ToSvgTest, MakesRoomForLongNumbers) {
  EXPECT_THAT(ToSvg(ChartFrom(4.9629, 4.9642)), HasSubstr("<line x1=\"44\""));
  EXPECT_THAT(ToSvg(ChartFrom(1234.0001, 1234.0009)),
              HasSubstr("<line x1=\"63\""));
}

TEST(ToSvgTest, DrawsLinesBandsAndLabels) {
  const LineChart chart = {
      .title = "speed",
      .x_label = "updates",
      .y_label = "tokens/s",
      .series = {
          {.name = "a",
           .points = {{1, 10, 5, 15},
                      {2, std::numeric_limits<double>::quiet_NaN(), 0, 0},
                      {3, 20, 20, 20}}},
          {.name = "b", .points = {{1, 10, 10, 10}, {3, 12, 12, 12}}}}};
  const std::string svg = ToSvg(chart);
  EXPECT_THAT(svg, HasSubstr("<figcaption>speed, tokens/s</figcaption>"));
  EXPECT_THAT(svg, HasSubstr(">updates</text>"));
  EXPECT_THAT(svg, HasSubstr("aria-label=\"speed (tokens/s) by updates\""));
  // The first line is solid and has a band, the second has dashes.
  EXPECT_THAT(svg, HasSubstr("stroke=\"var(--series-1)\"/>"));
  EXPECT_THAT(svg, HasSubstr("fill=\"var(--series-1)\" fill-opacity"));
  EXPECT_THAT(svg, HasSubstr("stroke=\"var(--series-2)\" stroke-dasharray"));
  EXPECT_THAT(svg, Not(HasSubstr("fill=\"var(--series-2)\" fill-opacity")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SeriesKeyTest, TellsThirtyTwoLinesApart) {
  std::set<std::string> keys;
  for (size_t index = 0; index < 32; ++index) {
    keys.insert(SeriesKey(index));
  }
  EXPECT_EQ(keys.size(), 32u);
}

TEST(ToSvgTest, LeavesOutWhatALogarithmHasNot) {
  const LineChart chart = {.title = "t",
                           .x_label = "x",
                           .y_label = "y",
                           .series = {{.name = "a",
                                       .points = {{1, 0, 0, 0},
                                                  {2, 0.01, 0, 0.1},
                                                  {3, 100, 100, 100}}}},
                           .log_y = true};
  const std::string svg = ToSvg(chart);
  EXPECT_THAT(svg, HasSubstr(">0.01</text>"));
  EXPECT_THAT(svg, HasSubstr(">100</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(ToSvg({.title = "t", .x_label = "x", .y_label = "y"}),
              HasSubstr("no values yet"));
}

}  // namespace
}  // namespace etc
