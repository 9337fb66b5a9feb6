#include "tasks/analysis/head_maps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/pages/html_page.h"
#include "tasks/pages/svg_chart.h"

namespace etc {
namespace {

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

// Maps of the mass on linked keys and on each kind that a row sees.
std::string MassMaps(const PopulationStatistics& population) {
  std::string maps;
  // Shares are the same for all heads.
  const std::vector<KeyMass> any =
      MassesOf(population, population.heads.front().front());
  for (size_t at = population.other_name.empty() ? 0 : 2; at < any.size();
       ++at) {
    if (any[at].share == 0) {
      continue;
    }
    const std::string name = NameOfKeys(population.name, any[at].keys);
    maps += HeatMap(absl::StrFormat("Mass on %s (%.2g of the visible keys)",
                                    name, any[at].share),
                    population, 1, [&](const HeadStatistics& head) {
                      return MassesOf(population, head)[at].mass;
                    });
  }
  return maps;
}

}  // namespace

std::string NameOfKeys(const std::string& population, const std::string& keys) {
  if (keys == "linked") {
    return population == "long" ? "the global token of its sentence"
                                : "the long tokens of its sentence";
  }
  const bool is_plain = absl::StartsWith(keys, "[") || keys == "l2l" ||
                        keys == "l2g" || keys == "g2g" || keys == "g2l";
  return is_plain ? keys : absl::StrCat(keys, " tokens");
}

std::string BlockMaps(const PopulationStatistics& population) {
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
  maps += MassMaps(population);
  maps += HeatMap(
      "Mass on the largest weight", population, 1,
      [](const HeadStatistics& head) { return PerRow(head.sums.top_1, head); });
  maps += HeatMap(
      "Mass on the eight largest", population, 1,
      [](const HeadStatistics& head) { return PerRow(head.sums.top_8, head); });
  return absl::StrCat("<div class=\"maps\">", maps, "</div>\n");
}

// --- Curves ------------------------------------------------------------------

namespace {

constexpr double kPlotLeft = 48;
constexpr double kPlotTop = 8;
constexpr double kPlotWidth = 250;
constexpr double kPlotHeight = 110;

// A place on an axis, from 0 to 1, and its text.
struct PlotTick {
  double at = 0;
  std::string text;
};

// Curves of the heads of a layer over an axis that they share. Heights are from
// 0, at the top, to 1; NaN: none.
struct HeadPlot {
  std::string label;  // for readers of the page by ear
  std::string caption;
  std::string x_label;
  std::vector<PlotTick> x_ticks;
  std::vector<PlotTick> y_ticks;
  // Points stand at the middle of equal parts of the axis, not from end to end.
  bool in_parts = false;
  std::vector<std::vector<double>> heads;
  std::vector<double> mean;
};

std::string CurvePath(const std::vector<double>& heights, bool in_parts) {
  const auto count = static_cast<double>(heights.size());
  std::string path;
  bool is_open = false;
  for (size_t i = 0; i < heights.size(); ++i) {
    if (std::isnan(heights[i])) {
      is_open = false;
      continue;
    }
    const auto at = static_cast<double>(i);
    const double x = in_parts ? (at + 0.5) / count : at / (count - 1);
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", is_open ? "L" : "M",
                          kPlotLeft + kPlotWidth * x,
                          kPlotTop + kPlotHeight * heights[i]);
    // A point without neighbours is a dash.
    const bool is_alone =
        !is_open && (i + 1 == heights.size() || std::isnan(heights[i + 1]));
    absl::StrAppend(&path, is_alone ? "m-3,0h6" : "");
    is_open = true;
  }
  return path;
}

std::string PlotSvg(const HeadPlot& plot) {
  // Room for half of the last number.
  const double width = kPlotLeft + kPlotWidth + 22;
  const double height = kPlotHeight + 42;
  std::string svg = absl::StrFormat(
      "<svg role=\"img\" aria-label=\"%s\" width=\"%g\" height=\"%g\" "
      "viewBox=\"0 0 %g %g\">",
      HtmlText(plot.label), width, height, width, height);
  for (const PlotTick& tick : plot.y_ticks) {
    const double y = kPlotTop + kPlotHeight * tick.at;
    absl::StrAppendFormat(
        &svg,
        "<path d=\"M%g,%.1fh%g\" style=\"stroke: var(--line)\"/><text "
        "x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
        kPlotLeft, y, kPlotWidth, kPlotLeft - 4, y + 4, tick.text);
  }
  for (const PlotTick& tick : plot.x_ticks) {
    absl::StrAppendFormat(
        &svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>",
        kPlotLeft + kPlotWidth * tick.at, kPlotHeight + 22, tick.text);
  }
  absl::StrAppendFormat(
      &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>",
      kPlotLeft + kPlotWidth / 2, kPlotHeight + 37, plot.x_label);
  for (const std::vector<double>& head : plot.heads) {
    absl::StrAppend(&svg, "<path class=\"curve\" d=\"",
                    CurvePath(head, plot.in_parts), "\"/>");
  }
  absl::StrAppend(&svg, "<path class=\"mean\" d=\"",
                  CurvePath(plot.mean, plot.in_parts), "\"/>");
  return absl::StrCat("<figure><figcaption>", plot.caption, "</figcaption>",
                      svg, "</svg></figure>\n");
}

// Adds the mean over heads; `curves` are values, not heights.
std::vector<double> MeanOf(const std::vector<std::vector<double>>& curves) {
  std::vector<double> mean(curves.empty() ? 0 : curves.front().size(), 0.0);
  for (const std::vector<double>& curve : curves) {
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] += curve[i] / static_cast<double>(curves.size());
    }
  }
  return mean;
}

