#include "tasks/analysis/comparison_html.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "tasks/analysis/comparison.h"
#include "tasks/analysis/head_maps.h"
#include "tasks/analysis/violin_grid.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

constexpr char kComparisonStyle[] = R"css(
#models td { min-width: 7rem; overflow-wrap: anywhere; }
.measures { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
.measures > div { max-width: 100%; }
.measure { margin: 0.8rem 0; }
.measure caption { text-align: left; padding: 0.2rem 0; }
.less { color: var(--series-1); } .more { color: var(--series-2); }
tr.all td, tr.all th { border-top: 2px solid var(--line); }
)css";

using Analyses = absl::Span<const AttentionAnalysis>;

std::string TitleOf(const std::string& population, const std::string& measure) {
  if (measure == "entropy") {
    return "Median entropy, nats";
  }
  if (measure == "entropy_normalised") {
    return "Median entropy over ln(visible keys)";
  }
  if (measure == "jsd") {
    return "Median divergence from the layer below";
  }
  return absl::StrCat(
      "Mass on ",
      NameOfKeys(population, std::string(absl::StripSuffix(measure, "_mass"))));
}

std::string ModelTable(Analyses analyses) {
  const std::vector<std::string> names = ColumnNames(analyses);
  std::string rows;
  for (size_t i = 0; i < analyses.size(); ++i) {
    const AttentionAnalysis& analysis = analyses[i];
    std::string counts;
    for (const PopulationStatistics& population : analysis.populations) {
      absl::StrAppend(&counts, counts.empty() ? "" : ", ", population.rows,
                      population.name == "all" ? "" : " ",
                      population.name == "all" ? "" : population.name, " rows");
    }
    absl::StrAppend(&rows, "<tr><th scope=\"row\">", HtmlText(names[i]),
                    "</th><td>", HtmlText(analysis.checkpoint), "</td><td>",
                    HtmlText(analysis.layer_norm), "</td><td>",
                    HtmlText(analysis.data), "</td><td>", analysis.examples,
                    " examples, ", counts, "</td></tr>\n");
  }
  std::string html = absl::StrCat(
      "<div class=\"wide\"><table id=\"models\"><thead><tr><th "
      "scope=\"col\">Residual</th><th scope=\"col\">Weights</th><th "
      "scope=\"col\">LayerNorm</th><th scope=\"col\">Data</th><th "
      "scope=\"col\">Counted</th></tr></thead><tbody>\n",
      rows, "</tbody></table></div>\n");
  for (const std::string& warning : ComparisonWarnings(analyses)) {
    absl::StrAppend(&html, "<p class=\"warning\"><strong>Careful:</strong> ",
                    HtmlText(warning), ".</p>\n");
  }
  return html;
}

// --- Tables ------------------------------------------------------------------

std::string ValueCell(double value) {
  return absl::StrCat("<td class=\"number\">",
                      std::isnan(value) ? "" : absl::StrFormat("%.3f", value),
                      "</td>");
}

std::string DifferenceCell(double difference) {
  constexpr double kShown = 0.0005;
  const char* kind = difference <= -kShown  ? " less"
                     : difference >= kShown ? " more"
                                            : "";
  return absl::StrCat(
      "<td class=\"number", kind, "\">",
      std::isnan(difference) ? "" : absl::StrFormat("%+.3f", difference),
      "</td>");
}

// A row of a table: the values, then the differences from the first.
std::string ValueRow(const std::string& name, bool is_all,
                     const std::vector<double>& values) {
  std::string row =
      absl::StrCat("<tr", is_all ? " class=\"all\"" : "", "><th scope=\"row\">",
                   HtmlText(name), "</th>");
  for (const double value : values) {
    row += ValueCell(value);
  }
  for (size_t i = 1; i < values.size(); ++i) {
    row += DifferenceCell(values[i] - values.front());
  }
  return row + "</tr>\n";
}

