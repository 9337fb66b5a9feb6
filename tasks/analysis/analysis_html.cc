#include "tasks/analysis/analysis_html.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tasks/analysis/analysis_files.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

constexpr char kAnalysisStyle[] = R"css(
.grid text { font-size: 11px; }
.grid .median { fill: var(--ink); }
.grid .cell { fill: var(--panel); stroke: var(--line); stroke-width: 0.5; }
.grid .violin { stroke: var(--ink); stroke-width: 0.5;
  print-color-adjust: exact; }
.grid .mark { stroke: var(--ink); stroke-width: 1.5; }
.RED { fill: var(--red); } .YELLOW { fill: var(--yellow); }
.BLUE { fill: var(--blue); }
.key { display: inline-block; width: 0.8rem; height: 0.8rem;
  margin: 0 0.3rem 0 0.8rem; vertical-align: -0.1rem;
  print-color-adjust: exact; }
.key:first-child { margin-left: 0; }
.maps { display: flex; flex-wrap: wrap; gap: 0.6rem 2rem; }
.maps figure { max-width: 100%; overflow-x: auto; }
.maps svg { max-width: none; }
.heat rect { print-color-adjust: exact; }
.curve { fill: none; stroke: var(--series-1); stroke-width: 1;
  stroke-opacity: 0.6; }
.mean { fill: none; stroke: var(--series-2); stroke-width: 2; }
#facts th { white-space: nowrap; } #facts td { overflow-wrap: anywhere; }
)css";

// The same for an SVG file: readers of SVG outside of browsers do not know
// variables.
constexpr char kPictureStyle[] = R"css(
text { font: 11px sans-serif; fill: #444444; }
.median { fill: #000000; }
.cell { fill: #ffffff; stroke: #bbbbbb; stroke-width: 0.5; }
.violin { stroke: #000000; stroke-width: 0.5; }
.mark { stroke: #000000; stroke-width: 1.5; }
.RED { fill: #d62728; } .YELLOW { fill: #f2c037; } .BLUE { fill: #1f77b4; }
)css";

// --- Violins -----------------------------------------------------------------

// Space between a cell's border and the first and last tick's numbers.
constexpr double kTickMargin = 3;
constexpr double kCellWidth = 72;
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

// A cell of a grid of violins; null numbers: none.
struct ViolinCell {
  const StreamingHistogram* numbers = nullptr;
  MedianColour colour = MedianColour::kBlue;
  std::string name;  // plain text, for the tooltip
};

struct ViolinGrid {
  std::string label;  // for readers of the page by ear
  std::string x_label;
  double x_high = 1;
  std::vector<double> ticks;
  int decimals = 1;
  std::vector<std::pair<std::string, std::vector<ViolinCell>>> rows;
};

// The outline of a violin within a cell whose upper left corner is (left, top).
std::string ViolinPath(const StreamingHistogram& numbers, double x_high,
                       double left, double top) {
  constexpr double kLeastStep = 0.5;
  const double scale = kCellWidth / x_high;
  const double middle = top + kCellHeight / 2;
  const Density density = SmoothDensity(numbers);
  std::string upper;
  std::vector<std::string> lower;
  double last = -1;
  for (size_t i = 0; i < density.at.size(); ++i) {
    const double x = left + std::clamp(density.at[i] * scale, 0.0, kCellWidth);
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
      left, top, kCellWidth, kCellHeight);
  if (cell.numbers == nullptr || cell.numbers->count() == 0) {
    absl::StrAppendFormat(&svg, "<text x=\"%g\" y=\"%g\">none</text>", left + 4,
                          top + kCellHeight / 2 + 4);
    return svg;
  }
  const double median = cell.numbers->Quantile(0.5);
  const double x =
      left + std::clamp(median / grid.x_high, 0.0, 1.0) * kCellWidth;
  if (!IsInOneBin(*cell.numbers)) {
    absl::StrAppend(&svg, "<path class=\"violin ", ColourName(cell.colour),
                    "\" d=\"",
                    ViolinPath(*cell.numbers, grid.x_high, left, top), "\"/>");
  }
  absl::StrAppendFormat(&svg, "<path class=\"mark\" d=\"M%.1f,%gv%g\"/>", x,
                        top + kCellHeight / 2 - 7, 14.0);
  // Beside the violin where there is more room.
  const bool is_left = median > grid.x_high / 2;
  absl::StrAppendFormat(
      &svg,
      "<text class=\"median\" x=\"%g\" y=\"%g\" text-anchor=\"%s\">%.*f"
      "</text>",
      is_left ? left + 3 : left + kCellWidth - 3, top + 11,
      is_left ? "start" : "end", grid.decimals, median);
  return absl::StrCat("<g><title>", HtmlText(cell.name), "</title>", svg,
                      "</g>");
}

std::string GridSvg(const ViolinGrid& grid) {
  const size_t columns = grid.rows.empty() ? 0 : grid.rows[0].second.size();
  const double width =
      kLabelWidth + static_cast<double>(columns) * kCellWidth + 12;
  const double bottom =
      kHeaderHeight + static_cast<double>(grid.rows.size()) * kCellHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"grid\" role=\"img\" "
      "aria-label=\"%s\" width=\"%g\" "
      "height=\"%g\" viewBox=\"0 0 %g %g\">",
      HtmlText(grid.label), width, bottom + kAxisHeight, width,
      bottom + kAxisHeight);
  for (size_t c = 0; c < columns; ++c) {
    const double left = kLabelWidth + static_cast<double>(c) * kCellWidth;
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"14\" text-anchor=\"middle\">Head-%d</text>",
        left + kCellWidth / 2, c);
    for (const double tick : grid.ticks) {
      const bool is_last = tick > 0.9 * grid.x_high;
      absl::StrAppendFormat(
          &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"%s\">%g</text>",
          tick == 0 ? left + kTickMargin
          : is_last ? left + kCellWidth - kTickMargin
                    : left + tick / grid.x_high * kCellWidth,
          bottom + 13, tick == 0 ? "start" : (is_last ? "end" : "middle"),
          tick);
    }
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>",
        left + kCellWidth / 2, bottom + 27, grid.x_label);
  }
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    const double top = kHeaderHeight + static_cast<double>(r) * kCellHeight;
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>",
        kLabelWidth - 6, top + kCellHeight / 2 + 4,
        HtmlText(grid.rows[r].first));
    for (size_t c = 0; c < columns; ++c) {
      absl::StrAppend(
          &svg,
          ViolinSvg(grid.rows[r].second[c], grid,
                    kLabelWidth + static_cast<double>(c) * kCellWidth, top));
    }
  }
  return svg + "</svg>";
}