// --- Mass by distance ---

// The height of a mass on a logarithmic axis from 1 down to 10^kLeastDecade.
double HeightOfMass(double mass) {
  constexpr double kLeastDecade = -4;
  const double decade = std::log10(std::max(mass, 1e-30));
  return std::clamp(decade / kLeastDecade, 0.0, 1.0);
}

HeadPlot DistancePlot(const std::vector<HeadStatistics>& heads, size_t layer,
                      int64_t most) {
  HeadPlot plot = {
      .label = absl::StrCat("Mass by offset, layer ", layer),
      .caption = absl::StrCat("Layer ", layer),
      .x_label = "offset, tokens",
      .x_ticks = {
          {0, absl::StrCat(-most)}, {0.5, "0"}, {1, absl::StrCat(most)}}};
  for (const char* mass : {"1", "0.01", "0.0001"}) {
    plot.y_ticks.push_back({HeightOfMass(std::stod(mass)), mass});
  }
  std::vector<std::vector<double>> curves;
  for (const HeadStatistics& head : heads) {
    std::vector<double>& masses = curves.emplace_back();
    for (int64_t offset = -most; offset <= most; ++offset) {
      masses.push_back(PerRow(MassAt(head.sums, offset), head));
    }
  }
  plot.mean = MeanOf(curves);
  plot.heads = std::move(curves);
  plot.heads.push_back(plot.mean);
  for (std::vector<double>& curve : plot.heads) {
    std::transform(curve.begin(), curve.end(), curve.begin(), HeightOfMass);
  }
  plot.mean = plot.heads.back();
  plot.heads.pop_back();
  return plot;
}

// --- Entropy by class ---

using ClassMember = std::vector<double> RowSums::*;

// The greatest mean of a class in any head.
double GreatestMean(const PopulationStatistics& population, ClassMember member,
                    const std::vector<int64_t>& rows) {
  double greatest = 0;
  for (const std::vector<HeadStatistics>& heads : population.heads) {
    for (const HeadStatistics& head : heads) {
      for (const double mean : MeanByClass(head, member, rows)) {
        greatest = std::isnan(mean) ? greatest : std::max(greatest, mean);
      }
    }
  }
  return greatest;
}

std::string ClassPlots(const PopulationStatistics& population,
                       ClassMember member, const std::vector<int64_t>& rows,
                       const HeadPlot& axis) {
  const double high = GreatestMean(population, member, rows);
  std::string plots;
  for (size_t l = population.heads.size(); l-- > 0;) {
    HeadPlot plot = axis;
    plot.label = absl::StrCat(axis.label, ", layer ", l);
    plot.caption = absl::StrCat("Layer ", l, ", nats");
    for (const double tick : ChartTicks(0, high, 3)) {
      plot.y_ticks.push_back({1 - tick / high, ChartNumber(tick)});
    }
    std::vector<std::vector<double>> curves;
    for (const HeadStatistics& head : population.heads[l]) {
      curves.push_back(MeanByClass(head, member, rows));
    }
    curves.push_back(MeanOf(curves));
    for (std::vector<double>& curve : curves) {
      for (double& value : curve) {
        value = 1 - value / high;
      }
    }
    plot.mean = curves.back();
    curves.pop_back();
    plot.heads = std::move(curves);
    plots += PlotSvg(plot);
  }
  return absl::StrCat("<div class=\"maps\">", plots, "</div>\n");
}

bool AnyRows(const std::vector<int64_t>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](int64_t count) { return count > 0; });
}

}  // namespace