std::string MeasureTable(const std::string& population,
                         const ComparedMeasure& measure,
                         const std::vector<std::string>& names) {
  std::string head = "<th scope=\"col\">Layer</th>";
  for (const std::string& name : names) {
    absl::StrAppend(&head, "<th scope=\"col\" class=\"number\">",
                    HtmlText(name), "</th>");
  }
  for (size_t i = 1; i < names.size(); ++i) {
    absl::StrAppend(&head, "<th scope=\"col\" class=\"number\">",
                    HtmlText(names[i]), " &minus; ", HtmlText(names[0]),
                    "</th>");
  }
  std::string rows;
  std::vector<double> mean(names.size(), 0.0);
  for (size_t l = measure.layers.size(); l-- > 0;) {
    const ComparedLayer& layer = measure.layers[l];
    rows += ValueRow(layer.name, /*is_all=*/false, layer.values);
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] += layer.values[i] / static_cast<double>(measure.layers.size());
    }
  }
  return absl::StrCat(
      "<div class=\"wide\"><table class=\"measure\" data-measure=\"",
      HtmlText(measure.id), "\"><caption>",
      HtmlText(TitleOf(population, measure.id)), "</caption><thead><tr>", head,
      "</tr></thead><tbody>\n", rows, ValueRow("all", /*is_all=*/true, mean),
      "</tbody></table></div>\n");
}

// --- Violins -----------------------------------------------------------------

// All heads of a layer together.
HeadStatistics Pooled(const std::vector<HeadStatistics>& heads) {
  HeadStatistics pooled = heads.front();
  for (size_t h = 1; h < heads.size(); ++h) {
    pooled.entropy.Merge(heads[h].entropy);
    pooled.normalised.Merge(heads[h].normalised);
  }
  return pooled;
}

StreamingHistogram Pooled(const std::vector<StreamingHistogram>& heads) {
  StreamingHistogram pooled = heads.front();
  for (size_t h = 1; h < heads.size(); ++h) {
    pooled.Merge(heads[h]);
  }
  return pooled;
}

// The widest cells that two columns have room for on a page.
constexpr double kPooledWidth = 150;

ViolinCell PooledCell(const StreamingHistogram& numbers,
                      const std::string& name) {
  ViolinCell cell = {.numbers = &numbers};
  if (numbers.count() > 0) {
    cell.name = absl::StrFormat("%s: median %.4f, mean %.4f", name,
                                numbers.Quantile(0.5), numbers.mean());
  }
  return cell;
}

std::string PooledEntropies(Analyses analyses, size_t p) {
  const std::vector<std::string> names = ColumnNames(analyses);
  int64_t max_keys = 2;
  for (const AttentionAnalysis& analysis : analyses) {
    max_keys = std::max(max_keys, analysis.populations[p].max_keys);
  }
  const double high = std::log(static_cast<double>(max_keys));
  ViolinGrid grid = {.label = "Entropy of all heads, by layer and model",
                     .columns = names,
                     .x_label = "entropy",
                     .x_high = high,
                     .ticks = EntropyTicks(high),
                     .decimals = 2,
                     .cell_width = kPooledWidth};
  std::deque<HeadStatistics> pooled;
  for (auto l = static_cast<size_t>(analyses.front().layers); l-- > 0;) {
    std::vector<ViolinCell> cells;
    for (size_t i = 0; i < analyses.size(); ++i) {
      pooled.push_back(Pooled(analyses[i].populations[p].heads[l]));
      ViolinCell cell = PooledCell(pooled.back().entropy,
                                   absl::StrCat(names[i], ", layer ", l));
      if (pooled.back().entropy.count() > 0) {
        cell.colour = EntropyColour(analyses.front(), pooled.back());
      }
      cells.push_back(cell);
    }
    grid.rows.emplace_back(absl::StrCat("L-", l), cells);
  }
  return GridSvg(grid);
}

