#include "tasks/analysis/violin_grid.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tasks/analysis/analysis_files.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

// The style of a grid in an SVG file: readers of SVG outside of browsers do not
// know variables.
constexpr char kPictureStyle[] = R"css(
text { font: 11px sans-serif; fill: #444444; }
.median { fill: #000000; paint-order: stroke; stroke: #ffffff;
  stroke-width: 3px; }
.cell { fill: #ffffff; stroke: #bbbbbb; stroke-width: 0.5; }
.violin { stroke: #000000; stroke-width: 0.5; }
.mark { stroke: #000000; stroke-width: 1.5; }
.RED { fill: #d62728; } .YELLOW { fill: #f2c037; } .BLUE { fill: #1f77b4; }
)css";

// Space between a cell's border and the first and last tick's numbers.
constexpr double kTickMargin = 3;
constexpr double kCellHeight = 38;
constexpr double kLabelWidth = 62;
constexpr double kHeaderHeight = 20;
constexpr double kAxisHeight = 34;

// A density at points from the 0.1 % to the 99.9 % quantile.
struct Density {
  std::vector<double> at;
  std::vector<double> value;  // its greatest is 1
};

// The histogram smoothed by a Gaussian of Scott's bandwidth, at least a bin.
Density SmoothDensity(const StreamingHistogram& numbers) {
  constexpr int kPoints = 200;
  constexpr double kMostNumbers = 10'000;
  const double width = (numbers.hi() - numbers.lo()) /
                       static_cast<double>(numbers.counts().size());
  const double count =
      std::min(kMostNumbers, static_cast<double>(numbers.count()));
  const double bandwidth =
      std::max(width, numbers.standard_deviation() * std::pow(count, -0.2));
  const double low = numbers.Quantile(0.001);
  const double high = numbers.Quantile(0.999);
  Density density;
  double greatest = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = low + (high - low) * i / (kPoints - 1);
    double sum = 0;
    for (size_t bin = 0; bin < numbers.counts().size(); ++bin) {
      if (numbers.counts()[bin] > 0) {
        const double middle =
            numbers.lo() + (static_cast<double>(bin) + 0.5) * width;
        const double z = (x - middle) / bandwidth;
        sum +=
            static_cast<double>(numbers.counts()[bin]) * std::exp(-0.5 * z * z);
      }
    }
    density.at.push_back(x);
    density.value.push_back(sum);
    greatest = std::max(greatest, sum);
  }
  for (double& value : density.value) {
    value /= greatest > 0 ? greatest : 1;
  }
  return density;
}

bool IsInOneBin(const StreamingHistogram& numbers) {
  return std::count_if(numbers.counts().begin(), numbers.counts().end(),
                       [](int64_t count) { return count > 0; }) == 1;
}

// The outline of a violin within a cell whose upper left corner is (left, top).
std::string ViolinPath(const StreamingHistogram& numbers,
                       const ViolinGrid& grid, double left, double top) {
  constexpr double kLeastStep = 0.5;
  const double scale = grid.cell_width / grid.x_high;
  const double middle = top + kCellHeight / 2;
  const Density density = SmoothDensity(numbers);
  std::string upper;
  std::vector<std::string> lower;
  double last = -1;
  for (size_t i = 0; i < density.at.size(); ++i) {
    const double x =
        left + std::clamp(density.at[i] * scale, 0.0, grid.cell_width);
    if (i + 1 < density.at.size() && x - last < kLeastStep) {
      continue;
    }
    last = x;
    const double half = density.value[i] * (kCellHeight / 2 - 4);
    absl::StrAppendFormat(&upper, "%s%.1f,%.1f", upper.empty() ? "M" : "L", x,
                          middle - half);
    lower.push_back(absl::StrFormat("L%.1f,%.1f", x, middle + half));
  }
  std::reverse(lower.begin(), lower.end());
  return absl::StrCat(upper, absl::StrJoin(lower, ""), "Z");
}

std::string ViolinSvg(const ViolinCell& cell, const ViolinGrid& grid,
                      double left, double top) {
  std::string svg = absl::StrFormat(
      "<rect class=\"cell\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>",
      left, top, grid.cell_width, kCellHeight);
  if (cell.numbers == nullptr || cell.numbers->count() == 0) {
    absl::StrAppendFormat(&svg, "<text x=\"%g\" y=\"%g\">none</text>", left + 4,
                          top + kCellHeight / 2 + 4);
    return svg;
  }
  const double median = cell.numbers->Quantile(0.5);
  const double x =
      left + std::clamp(median / grid.x_high, 0.0, 1.0) * grid.cell_width;
  if (!IsInOneBin(*cell.numbers)) {
    absl::StrAppend(&svg, "<path class=\"violin ", ColourName(cell.colour),
                    "\" d=\"", ViolinPath(*cell.numbers, grid, left, top),
                    "\"/>");
  }
  absl::StrAppendFormat(&svg, "<path class=\"mark\" d=\"M%.1f,%gv%g\"/>", x,
                        top + kCellHeight / 2 - 7, 14.0);
  // Beside the violin where there is more room.
  const bool is_left = median > grid.x_high / 2;
  absl::StrAppendFormat(
      &svg,
      "<text class=\"median\" x=\"%g\" y=\"%g\" text-anchor=\"%s\">%.*f"
      "</text>",
      is_left ? left + 3 : left + grid.cell_width - 3, top + 11,
      is_left ? "start" : "end", grid.decimals, median);
  return absl::StrCat("<g><title>", HtmlText(cell.name), "</title>", svg,
                      "</g>");
}

std::vector<std::string> HeadColumns(const PopulationStatistics& population) {
  std::vector<std::string> columns;
  const size_t heads =
      population.heads.empty() ? 0 : population.heads.front().size();
  for (size_t h = 0; h < heads; ++h) {
    columns.push_back(absl::StrCat("Head-", h));
  }
  return columns;
}

}  // namespace

std::vector<double> EntropyTicks(double high) {
  std::vector<double> ticks;
  for (double tick = 0; tick <= high; tick += high < 3 ? 1 : 3) {
    ticks.push_back(tick);
  }
  return ticks;
}

std::string GridSvg(const ViolinGrid& grid) {
  const size_t columns = grid.columns.size();
  const double width =
      kLabelWidth + static_cast<double>(columns) * grid.cell_width + 12;
  const double bottom =
      kHeaderHeight + static_cast<double>(grid.rows.size()) * kCellHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"grid\" role=\"img\" "
      "aria-label=\"%s\" width=\"%g\" "
      "height=\"%g\" viewBox=\"0 0 %g %g\">",
      HtmlText(grid.label), width, bottom + kAxisHeight, width,
      bottom + kAxisHeight);
  for (size_t c = 0; c < columns; ++c) {
    const double left = kLabelWidth + static_cast<double>(c) * grid.cell_width;
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"14\" text-anchor=\"middle\">%s</text>",
        left + grid.cell_width / 2, HtmlText(grid.columns[c]));
    for (const double tick : grid.ticks) {
      const bool is_last = tick > 0.9 * grid.x_high;
      absl::StrAppendFormat(
          &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"%s\">%g</text>",
          tick == 0 ? left + kTickMargin
          : is_last ? left + grid.cell_width - kTickMargin
                    : left + tick / grid.x_high * grid.cell_width,
          bottom + 13, tick == 0 ? "start" : (is_last ? "end" : "middle"),
          tick);
    }
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>",
        left + grid.cell_width / 2, bottom + 27, grid.x_label);
  }
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    const double top = kHeaderHeight + static_cast<double>(r) * kCellHeight;
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>",
        kLabelWidth - 6, top + kCellHeight / 2 + 4,
        HtmlText(grid.rows[r].first));
    for (size_t c = 0; c < columns; ++c) {
      absl::StrAppend(&svg, ViolinSvg(grid.rows[r].second[c], grid,
                                      kLabelWidth + static_cast<double>(c) *
                                                        grid.cell_width,
                                      top));
    }
  }
  return svg + "</svg>";
}