std::string Wide(const std::string& grid) {
  return absl::StrCat("<div class=\"wide\">", grid, "</div>");
}

std::string EntropyGrid(const AttentionAnalysis& analysis,
                        const PopulationStatistics& population) {
  const double high = std::log(static_cast<double>(population.max_keys));
  ViolinGrid grid{.label = absl::StrCat("Entropy of ", population.name,
                                        " rows, by layer and rank of the head"),
                  .x_label = "entropy",
                  .x_high = high};
  for (double tick = 0; tick <= high; tick += high < 3 ? 1 : 3) {
    grid.ticks.push_back(tick);
  }
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
  return GridSvg(grid);
}

std::string DivergenceGrid(const AttentionAnalysis& analysis,
                           const PopulationStatistics& population) {
  ViolinGrid grid{.label = absl::StrCat("Divergence of ", population.name,
                                        " rows between layers, by head"),
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
  return GridSvg(grid);
}

// The meaning of the three colours, with their bounds.
std::string ColourKey(const std::string& low, const std::string& high) {
  const auto key = [](const char* property, const std::string& text) {
    return absl::StrCat("<span class=\"key\" style=\"background: var(--",
                        property, ")\"></span>", text);
  };
  return absl::StrCat(
      "<p class=\"faint\">Median: ", key("blue", absl::StrCat("below ", low)),
      key("yellow", absl::StrCat(low, " to ", high)),
      key("red", absl::StrCat("above ", high)),
      ". The number and the mark are the median.</p>\n");
}

// --- Maps of layers and heads ------------------------------------------------

// A number of each head as a map; colours from 0 to `high`.
std::string HeatMap(const std::string& caption,
                    const PopulationStatistics& population, double high,
                    const std::function<double(const HeadStatistics&)>& value) {
  constexpr double kSide = 34;
  constexpr double kHeight = 18;
  constexpr double kLeft = 36;
  constexpr double kTop = 18;
  const size_t layers = population.heads.size();
  const size_t heads = layers == 0 ? 0 : population.heads[0].size();
  const double width = kLeft + static_cast<double>(heads) * kSide;
  const double height = kTop + static_cast<double>(layers) * kHeight;
  std::string svg = absl::StrFormat(
      "<svg class=\"heat\" role=\"img\" aria-label=\"%s\" width=\"%g\" "
      "height=\"%g\" viewBox=\"0 0 %g %g\">",
      HtmlText(caption), width, height, width, height);
  for (size_t h = 0; h < heads; ++h) {
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"12\" text-anchor=\"middle\">%d</text>",
        kLeft + (static_cast<double>(h) + 0.5) * kSide, h);
  }
  for (size_t r = 0; r < layers; ++r) {
    const size_t l = layers - 1 - r;
    const double y = kTop + static_cast<double>(r) * kHeight;
    absl::StrAppendFormat(
        &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">L-%d</text>",
        kLeft - 5, y + 13, l);
    for (size_t h = 0; h < heads; ++h) {
      const HeadStatistics& head = population.heads[l][h];
      if (head.entropy.count() == 0) {
        continue;
      }
      const double number = value(head);
      absl::StrAppendFormat(
          &svg,
          "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" "
          "style=\"fill: var(--series-1); fill-opacity: %.3f; stroke: "
          "var(--page)\"/><text x=\"%g\" y=\"%g\" text-anchor=\"middle\" "
          "style=\"fill: var(--ink)\">%.2f</text>",
          kLeft + static_cast<double>(h) * kSide, y, kSide, kHeight,
          0.65 * std::clamp(number / high, 0.0, 1.0),
          kLeft + (static_cast<double>(h) + 0.5) * kSide, y + 13, number);
    }
  }
  return absl::StrCat("<figure><figcaption>", HtmlText(caption),
                      "</figcaption>", svg, "</svg></figure>\n");
}