std::string DistanceCurves(const PopulationStatistics& population) {
  constexpr int64_t kMostOffset = 84;
  const int64_t most = std::min(population.radius, kMostOffset);
  std::string curves;
  for (size_t l = population.heads.size(); l-- > 0;) {
    curves += PlotSvg(DistancePlot(population.heads[l], l, most));
  }
  return absl::StrCat(
      "<h3>Mass by distance</h3>\n<p class=\"faint\">Mean attention weight at "
      "each offset of key less query, from -",
      most, " to ", most,
      "; a blue line is a head, the orange one their mean.</p>\n"
      "<div class=\"maps\">",
      curves, "</div>\n");
}

std::string PositionCurves(const PopulationStatistics& population) {
  std::string html;
  if (AnyRows(population.rows_by_position)) {
    absl::StrAppend(
        &html,
        "<h3>Entropy by position</h3>\n<p class=\"faint\">Mean entropy of the "
        "rows in each twentieth of their document; a blue line is a head, the "
        "orange one their mean.</p>\n",
        ClassPlots(population, &RowSums::entropy_by_position,
                   population.rows_by_position,
                   {.label = "Entropy by position",
                    .x_label = "position in the document",
                    .x_ticks = {{0, "0 %"}, {0.5, "50 %"}, {1, "100 %"}},
                    .in_parts = true}));
  }
  if (AnyRows(population.rows_by_sentence)) {
    HeadPlot axis = {.label = "Entropy by sentence length",
                     .x_label = "tokens of the sentence, at least",
                     .in_parts = true};
    for (int64_t c = 0; c < kSentenceClasses; ++c) {
      axis.x_ticks.push_back({(static_cast<double>(c) + 0.5) / kSentenceClasses,
                              absl::StrCat(int64_t{1} << c)});
    }
    absl::StrAppend(
        &html,
        "<h3>Entropy by sentence length</h3>\n<p class=\"faint\">Mean entropy "
        "of the rows in sentences of 1, 2 to 3, 4 to 7 tokens and so on.</p>\n",
        ClassPlots(population, &RowSums::entropy_by_sentence,
                   population.rows_by_sentence, axis));
  }
  return html;
}

// --- Similarity of heads -----------------------------------------------------

namespace {

std::string SimilarityMap(const PopulationStatistics& population, size_t l) {
  constexpr double kSide = 18;
  constexpr double kLeft = 24;
  constexpr double kTop = 18;
  const size_t heads = population.heads[l].size();
  const double width = kLeft + static_cast<double>(heads) * kSide + 2;
  const double height = kTop + static_cast<double>(heads) * kSide + 2;
  std::string svg = absl::StrFormat(
      "<svg class=\"similar\" role=\"img\" aria-label=\"Divergence of the "
      "heads of layer %d, rows, and of layer %d, columns\" width=\"%g\" "
      "height=\"%g\" viewBox=\"0 0 %g %g\">",
      l + 1, l, width, height, width, height);
  for (size_t i = 0; i < heads; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * kSide;
    absl::StrAppendFormat(
        &svg,
        "<text x=\"%g\" y=\"12\" text-anchor=\"middle\">%d</text><text "
        "x=\"%g\" y=\"%g\" text-anchor=\"end\">%d</text>",
        kLeft + at, i, kLeft - 5, kTop + at + 4, i);
    for (size_t j = 0; j < heads; ++j) {
      const double value = MeanSimilarity(population, l, i, j);
      absl::StrAppendFormat(
          &svg,
          "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" "
          "fill-opacity=\"%.3f\"><title>head %d of layer %d, head %d of layer "
          "%d: %.4f</title></rect>",
          kLeft + static_cast<double>(j) * kSide,
          kTop + static_cast<double>(i) * kSide, kSide, kSide,
          1 - std::clamp(value, 0.0, 1.0), i, l + 1, j, l, value);
    }
  }
  return absl::StrFormat(
      "<figure><figcaption>Layer %d (rows) and layer %d</figcaption>%s</svg>"
      "</figure>\n",
      l + 1, l, svg);
}

}  // namespace

std::string SimilarityMaps(const PopulationStatistics& population) {
  if (population.rows_sampled == 0) {
    return "";
  }
  std::string maps;
  for (size_t l = population.similarity.size(); l-- > 0;) {
    maps += SimilarityMap(population, l);
  }
  return absl::StrCat(
      "<details><summary>Every head beside every head of the layer below"
      "</summary>\n<p class=\"faint\">Mean divergence over ",
      population.rows_sampled,
      " rows: the stronger the colour of a cell, the more alike are the two "
      "heads; its tooltip has the number. A strong diagonal: heads of the same "
      "index stay alike.</p>\n"
      "<div class=\"maps\">",
      maps, "</div></details>\n");
}

}  // namespace etc