ViolinGrid EntropyGrid(const AttentionAnalysis& analysis,
                       const PopulationStatistics& population) {
  const double high = std::log(static_cast<double>(population.max_keys));
  ViolinGrid grid{.label = absl::StrCat("Entropy of ", population.name,
                                        " rows, by layer and rank of the head"),
                  .columns = HeadColumns(population),
                  .x_label = "entropy",
                  .x_high = high,
                  .ticks = EntropyTicks(high)};
  for (size_t l = population.heads.size(); l-- > 0;) {
    std::vector<ViolinCell> cells;
    for (const int64_t h : HeadOrder(population.heads[l])) {
      const HeadStatistics& head = population.heads[l][static_cast<size_t>(h)];
      ViolinCell cell{.numbers = &head.entropy};
      if (head.entropy.count() > 0) {
        cell.colour = EntropyColour(analysis, head);
        cell.name = absl::StrFormat(
            "layer %d, head %d: median %.4f nats, %.3f of ln(visible keys)", l,
            h, head.entropy.Quantile(0.5), head.normalised.Quantile(0.5));
      }
      cells.push_back(cell);
    }
    grid.rows.emplace_back(absl::StrCat("L-", l), cells);
  }
  return grid;
}

ViolinGrid DivergenceGrid(const AttentionAnalysis& analysis,
                          const PopulationStatistics& population) {
  ViolinGrid grid{.label = absl::StrCat("Divergence of ", population.name,
                                        " rows between layers, by head"),
                  .columns = HeadColumns(population),
                  .x_label = "JSD",
                  .ticks = {0, 0.5, 1},
                  .decimals = 2};
  for (size_t l = population.divergence.size(); l-- > 0;) {
    std::vector<ViolinCell> cells;
    for (size_t h = 0; h < population.divergence[l].size(); ++h) {
      const StreamingHistogram& numbers = population.divergence[l][h];
      ViolinCell cell{.numbers = &numbers};
      if (numbers.count() > 0) {
        cell.colour = DivergenceColour(analysis, numbers);
        cell.name = absl::StrFormat("layers %d and %d, head %d: median %.4f",
                                    l + 1, l, h, numbers.Quantile(0.5));
      }
      cells.push_back(cell);
    }
    grid.rows.emplace_back(absl::StrCat("L-", l + 1, "&", l), cells);
  }
  return grid;
}

std::string PictureOf(const ViolinGrid& grid) {
  const std::string svg = GridSvg(grid);
  const size_t content = svg.find('>') + 1;
  return absl::StrCat(svg.substr(0, content), "<style>", kPictureStyle,
                      "</style>", svg.substr(content), "\n");
}

}  // namespace etc
