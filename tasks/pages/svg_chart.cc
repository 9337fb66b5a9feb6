#include "tasks/pages/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

constexpr double kWidth = 340;
constexpr double kHeight = 200;
constexpr double kLeft = 44;
constexpr double kRight = 10;
constexpr double kTop = 8;
constexpr double kBottom = 34;
// Lines of more points are drawn without a dot for each.
constexpr size_t kMostDots = 30;
constexpr size_t kColours = 8;
constexpr std::array<const char*, 4> kDashes = {"", "6 3", "2 3", "9 3 2 3"};

std::string StrokeOf(size_t index) {
  // Other dashes for a colour that comes again.
  const char* const dashes =
      kDashes[(index + index / kColours) % kDashes.size()];
  return absl::StrCat("stroke=\"var(--series-", index % kColours + 1, ")\"",
                      *dashes == '\0'
                          ? ""
                          : absl::StrCat(" stroke-dasharray=\"", dashes, "\""));
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool IsDrawn(const LineChart& chart, const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) &&
         (!chart.log_y || point.y > 0);
}

// Maps data to the units of the picture.
class Axes {
 public:
  explicit Axes(const LineChart& chart) : log_y_(chart.log_y) {
    for (const ChartSeries& series : chart.series) {
      for (const ChartPoint& point : series.points) {
        if (IsDrawn(chart, point)) {
          x_.Add(point.x);
          AddY(point.y);
          AddY(point.low);
          AddY(point.high);
        }
      }
    }
    if (empty()) {
      return;
    }
    if (chart.from_zero && !log_y_) {
      y_.Add(0);
    }
    Widen(&x_, /*share=*/0);
    Widen(&y_, /*share=*/0.04);
  }

  bool empty() const { return x_.empty() || y_.empty(); }
  double X(double x) const {
    return kLeft +
           (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    const double height = kHeight - kTop - kBottom;
    const double share = (Scaled(y) - y_.low) / (y_.high - y_.low);
    return kTop + (1 - std::clamp(share, 0.0, 1.0)) * height;
  }
  std::vector<double> XTicks() const { return ChartTicks(x_.low, x_.high, 5); }
  std::vector<double> YTicks() const {
    if (!log_y_) {
      return ChartTicks(y_.low, y_.high, 5);
    }
    std::vector<double> ticks;
    const double step = std::max(1.0, std::ceil((y_.high - y_.low) / 5));
    for (double power = std::ceil(y_.low); power <= y_.high; power += step) {
      ticks.push_back(std::pow(10, power));
    }
    return ticks;
  }

 private:
  double Scaled(double y) const {
    return !log_y_ ? y
           : y > 0 ? std::log10(y)
                   : -std::numeric_limits<double>::infinity();
  }
  void AddY(double y) {
    if (std::isfinite(Scaled(y))) {
      y_.Add(Scaled(y));
    }
  }
  static void Widen(Extent* extent, double share) {
    const double width = extent->high - extent->low;
    if (width <= 0) {
      const double half = extent->low == 0 ? 0.5 : std::abs(extent->low) * 0.05;
      extent->low -= half;
      extent->high += half;
    } else {
      extent->low -= extent->low == 0 ? 0 : share * width;
      extent->high += share * width;
    }
  }

  const bool log_y_;
  Extent x_;
  Extent y_;
};

std::string Grid(const LineChart& chart, const Axes& axes) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  for (const double tick : axes.YTicks()) {
    absl::StrAppendFormat(
        &svg,
        "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" "
        "stroke=\"var(--line)\"/><text x=\"%.0f\" y=\"%.1f\" "
        "text-anchor=\"end\">%s</text>\n",
        kLeft, kWidth - kRight, axes.Y(tick), axes.Y(tick), kLeft - 5,
        axes.Y(tick) + 4, ChartNumber(tick));
  }
  for (const double tick : axes.XTicks()) {
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" "
                          "y2=\"%.0f\" stroke=\"var(--faint)\"/><text "
                          "x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s"
                          "</text>\n",
                          axes.X(tick), axes.X(tick), bottom, bottom + 4,
                          axes.X(tick), bottom + 16, ChartNumber(tick));
  }
  absl::StrAppendFormat(&svg,
                        "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.0f\" y2=\"%.0f\" "
                        "stroke=\"var(--faint)\"/><text x=\"%.0f\" y=\"%.0f\" "
                        "text-anchor=\"middle\">%s</text>\n",
                        kLeft, kWidth - kRight, bottom, bottom,
                        (kLeft + kWidth - kRight) / 2, kHeight - 4,
                        HtmlText(chart.x_label));
  return svg;
}

