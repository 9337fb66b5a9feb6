#include "tasks/analysis/analysis_html.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/analysis/head_maps.h"
#include "tasks/analysis/violin_grid.h"
#include "tasks/pages/html_page.h"

namespace etc {
namespace {

constexpr char kPageStyle[] = R"css(
.key { display: inline-block; width: 0.8rem; height: 0.8rem;
  margin: 0 0.3rem 0 0.8rem; vertical-align: -0.1rem;
  print-color-adjust: exact; }
.key:first-child { margin-left: 0; }
#facts th { white-space: nowrap; } #facts td { overflow-wrap: anywhere; }
)css";

std::string Wide(const ViolinGrid& grid) {
  return absl::StrCat("<div class=\"wide\">", GridSvg(grid), "</div>");
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

// --- Tables ------------------------------------------------------------------

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
    row += NumberCell(
        absl::StrFormat("%.3f", MassesOf(population, head).front().mass));
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

// "0.12 (-0.30 to 0.55)": the mean over heads, the least and the greatest, with
// each head in a tooltip; empty if nothing is carried.
std::string CorrelationCell(const ScoreDeviations& block) {
  std::vector<double> known;
  std::string heads;
  for (size_t h = 0; h < block.correlations.size(); ++h) {
    const std::optional<double>& correlation = block.correlations[h];
    absl::StrAppend(&heads, heads.empty() ? "" : ", ", "head ", h, ": ",
                    correlation.has_value()
                        ? absl::StrFormat("%.3f", *correlation)
                        : "none");
    if (correlation.has_value()) {
      known.push_back(*correlation);
    }
  }
  if (known.empty()) {
    return NumberCell("");
  }
  const auto [least, greatest] =
      std::minmax_element(known.begin(), known.end());
  return absl::StrFormat(
      "<td class=\"number\" title=\"%s\">%.2f (%.2f to %.2f)</td>", heads,
      std::accumulate(known.begin(), known.end(), 0.0) /
          static_cast<double>(known.size()),
      *least, *greatest);
}

// The number, or an empty cell without one.
std::string OptionalCell(const std::optional<double>& number, int decimals) {
  return NumberCell(
      number.has_value() ? absl::StrFormat("%.*f", decimals, *number) : "");
}

std::string ScoreTable(const AttentionAnalysis& analysis) {
  std::string rows;
  bool carries = false;
  for (size_t l = analysis.scores.size(); l-- > 0;) {
    for (const ScoreDeviations& block : analysis.scores[l]) {
      carries = carries || block.carried_scores.has_value();
      absl::StrAppend(&rows, "<tr>", NumberCell(absl::StrCat(l)), "<td>",
                      block.block, "</td>",
                      NumberCell(absl::StrFormat("%.3f", block.new_scores)),
                      OptionalCell(block.carried_scores, 3),
                      OptionalCell(block.logit_ratio, 2),
                      CorrelationCell(block), "</tr>\n");
    }
  }
  if (!carries) {
    return "";
  }
  return absl::StrCat(
      "<section><h2>Carried and new scores</h2>\n<p>Standard deviations over "
      "visible pairs, of all heads: the layer's own scores s, and the scores S "
      "that it is given by the layers below. The softmax of layer n sees a s + "
      "b S, and the ratio is the deviation of b S over that of a s: sum and "
      "mean have a = b, decay a = 1 - beta and b = beta<sup>n</sup>, gate a = "
      "1 and for b the gate of each head. Correlation of s and S, each head "
      "for itself: the mean over heads, the least and the greatest; the "
      "tooltip has each.</p>\n<div class=\"wide\"><table><thead>"
      "<tr><th class=\"number\">Layer</th><th>Block</th><th class=\"number\">"
      "New</th><th class=\"number\">Carried</th><th class=\"number\">Carried / "
      "new in the logits</th><th "
      "class=\"number\">Correlation</th></tr></thead><tbody>\n",
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
           {"Counted", absl::StrCat(analysis.examples, " examples, ", counts)},
           {"Left out", analysis.truncation}}) {
    if (value.empty()) {
      continue;
    }
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
  absl::StrAppend(&html, "<h3>Where the mass lies</h3>\n",
                  BlockMaps(population));
  if (population.radius > 0) {
    html += DistanceCurves(population);
  }
  return absl::StrCat(html, PositionCurves(population),
                      SimilarityMaps(population), HeadTable(population),
                      "</section>\n");
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
                 .style = absl::StrCat(kGridStyle, kMapStyle, kPageStyle),
                 .script = ""});
}

}  // namespace etc