double PerRow(double sum, const HeadStatistics& head) {
  return sum / static_cast<double>(head.entropy.count());
}

std::string Maps(const PopulationStatistics& population) {
  std::string maps;
  if (!population.other_name.empty()) {
    const std::string& own = population.own_name;
    maps += HeatMap(absl::StrCat("Mass in ", own, " (the rest is in ",
                                 population.other_name, ")"),
                    population, 1, [](const HeadStatistics& head) {
                      return PerRow(head.sums.own_mass, head);
                    });
    maps += HeatMap(
        absl::StrCat("Lift of ", own, ": mass over its share of visible keys"),
        population, 3, [](const HeadStatistics& head) {
          return head.sums.own_share > 0
                     ? head.sums.own_mass / head.sums.own_share
                     : 0;
        });
  }
  if (population.radius > 0) {
    const std::vector<std::pair<const char*, int64_t>> places = {
        {"Mass on the token before", -1},
        {"Mass on the token itself", 0},
        {"Mass on the token after", 1}};
    for (const auto& [caption, offset] : places) {
      maps += HeatMap(caption, population, 1,
                      [offset = offset](const HeadStatistics& head) {
                        return PerRow(MassAt(head.sums, offset), head);
                      });
    }
    if (!population.other_name.empty()) {
      maps += HeatMap(
          "Share of l2l mass beyond 0.9 of the radius", population, 0.5,
          [](const HeadStatistics& head) { return EdgeShare(head.sums); });
    }
  }
  maps += HeatMap(
      "Mass on the largest weight", population, 1,
      [](const HeadStatistics& head) { return PerRow(head.sums.top_1, head); });
  maps += HeatMap(
      "Mass on the eight largest", population, 1,
      [](const HeadStatistics& head) { return PerRow(head.sums.top_8, head); });
  return absl::StrCat("<div class=\"maps\">", maps, "</div>\n");
}

// --- Curves by distance ------------------------------------------------------

