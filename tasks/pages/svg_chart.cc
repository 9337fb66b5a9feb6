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
constexpr double kLeastLeft = 44;  // room for six characters
constexpr double kRight = 10;
constexpr double kTop = 8;
constexpr double kBottom = 34;
constexpr double kDigit = 6.2;  // width of a digit
constexpr double kGap = 5;      // between the y axis and its numbers
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

// A tick of an axis, and the text beside it.
struct Tick {
  double at = 0;
  std::string text;
};

std::vector<Tick> TicksAt(const std::vector<double>& places) {
  const double step = places.size() > 1 ? places[1] - places[0] : 0;
  std::vector<Tick> ticks;
  ticks.reserve(places.size());
  for (const double place : places) {
    ticks.push_back({.at = place, .text = ChartNumber(place, step)});
  }
  return ticks;
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
    x_ticks_ = TicksAt(ChartTicks(x_.low, x_.high, 5));
    y_ticks_ = TicksAt(PlacesOfYTicks());
    for (const Tick& tick : y_ticks_) {
      left_ = std::max(
          left_, 2 + kDigit * static_cast<double>(tick.text.size()) + kGap);
    }
  }

  bool empty() const { return x_.empty() || y_.empty(); }
  // The x of the y axis.
  double left() const { return left_; }
  double X(double x) const {
    return left_ +
           (x - x_.low) / (x_.high - x_.low) * (kWidth - left_ - kRight);
  }
  double Y(double y) const {
    const double height = kHeight - kTop - kBottom;
    const double share = (Scaled(y) - y_.low) / (y_.high - y_.low);
    return kTop + (1 - std::clamp(share, 0.0, 1.0)) * height;
  }
  const std::vector<Tick>& x_ticks() const { return x_ticks_; }
  const std::vector<Tick>& y_ticks() const { return y_ticks_; }

 private:
  std::vector<double> PlacesOfYTicks() const {
    if (!log_y_) {
      return ChartTicks(y_.low, y_.high, 5);
    }
    std::vector<double> ticks;
    const double step = std::max(1.0, std::ceil((y_.high - y_.low) / 5));
    const double last =
        std::min<double>(y_.high, std::numeric_limits<double>::max_exponent10);
    for (double power = std::ceil(y_.low); power <= last; power += step) {
      ticks.push_back(std::pow(10, power));
    }
    if (ticks.size() > 1) {
      return ticks;
    }
    const double low = std::pow(10, y_.low);
    const double high =
        std::min(std::pow(10, y_.high), std::numeric_limits<double>::max());
    // Even steps through more than a decade crowd at its top.
    ticks.clear();
    for (double power = std::floor(y_.low); power <= last; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double place = factor * std::pow(10, power);
        if (low <= place && place <= high) {
          ticks.push_back(place);
        }
      }
    }
    return ticks.size() > 2 ? ticks : ChartTicks(low, high, 5);
  }
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
  std::vector<Tick> x_ticks_;
  std::vector<Tick> y_ticks_;
  double left_ = kLeastLeft;
};

std::string Grid(const LineChart& chart, const Axes& axes) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  for (const Tick& tick : axes.y_ticks()) {
    absl::StrAppendFormat(
        &svg,
        "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" "
        "stroke=\"var(--line)\"/><text x=\"%.0f\" y=\"%.1f\" "
        "text-anchor=\"end\">%s</text>\n",
        axes.left(), kWidth - kRight, axes.Y(tick.at), axes.Y(tick.at),
        axes.left() - kGap, axes.Y(tick.at) + 4, tick.text);
  }
  for (const Tick& tick : axes.x_ticks()) {
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" "
                          "y2=\"%.0f\" stroke=\"var(--faint)\"/><text "
                          "x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s"
                          "</text>\n",
                          axes.X(tick.at), axes.X(tick.at), bottom, bottom + 4,
                          axes.X(tick.at), bottom + 16, tick.text);
  }
  absl::StrAppendFormat(&svg,
                        "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.0f\" y2=\"%.0f\" "
                        "stroke=\"var(--faint)\"/><text x=\"%.0f\" y=\"%.0f\" "
                        "text-anchor=\"middle\">%s</text>\n",
                        axes.left(), kWidth - kRight, bottom, bottom,
                        (axes.left() + kWidth - kRight) / 2, kHeight - 4,
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

std::string ChartNumber(double value, double step) {
  const double size = std::abs(value);
  // Digits from the first of the value to that of the step.
  const double needed =
      size > 0 && step > 0
          ? std::floor(std::log10(size)) - std::floor(std::log10(step)) + 1
          : 0;
  const auto text = [&](double number, double least) {
    constexpr double kMost = std::numeric_limits<double>::digits10;
    return absl::StrFormat(
        "%.*g", static_cast<int>(std::clamp(needed, least, kMost)), number);
  };
  if (size >= 1e6) {
    return text(value / 1e6, 3) + "M";
  }
  return size >= 1e4 ? text(value / 1e3, 3) + "k" : text(value, 4);
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
