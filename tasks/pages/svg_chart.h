#ifndef ETC_TASKS_PAGES_SVG_CHART_H_
#define ETC_TASKS_PAGES_SVG_CHART_H_

#include <cstddef>
#include <string>
#include <vector>

namespace etc {

// A point of a line, with the range of a band around it; low == high: none.
struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = 0;
  double high = 0;
};

// A line of a chart, and the band around it.
struct ChartSeries {
  // Plain text.
  std::string name;
  // Sorted by x. Points that are not finite are left out.
  std::vector<ChartPoint> points;
};

// A chart of lines over a common x axis.
struct LineChart {
  // Plain text, each with its unit: "learning rate", "tokens/s".
  std::string title;
  std::string x_label;
  std::string y_label;
  // Series i has colour and dashes i (SeriesKey).
  std::vector<ChartSeries> series = {};
  // Logarithmic y axis; points that are not positive are left out. Its ticks
  // are powers of ten if there are two, else 1, 2 and 5 times these if there
  // are three, else evenly apart.
  bool log_y = false;
  // Includes 0 in the y axis.
  bool from_zero = false;
};

// Numbers for the ticks of an axis from `low` to `high`: 1, 2 or 5 times a
// power of ten apart, about `count` of them, all within the range.
std::vector<double> ChartTicks(double low, double high, int count);

// "25k", "0.002", "1e-05": a number beside a tick, with as many digits as tell
// it from that of a tick `step` away; 0: there is none.
std::string ChartNumber(double value, double step = 0);

// The chart as a <figure> of HTML with inline SVG, coloured by the properties
// of ToHtml (html_page.h). 340 units wide, so that it is readable at 340 pixels
// and grows with its column; no two ticks of an axis have the same number.
// Without a point it says "no values yet".
std::string ToSvg(const LineChart& chart);

// A piece of the line of series `index` as inline SVG, for legends: its colour
// and dashes. Lines are told apart without colour for 4 series, with colour for
// 32.
std::string SeriesKey(size_t index);

}  // namespace etc

#endif  // ETC_TASKS_PAGES_SVG_CHART_H_