constexpr double kPlotLeft = 48;
constexpr double kPlotWidth = 250;
constexpr double kPlotHeight = 110;
// Masses from 1 down to this, on a logarithmic axis.
constexpr double kLeastDecade = -4;

double PlotY(double mass) {
  const double decade = std::log10(std::max(mass, 1e-30));
  return 8 + kPlotHeight * std::clamp(decade / kLeastDecade, 0.0, 1.0);
}

// A polyline of the mass at each offset from -most to most.
std::string CurvePath(const std::vector<double>& masses) {
  std::string path;
  for (size_t i = 0; i < masses.size(); ++i) {
    absl::StrAppendFormat(
        &path, "%s%.1f,%.1f", i == 0 ? "M" : "L",
        kPlotLeft + kPlotWidth * static_cast<double>(i) /
                        static_cast<double>(masses.size() - 1),
        PlotY(masses[i]));
  }
  return path;
}

std::string LayerCurves(const std::vector<HeadStatistics>& heads, size_t layer,
                        int64_t most) {
  std::string svg = absl::StrFormat(
      "<svg role=\"img\" aria-label=\"Mass by offset, layer %d\" "
      "width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\">",
      layer, kPlotLeft + kPlotWidth + 10, kPlotHeight + 42,
      kPlotLeft + kPlotWidth + 10, kPlotHeight + 42);
  for (const int decade : {0, -2, -4}) {
    const double y = PlotY(std::pow(10.0, decade));
    absl::StrAppendFormat(
        &svg,
        "<path d=\"M%g,%.1fh%g\" style=\"stroke: var(--line)\"/><text "
        "x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>",
        kPlotLeft, y, kPlotWidth, kPlotLeft - 4, y + 4, std::pow(10.0, decade));
  }
  for (const int64_t offset : {-most, int64_t{0}, most}) {
    absl::StrAppendFormat(
        &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d</text>",
        kPlotLeft + kPlotWidth * (0.5 + 0.5 * static_cast<double>(offset) /
                                            static_cast<double>(most)),
        kPlotHeight + 22, offset);
  }
  absl::StrAppendFormat(
      &svg,
      "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">offset, tokens</text>",
      kPlotLeft + kPlotWidth / 2, kPlotHeight + 37);
  std::vector<double> mean(static_cast<size_t>(2 * most + 1), 0.0);
  for (const HeadStatistics& head : heads) {
    if (head.entropy.count() == 0) {
      continue;
    }
    std::vector<double> masses;
    for (int64_t offset = -most; offset <= most; ++offset) {
      masses.push_back(PerRow(MassAt(head.sums, offset), head));
      mean[masses.size() - 1] +=
          masses.back() / static_cast<double>(heads.size());
    }
    absl::StrAppend(&svg, "<path class=\"curve\" d=\"", CurvePath(masses),
                    "\"/>");
  }
  absl::StrAppend(&svg, "<path class=\"mean\" d=\"", CurvePath(mean), "\"/>");
  return absl::StrCat("<figure><figcaption>Layer ", layer, "</figcaption>", svg,
                      "</svg></figure>\n");
}

std::string Curves(const PopulationStatistics& population) {
  constexpr int64_t kMostOffset = 84;
  const int64_t most = std::min(population.radius, kMostOffset);
  std::string curves;
  for (size_t l = population.heads.size(); l-- > 0;) {
    curves += LayerCurves(population.heads[l], l, most);
  }
  return absl::StrCat(
      "<h3>Mass by distance</h3>\n<p class=\"faint\">Mean attention weight at "
      "each offset of key less query, from -",
      most, " to ", most,
      "; a blue line is a head, the orange one their mean.</p>\n"
      "<div class=\"maps\">",
      curves, "</div>\n");
}

// --- Tables ------------------------------------------------------------------

std::string NumberCell(const std::string& text) {
  return absl::StrCat("<td class=\"number\">", text, "</td>");
}