std::string Band(const std::vector<ChartPoint>& points, const Axes& axes,
                 size_t index) {
  const bool has_band = std::any_of(
      points.begin(), points.end(),
      [](const ChartPoint& point) { return point.low < point.high; });
  if (!has_band) {
    return "";
  }
  std::string upper;
  std::string lower;
  for (size_t i = 0; i < points.size(); ++i) {
    const ChartPoint& high = points[i];
    const ChartPoint& low = points[points.size() - 1 - i];
    absl::StrAppendFormat(&upper, "%.1f,%.1f ", axes.X(high.x),
                          axes.Y(high.high));
    absl::StrAppendFormat(&lower, "%.1f,%.1f ", axes.X(low.x), axes.Y(low.low));
  }
  return absl::StrCat("<polygon points=\"", upper, lower,
                      "\" fill=\"var(--series-", index % kColours + 1,
                      ")\" fill-opacity=\"0.17\"/>\n");
}

std::string Line(const std::vector<ChartPoint>& points, const Axes& axes,
                 size_t index) {
  std::string line;
  std::string dots;
  for (const ChartPoint& point : points) {
    absl::StrAppendFormat(&line, "%.1f,%.1f ", axes.X(point.x),
                          axes.Y(point.y));
    if (points.size() <= kMostDots) {
      absl::StrAppendFormat(&dots,
                            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" "
                            "fill=\"var(--series-%d)\"/>",
                            axes.X(point.x), axes.Y(point.y),
                            index % kColours + 1);
    }
  }
  return absl::StrCat("<polyline points=\"", line,
                      "\" fill=\"none\" stroke-width=\"1.8\" ", StrokeOf(index),
                      "/>", dots, "\n");
}

}  // namespace

std::vector<double> ChartTicks(double low, double high, int count) {
  const double raw = (high - low) / std::max(count, 1);
  if (!(raw > 0) || !std::isfinite(raw)) {
    return {low};
  }
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.9) {
      step = factor * power;
      break;
    }
  }
  const double first = std::ceil(low / step - 1e-9);
  const double last = std::floor(high / step + 1e-9);
  // From here on neighbouring multiples of the step are no different doubles.
  constexpr double kMostMultiple = 0x1p52;
  if (std::abs(first) > kMostMultiple || std::abs(last) > kMostMultiple) {
    return {low};
  }
  std::vector<double> ticks;
  for (double i = first; i <= last; ++i) {
    ticks.push_back(i == 0 ? 0 : i * step);  // not -0
  }
  return ticks;
}

std::string ChartNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) {
    return absl::StrFormat("%.3gM", value / 1e6);
  }
  if (size >= 1e4) {
    return absl::StrFormat("%.3gk", value / 1e3);
  }
  return absl::StrFormat("%.4g", value);
}

std::string ToSvg(const LineChart& chart) {
  const Axes axes(chart);
  std::string svg = absl::StrFormat(
      "<figure class=\"chart\"><figcaption>%s</figcaption>\n<svg viewBox=\"0 0 "
      "%.0f %.0f\" role=\"img\" aria-label=\"%s\">\n",
      HtmlText(chart.y_label == chart.title
                   ? chart.title
                   : absl::StrCat(chart.title, ", ", chart.y_label)),
      kWidth, kHeight,
      HtmlText(absl::StrCat(chart.title, " (", chart.y_label, ") by ",
                            chart.x_label)));
  if (axes.empty()) {
    absl::StrAppendFormat(&svg,
                          "<text x=\"%.0f\" y=\"%.0f\" "
                          "text-anchor=\"middle\">no values yet</text>\n",
                          kWidth / 2, kHeight / 2);
    return svg + "</svg></figure>\n";
  }
  svg += Grid(chart, axes);
  std::string lines;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    std::vector<ChartPoint> points = chart.series[i].points;
    std::erase_if(points, [&](const ChartPoint& point) {
      return !IsDrawn(chart, point);
    });
    svg += Band(points, axes, i);
    lines += Line(points, axes, i);
  }
  return absl::StrCat(svg, lines, "</svg></figure>\n");
}

std::string SeriesKey(size_t index) {
  return absl::StrCat(
      "<svg class=\"key\" width=\"34\" height=\"10\" viewBox=\"0 0 34 10\" "
      "aria-hidden=\"true\"><line x1=\"1\" x2=\"33\" y1=\"5\" y2=\"5\" "
      "stroke-width=\"2.4\" ",
      StrokeOf(index), "/></svg>");
}

}  // namespace etc