std::string PooledDivergences(Analyses analyses, size_t p) {
  const std::vector<std::string> names = ColumnNames(analyses);
  ViolinGrid grid = {.label = "Divergence of all heads, by layers and model",
                     .columns = names,
                     .x_label = "JSD",
                     .ticks = {0, 0.5, 1},
                     .decimals = 2,
                     .cell_width = kPooledWidth};
  std::deque<StreamingHistogram> pooled;
  for (auto l = static_cast<size_t>(analyses.front().layers - 1); l-- > 0;) {
    std::vector<ViolinCell> cells;
    for (size_t i = 0; i < analyses.size(); ++i) {
      pooled.push_back(Pooled(analyses[i].populations[p].divergence[l]));
      ViolinCell cell =
          PooledCell(pooled.back(),
                     absl::StrCat(names[i], ", layers ", l + 1, " and ", l));
      if (pooled.back().count() > 0) {
        cell.colour = DivergenceColour(analyses.front(), pooled.back());
      }
      cells.push_back(cell);
    }
    grid.rows.emplace_back(absl::StrCat("L-", l + 1, "&", l), cells);
  }
  return GridSvg(grid);
}

// A grid of all heads of each model.
std::string HeadGrids(Analyses analyses, size_t p,
                      ViolinGrid (*make)(const AttentionAnalysis&,
                                         const PopulationStatistics&)) {
  const std::vector<std::string> names = ColumnNames(analyses);
  std::string html = "<div class=\"maps\">";
  for (size_t i = 0; i < analyses.size(); ++i) {
    absl::StrAppend(
        &html, "<figure><figcaption>", HtmlText(names[i]), "</figcaption>",
        GridSvg(make(analyses[i], analyses[i].populations[p])), "</figure>\n");
  }
  return html + "</div>\n";
}

// --- The page ----------------------------------------------------------------

std::string PopulationPart(Analyses analyses, size_t p,
                           const ComparedPopulation& compared) {
  const std::string title = compared.name == "all"    ? "All tokens"
                            : compared.name == "long" ? "Long tokens"
                                                      : "Global tokens";
  const std::vector<std::string> names = ColumnNames(analyses);
  std::string html =
      absl::StrCat("<section id=\"", compared.name, "\"><h2>", title,
                   "</h2>\n<p>Each number is the mean over the heads of a "
                   "layer: of medians over rows, or of mean masses.</p>\n");
  html += "<div class=\"measures\">";
  for (const ComparedMeasure& measure : compared.measures) {
    html += MeasureTable(compared.name, measure, names);
  }
  html += "</div>\n";
  absl::StrAppend(&html,
                  "<h3>Entropy</h3>\n<p>All heads of a layer together. The "
                  "number and the mark are the median.</p>\n"
                  "<div class=\"wide\">",
                  PooledEntropies(analyses, p), "</div>\n");
  const bool has_pairs = analyses.front().layers > 1;
  if (has_pairs) {
    absl::StrAppend(&html,
                    "<h3>Divergence between layers</h3>\n<p>Between each head "
                    "and that of the same index in the layer below. Without "
                    "residual attention an index means nothing across layers: "
                    "there it is a reference, not a finding.</p>\n"
                    "<div class=\"wide\">",
                    PooledDivergences(analyses, p), "</div>\n");
  }
  absl::StrAppend(&html, "<h3>Entropy of each head</h3>\n",
                  HeadGrids(analyses, p, EntropyGrid));
  if (has_pairs) {
    absl::StrAppend(&html, "<h3>Divergence of each head</h3>\n",
                    HeadGrids(analyses, p, DivergenceGrid));
  }
  return html + "</section>\n";
}

}  // namespace

std::string ComparisonHtml(Analyses analyses) {
  std::string body =
      absl::StrCat("<h1>Attention side by side</h1>\n", ModelTable(analyses));
  const std::vector<ComparedPopulation> compared = Compare(analyses);
  for (size_t p = 0; p < compared.size(); ++p) {
    body += PopulationPart(analyses, p, compared[p]);
  }
  return ToHtml({.title = "Attention side by side",
                 .body = body,
                 .style = absl::StrCat(kGridStyle, kMapStyle, kComparisonStyle),
                 .script = ""});
}

}  // namespace etc