std::string HeadRow(const PopulationStatistics& population, size_t l,
                    size_t h) {
  const HeadStatistics& head = population.heads[l][h];
  std::string row = absl::StrCat("<tr>", NumberCell(absl::StrCat(l)),
                                 NumberCell(absl::StrCat(h)));
  if (head.entropy.count() == 0) {
    return absl::StrCat(row, "<td>no rows</td></tr>\n");
  }
  const double median = head.entropy.Quantile(0.5);
  const StreamingHistogram* jsd =
      l > 0 ? &population.divergence[l - 1][h] : nullptr;
  for (const double value :
       {median, head.entropy.mean(), head.entropy.standard_deviation(),
        head.normalised.Quantile(0.5), std::exp(median)}) {
    row += NumberCell(absl::StrFormat("%.3f", value));
  }
  row += NumberCell(jsd == nullptr || jsd->count() == 0
                        ? ""
                        : absl::StrFormat("%.3f", jsd->Quantile(0.5)));
  if (!population.other_name.empty()) {
    row +=
        NumberCell(absl::StrFormat("%.3f", PerRow(head.sums.own_mass, head)));
  }
  if (population.radius > 0) {
    row += NumberCell(absl::StrFormat("%.1f", MeanDistance(head.sums)));
  }
  return absl::StrCat(row, "</tr>\n");
}

std::string HeadTable(const PopulationStatistics& population) {
  std::string rows;
  for (size_t l = population.heads.size(); l-- > 0;) {
    for (size_t h = 0; h < population.heads[l].size(); ++h) {
      rows += HeadRow(population, l, h);
    }
  }
  std::string head;
  for (const char* name :
       {"Layer", "Head", "Entropy, median", "mean", "deviation",
        "of ln(keys), median", "effective keys", "JSD to the layer below"}) {
    absl::StrAppend(&head, "<th scope=\"col\" class=\"number\">", name,
                    "</th>");
  }
  if (!population.other_name.empty()) {
    absl::StrAppend(&head, "<th scope=\"col\" class=\"number\">",
                    population.own_name, " mass</th>");
  }
  if (population.radius > 0) {
    head += "<th scope=\"col\" class=\"number\">mean distance</th>";
  }
  return absl::StrCat(
      "<details><summary>All numbers</summary><div "
      "class=\"wide\"><table><thead><tr>",
      head, "</tr></thead><tbody>\n", rows,
      "</tbody></table></div></details>\n");
}

std::string ScoreTable(const AttentionAnalysis& analysis) {
  std::string rows;
  bool carries = false;
  for (size_t l = analysis.scores.size(); l-- > 0;) {
    for (const ScoreDeviations& block : analysis.scores[l]) {
      carries = carries || block.carried_scores > 0;
      absl::StrAppend(
          &rows, "<tr>", NumberCell(absl::StrCat(l)), "<td>", block.block,
          "</td>", NumberCell(absl::StrFormat("%.3f", block.new_scores)),
          NumberCell(absl::StrFormat("%.3f", block.carried_scores)),
          NumberCell(block.new_scores > 0
                         ? absl::StrFormat(
                               "%.2f", block.carried_scores / block.new_scores)
                         : ""),
          "</tr>\n");
    }
  }
  if (!carries) {
    return "";
  }
  return absl::StrCat(
      "<section><h2>Carried and new scores</h2>\n<p>Standard deviations over "
      "visible pairs, of all heads: the layer's own scores, and those that it "
      "is given by the layers below.</p>\n<div class=\"wide\"><table><thead>"
      "<tr><th class=\"number\">Layer</th><th>Block</th><th class=\"number\">"
      "New</th><th class=\"number\">Carried</th><th class=\"number\">Carried / "
      "new</th></tr></thead><tbody>\n",
      rows, "</tbody></table></div></section>\n");
}

// --- The page ----------------------------------------------------------------

std::string FactTable(const AttentionAnalysis& analysis) {
  std::string counts;
  for (const PopulationStatistics& population : analysis.populations) {
    absl::StrAppend(&counts, counts.empty() ? "" : "; ", population.rows,
                    population.name == "all" ? "" : " ",
                    population.name == "all" ? "" : population.name, " rows");
    if (population.rows_single_key > 0) {
      absl::StrAppend(&counts, " and ", population.rows_single_key,
                      " with a single key, left out");
    }
  }
  std::string rows;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"Model",
            absl::StrCat(analysis.is_bert ? "BERT, " : "ETC, ", analysis.layers,
                         " layers of ", analysis.heads, " heads, ",
                         analysis.layer_norm, " LayerNorm, ",
                         "residual attention: ", analysis.residual)},
           {"Weights", analysis.checkpoint},
           {"Data",
            absl::StrCat(analysis.data,
                         analysis.masked_input ? ", with masked tokens" : "")},
           {"Counted",
            absl::StrCat(analysis.examples, " examples, ", counts)}}) {
    absl::StrAppend(&rows, "<tr><th scope=\"row\">", name, "</th><td>",
                    HtmlText(value), "</td></tr>\n");
  }
  return absl::StrCat("<table id=\"facts\"><tbody>\n", rows,
                      "</tbody></table>\n");
}

std::string PopulationSection(const AttentionAnalysis& analysis,
                              const PopulationStatistics& population) {
  const std::string title =
      population.name == "all"
          ? "All tokens"
          : (population.name == "long" ? "Long tokens" : "Global tokens");
  if (population.rows == 0) {
    return absl::StrCat("<section><h2>", title,
                        "</h2>\n<p>No row sees two keys.</p></section>\n");
  }
  const char* kind = analysis.jsd_distance ? "Jensen-Shannon distance"
                                           : "Jensen-Shannon divergence";
  std::string html = absl::StrCat(
      "<section><h2>", title, "</h2>\n<h3>Entropy</h3>\n<p>Nats, at most ln(",
      population.max_keys, ") = ",
      absl::StrFormat("%.2f",
                      std::log(static_cast<double>(population.max_keys))),
      ". The heads of each layer are sorted by their median; a cell's tooltip "
      "has its own index. The top layer is the first row.</p>\n",
      analysis.normalised_colours
          ? ColourKey("0.2404 of ln(visible keys)", "0.7213 of it")
          : ColourKey("1.5", "4.5"),
      Wide(EntropyGrid(analysis, population)));
  if (!population.divergence.empty()) {
    absl::StrAppend(
        &html, "<h3>", kind,
        " between layers</h3>\n<p>Between a head and the "
        "head of the same index in the layer below, from 0 (alike) to 1. ",
        analysis.residual == "off"
            ? "Without residual attention an index means nothing across "
              "layers: this is a reference, not a finding."
            : "",
        "</p>\n",
        analysis.jsd_distance ? ColourKey("0.5", "0.866")
                              : ColourKey("0.25", "0.75"),
        Wide(DivergenceGrid(analysis, population)));
  }
  absl::StrAppend(&html, "<h3>Where the mass lies</h3>\n", Maps(population));
  if (population.radius > 0) {
    html += Curves(population);
  }
  return absl::StrCat(html, HeadTable(population), "</section>\n");
}

// A grid as a file.
std::string PictureOf(absl::string_view grid) {
  const size_t content = grid.find('>') + 1;
  return absl::StrCat(grid.substr(0, content), "<style>", kPictureStyle,
                      "</style>", grid.substr(content), "\n");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> AnalysisPictures(
    const AttentionAnalysis& analysis) {
  std::vector<std::pair<std::string, std::string>> pictures;
  for (const PopulationStatistics& population : analysis.populations) {
    if (population.rows == 0) {
      continue;
    }
    pictures.emplace_back(absl::StrCat("entropy_", population.name, ".svg"),
                          PictureOf(EntropyGrid(analysis, population)));
    if (!population.divergence.empty()) {
      pictures.emplace_back(absl::StrCat("jsd_", population.name, ".svg"),
                            PictureOf(DivergenceGrid(analysis, population)));
    }
  }
  return pictures;
}

std::string AnalysisHtml(const AttentionAnalysis& analysis) {
  std::string body = absl::StrCat(
      "<h1>Attention: entropy and divergence</h1>\n", FactTable(analysis));
  for (const PopulationStatistics& population : analysis.populations) {
    body += PopulationSection(analysis, population);
  }
  body += ScoreTable(analysis);
  return ToHtml({.title = "Attention: entropy and divergence",
                 .body = body,
                 .style = kAnalysisStyle,
                 .script = ""});
}

}  // namespace etc
