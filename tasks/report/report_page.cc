#include "tasks/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/utf8.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/pages/html_page.h"
#include "tasks/pages/svg_chart.h"
#include "tasks/report/comparison.h"

namespace etc {
namespace {

constexpr int64_t kMostBins = 120;
// Records of each kind that are shown, and the parts that lengths are divided
// into.
constexpr size_t kShownRecords = 3;
constexpr size_t kLengthParts = 4;
// Text around the marks of a long record, in bytes.
constexpr size_t kWholeText = 1500;
constexpr size_t kAround = 160;
constexpr size_t kShownPlaces = 6;
// Bytes of an answer that are shown at most.
constexpr size_t kMostAnswer = 800;

constexpr char kStyle[] = R"(
.verdict { border-left: 4px solid var(--series-1); background: var(--panel);
  padding: 0.6rem 0.9rem; margin: 0.8rem 0; max-width: 46rem; }
.verdict strong { font-size: 1.12rem; display: block; }
.verdict p { margin: 0.3rem 0 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; padding: 0.4rem 0;
  font-size: 0.9rem; position: sticky; top: 0; background: var(--page);
  max-height: 30vh; overflow-y: auto; }
.runs { white-space: nowrap; }
.legend span { white-space: nowrap; }
svg.key { display: inline-block; max-width: none; vertical-align: middle; margin-right: 0.4rem; }
.charts { display: grid; gap: 0.4rem 1.4rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.chart { margin: 0.3rem 0; min-width: 0; }
.chart svg { width: 100%; }
.chart figcaption { color: var(--ink); font-weight: 600; }
.record { border: 1px solid var(--line); border-radius: 4px;
  padding: 0.5rem 0.8rem; margin: 0.6rem 0; max-width: 60rem;
  break-inside: avoid; }
.record p { margin: 0.3rem 0; max-width: none; white-space: pre-line;
  overflow-wrap: anywhere; }
.record table { margin-top: 0.4rem; }
.record td { overflow-wrap: anywhere; }
mark { background: none; color: inherit; font-weight: 700; padding: 0 1px; }
mark.gold { border-bottom: 3px solid var(--series-3); }
mark.predicted { border-bottom: 3px dotted var(--series-2); }
mark.both { border-bottom: 3px double var(--series-1); }
.bar { display: inline-block; height: 0.6rem;
  margin-left: 0.4rem; vertical-align: baseline; print-color-adjust: exact; }
@media print { .legend { position: static; } }
)";

std::string Cell(const std::string& text) {
  return absl::StrCat("<td>", HtmlText(text), "</td>");
}

std::string HeadCell(const std::string& text, bool is_number) {
  return absl::StrCat("<th", is_number ? " class=\"number\">" : ">",
                      HtmlText(text), "</th>");
}

// "1.2k", "0.0312"
std::string Short(double value) {
  return std::abs(value) >= 1000 ? ChartNumber(std::round(value))
                                 : absl::StrFormat("%.3g", value);
}

double MedianOf(const std::vector<double>& values) {
  return SummarizeScore("", values).median;
}

bool AllEnded(const std::vector<RunGroup>& groups) {
  return std::all_of(groups.begin(), groups.end(),
                     [](const RunGroup& group) { return group.has_ended(); });
}

int64_t NumRuns(const std::vector<RunGroup>& groups) {
  int64_t runs = 0;
  for (const RunGroup& group : groups) {
    runs += static_cast<int64_t>(group.runs.size());
  }
  return runs;
}

// --- the answer at the top ---------------------------------------------------

std::string VerdictHtml(const Verdict& verdict) {
  return absl::StrCat("<div class=\"verdict\"><strong>",
                      HtmlText(verdict.headline), "</strong><p>",
                      HtmlText(verdict.detail), "</p></div>\n");
}

std::string Verdicts(const Report& report) {
  std::string html;
  for (const Verdict& verdict : CompareModes(report.groups, report.metric)) {
    html += VerdictHtml(verdict);
  }
  return html;
}

// --- charts ------------------------------------------------------------------

std::string Legend(const std::vector<RunGroup>& groups) {
  std::string html = "<div class=\"legend\">";
  for (size_t i = 0; i < groups.size(); ++i) {
    absl::StrAppend(
        &html, "<span>", SeriesKey(i), HtmlText(groups[i].name), ", ",
        Counted(static_cast<int64_t>(groups[i].runs.size()), "seed"),
        "</span>");
  }
  return html + "</div>\n";
}

std::vector<ChartPoint> PointsOf(const std::vector<CurveBand>& band) {
  std::vector<ChartPoint> points;
  points.reserve(band.size());
  for (const CurveBand& part : band) {
    points.push_back({.x = static_cast<double>(part.step),
                      .y = part.median,
                      .low = part.low,
                      .high = part.high});
  }
  return points;
}

int64_t MostSteps(const std::vector<RunGroup>& groups) {
  int64_t steps = 0;
  for (const RunGroup& group : groups) {
    for (const LoggedRun& run : group.runs) {
      steps = std::max(steps, run.log.steps);
    }
  }
  return steps;
}

// The chart of a field of the lines of updates.
std::string UpdateChart(const Report& report, const std::string& field,
                        LineChart chart) {
  const int64_t steps = MostSteps(report.groups);
  for (const RunGroup& group : report.groups) {
    std::vector<const Curve*> curves;
    for (const LoggedRun& run : group.runs) {
      const auto found = run.log.curves.find(field);
      if (found != run.log.curves.end()) {
        curves.push_back(&found->second);
      }
    }
    chart.series.push_back(
        {.name = group.name,
         .points = PointsOf(BandOf(curves, steps, kMostBins))});
  }
  return ToSvg(chart);
}

// The chart of a metric by evaluation.
std::string MetricChart(const Report& report, const std::string& metric) {
  LineChart chart = {
      .title = metric, .x_label = "updates", .y_label = "evaluation data"};
  for (const RunGroup& group : report.groups) {
    std::map<int64_t, std::vector<double>> values;
    for (const LoggedRun& run : group.runs) {
      for (const LoggedEvaluation& evaluation : run.log.evaluations) {
        const auto value = FindMetric(evaluation.metrics, metric);
        if (value.has_value() && std::isfinite(*value)) {
          values[evaluation.step].push_back(*value);
        }
      }
    }
    ChartSeries& series = chart.series.emplace_back();
    series.name = group.name;
    for (const auto& [step, scores] : values) {
      const auto [low, high] =
          std::minmax_element(scores.begin(), scores.end());
      series.points.push_back({.x = static_cast<double>(step),
                               .y = MedianOf(scores),
                               .low = *low,
                               .high = *high});
    }
  }
  return ToSvg(chart);
}

std::vector<std::string> MainFirst(std::vector<std::string> metrics,
                                   const std::string& main) {
  std::stable_partition(metrics.begin(), metrics.end(),
                        [&](const std::string& name) { return name == main; });
  return metrics;
}

std::string Charts(const Report& report) {
  std::string html = "<h2>Curves</h2>\n";
  const int64_t steps = MostSteps(report.groups);
  absl::StrAppend(
      &html,
      "<p class=\"faint\">A line is the median of the seeds, the band around "
      "it their range. ",
      steps > kMostBins
          ? absl::StrFormat("Values of updates are means of %d updates.",
                            (steps + kMostBins - 1) / kMostBins)
          : "",
      "</p>\n", Legend(report.groups), "<div class=\"charts\">\n");
  for (const std::string& metric :
       MainFirst(EvaluatedMetrics(report.groups), report.metric.name)) {
    html += MetricChart(report, metric);
  }
  const std::string x = "updates";
  html += UpdateChart(
      report, "loss",
      {.title = "training loss", .x_label = x, .y_label = "mean of the batch"});
  html += UpdateChart(report, "gradient_norm",
                      {.title = "gradient norm before clipping",
                       .x_label = x,
                       .y_label = "log scale",
                       .log_y = true});
  html += UpdateChart(report, "learning_rate",
                      {.title = "learning rate",
                       .x_label = x,
                       .y_label = "per update",
                       .from_zero = true});
  html += UpdateChart(report, "tokens_per_second",
                      {.title = "speed",
                       .x_label = x,
                       .y_label = "tokens/s",
                       .from_zero = true});
  html += UpdateChart(report, "seconds_waited",
                      {.title = "waiting for data",
                       .x_label = x,
                       .y_label = "seconds per update",
                       .from_zero = true});
  return html + "</div>\n";
}

// --- tables ------------------------------------------------------------------

std::string ScoreCell(const std::vector<double>& values) {
  if (values.empty()) {
    return NumberCell("-");
  }
  const ScoreSummary summary = SummarizeScore("", values);
  return NumberCell(absl::StrCat(
      FormatScore(summary.median),
      summary.standard_deviation.has_value()
          ? absl::StrCat(" \xC2\xB1 ", FormatScore(*summary.standard_deviation))
          : ""));
}

// The median over the runs of the mean of a curve.
std::string MeanCell(const RunGroup& group, const std::string& field) {
  std::vector<double> means;
  for (const LoggedRun& run : group.runs) {
    const auto found = run.log.curves.find(field);
    if (found != run.log.curves.end() && !found->second.empty()) {
      const double sum = std::accumulate(
          found->second.begin(), found->second.end(), 0.0,
          [](double all, const auto& value) { return all + value.second; });
      means.push_back(sum / static_cast<double>(found->second.size()));
    }
  }
  return NumberCell(means.empty() ? "-" : Short(MedianOf(means)));
}

// A line for each seed, below the table of medians.
std::string SeedTable(const Report& report) {
  std::string html =
      "<details><summary>Each seed</summary><div class=\"wide\"><table><tr>";
  const std::string main =
      report.metric.name.empty() ? "score" : report.metric.name;
  for (const auto& [name, is_number] :
       std::vector<std::pair<std::string, bool>>{{"runs", false},
                                                 {"seed", true},
                                                 {"best " + main, true},
                                                 {"after update", true},
                                                 {"updates", true},
                                                 {"state", false}}) {
    html += HeadCell(name, is_number);
  }
  html += "</tr>\n";
  for (const RunGroup& group : report.groups) {
    for (const LoggedRun& run : group.runs) {
      const LoggedEvaluation* const best = BestEvaluation(run, report.metric);
      absl::StrAppend(
          &html, "<tr>", Cell(group.name), NumberCell(absl::StrCat(run.seed)),
          NumberCell(best == nullptr ? "-"
                                     : FormatScore(*FindMetric(
                                           best->metrics, report.metric.name))),
          NumberCell(best == nullptr ? "-" : absl::StrCat(best->step)),
          NumberCell(absl::StrCat(run.log.steps)),
          Cell(absl::StrCat(
              run.finished           ? "ended"
              : run.log.has_diverged ? "diverged"
                                     : "not ended",
              run.log.lost_losses > 0
                  ? absl::StrCat("; the loss of ",
                                 Counted(run.log.lost_losses, "update"),
                                 " was no number")
                  : "")),
          "</tr>\n");
    }
  }
  return html + "</table></div></details>\n";
}

// "2", or "1 of 2" if the others have no score.
std::string ScoredSeeds(const RunGroup& group, const MainMetric& metric) {
  const size_t scored = SeedScores(group, metric, metric.name).size();
  return scored == group.runs.size()
             ? absl::StrCat(scored)
             : absl::StrCat(scored, " of ", group.runs.size());
}

std::string ScoreTable(const Report& report) {
  const std::vector<std::string> metrics =
      MainFirst(EvaluatedMetrics(report.groups), report.metric.name);
  std::string html = absl::StrCat(
      "<h2>Scores</h2>\n<p class=\"faint\">Median over the seeds \xC2\xB1 "
      "standard deviation (n - 1), each seed at its evaluation with the best ",
      HtmlText(report.metric.name.empty() ? "score" : report.metric.name),
      ". That evaluation is chosen by the same data that it scores.</p>\n"
      "<div class=\"wide\"><table><tr>",
      HeadCell("runs", false), HeadCell("mode", false),
      HeadCell("seeds", true));
  for (const std::string& metric : metrics) {
    html += HeadCell(metric, true);
  }
  html += HeadCell("tokens/s", true) + HeadCell("waiting, s/update", true) +
          "</tr>\n";
  for (size_t i = 0; i < report.groups.size(); ++i) {
    const RunGroup& group = report.groups[i];
    absl::StrAppend(&html, "<tr><td class=\"runs\">", SeriesKey(i),
                    HtmlText(group.name), "</td>",
                    Cell(group.mode().empty() ? "-" : group.mode()),
                    NumberCell(ScoredSeeds(group, report.metric)));
    for (const std::string& metric : metrics) {
      html += ScoreCell(SeedScores(group, report.metric, metric));
    }
    absl::StrAppend(&html, MeanCell(group, "tokens_per_second"),
                    MeanCell(group, "seconds_waited"), "</tr>\n");
  }
  return html + "</table></div>\n" + SeedTable(report);
}

std::string Differences(const Report& report) {
  std::string html = "<h2>Differing settings</h2>\n";
  if (report.groups.size() < 2) {
    return html +
           "<p>There is one configuration; its seeds differ in the seed "
           "alone.</p>\n";
  }
  const std::vector<DifferingField> fields = DifferingFields(report.groups);
  if (fields.empty()) {
    return html + "<p>No setting is known to differ.</p>\n";
  }
  html += "<div class=\"wide\"><table><tr>" + HeadCell("field", false);
  for (const RunGroup& group : report.groups) {
    html += HeadCell(group.name, false);
  }
  html += "</tr>\n";
  for (const DifferingField& field : fields) {
    absl::StrAppend(&html, "<tr><td><code>", HtmlText(field.name),
                    "</code></td>");
    for (const std::string& value : field.values) {
      html += Cell(value);
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// --- predictions -------------------------------------------------------------

std::string GroupName(const Report& report, const GroupPredictions& of) {
  return absl::StrCat(report.groups[of.group].name, ", seed ", of.seed);
}

// The main metric over some records.
double ScoreOf(const JudgedRecords& judged,
               const std::vector<size_t>& records) {
  return FindMetric(judged.score(records), judged.main_metric).value_or(0);
}

// Records of a part of a document's measure, by their ids.
struct RecordPart {
  std::string name;
  std::set<std::string> ids = {};
};

std::vector<RecordPart> LengthParts(const JudgedRecords& judged) {
  std::vector<const JudgedRecord*> sorted;
  for (const JudgedRecord& record : judged.records) {
    sorted.push_back(&record);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const JudgedRecord* a, const JudgedRecord* b) {
                     return a->length < b->length;
                   });
  std::vector<RecordPart> parts;
  size_t begin = 0;
  for (size_t i = 1; i <= kLengthParts; ++i) {
    size_t end = sorted.size() * i / kLengthParts;
    while (end > begin && end < sorted.size() &&
           sorted[end]->length == sorted[end - 1]->length) {
      ++end;  // records of one length stay together
    }
    if (end <= begin) {
      continue;
    }
    RecordPart& part = parts.emplace_back();
    part.name =
        absl::StrCat(sorted[begin]->length, " to ", sorted[end - 1]->length);
    for (; begin < end; ++begin) {
      part.ids.insert(sorted[begin]->id);
    }
  }
  return parts;
}

std::vector<RecordPart> EvidenceParts(const JudgedRecords& judged) {
  std::vector<RecordPart> parts = {{.name = "first third"},
                                   {.name = "middle third"},
                                   {.name = "last third"},
                                   {.name = "not found in the text"},
                                   {.name = "no answer"}};
  bool any_found = false;
  for (const JudgedRecord& record : judged.records) {
    const size_t part =
        record.gold_texts.empty() ? 4
        : record.evidence < 0
            ? 3
            : std::min<size_t>(2, static_cast<size_t>(record.evidence * 3));
    any_found = any_found || part < 3;
    parts[part].ids.insert(record.id);
  }
  std::erase_if(parts, [](const RecordPart& part) { return part.ids.empty(); });
  return any_found ? parts : std::vector<RecordPart>();
}

// The score of a group on the records of a part; nothing if it has none of
// them.
std::optional<double> ScoreOfPart(const GroupPredictions& group,
                                  const RecordPart& part) {
  std::vector<size_t> records;
  for (size_t i = 0; i < group.judged.records.size(); ++i) {
    if (part.ids.contains(group.judged.records[i].id)) {
      records.push_back(i);
    }
  }
  return records.empty() ? std::nullopt
                         : std::optional(ScoreOf(group.judged, records));
}

std::string PartTable(const Report& report, const std::string& heading,
                      const std::vector<RecordPart>& parts) {
  std::string html =
      absl::StrCat("<div class=\"wide\"><table><tr>", HeadCell(heading, false),
                   HeadCell("records", true));
  for (const GroupPredictions& group : report.predictions) {
    html += HeadCell(
        absl::StrCat(group.judged.main_metric, ": ", GroupName(report, group)),
        false);
  }
  html += "</tr>\n";
  std::vector<std::vector<std::optional<double>>> scores;  // [part][group]
  double full = 1;  // the score of a whole bar; of percentages 100
  for (const RecordPart& part : parts) {
    std::vector<std::optional<double>>& row = scores.emplace_back();
    for (const GroupPredictions& group : report.predictions) {
      row.push_back(ScoreOfPart(group, part));
      full = row.back().value_or(0) > 1 ? 100 : full;
    }
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    absl::StrAppend(&html, "<tr>", Cell(parts[p].name),
                    NumberCell(absl::StrCat(parts[p].ids.size())));
    for (size_t g = 0; g < report.predictions.size(); ++g) {
      if (!scores[p][g].has_value()) {
        html += Cell("-");
        continue;
      }
      absl::StrAppendFormat(
          &html,
          "<td style=\"white-space:nowrap\">%s<span class=\"bar\" "
          "style=\"width:%.1frem;background:var(--series-%d)\"></span></td>",
          FormatScore(*scores[p][g]),
          5 * std::clamp(*scores[p][g] / full, 0.0, 1.0),
          report.predictions[g].group % 8 + 1);
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// A record with the scores of its predictions, larger ones being better.
struct RankedRecord {
  std::string id;
  double mean = 0;
  double spread = 0;
  int64_t length = 0;
};

using RecordsById = std::map<std::string, size_t>;

RecordsById IndexOf(const JudgedRecords& judged) {
  RecordsById index;
  for (size_t i = 0; i < judged.records.size(); ++i) {
    index[judged.records[i].id] = i;
  }
  return index;
}

// The records that all groups have predictions for.
std::vector<RankedRecord> Rank(const Report& report,
                               const std::vector<RecordsById>& indices) {
  std::vector<RankedRecord> ranked;
  for (const auto& [id, first] : indices.front()) {
    RankedRecord record = {.id = id};
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    size_t found = 0;
    for (size_t g = 0; g < report.predictions.size(); ++g) {
      const auto at = indices[g].find(id);
      if (at == indices[g].end()) {
        break;
      }
      ++found;
      const auto [name, value] =
          report.predictions[g].judged.record_score(at->second);
      const double score = IsLowerBetter(name) ? -value : value;
      low = std::min(low, score);
      high = std::max(high, score);
      record.mean += score / static_cast<double>(report.predictions.size());
    }
    if (found == report.predictions.size()) {
      record.spread = high - low;
      record.length = report.predictions[0].judged.records[first].length;
      ranked.push_back(std::move(record));
    }
  }
  return ranked;
}

bool Contains(const TextPlaces& places, const TextPlaces::value_type& place) {
  return std::any_of(places.begin(), places.end(), [&](const auto& other) {
    return other.first < place.second && place.first < other.second;
  });
}

// `text` from `begin` to `end`, with marks.
std::string Marked(const std::string& text, size_t begin, size_t end,
                   const TextPlaces& gold, const TextPlaces& predicted,
                   const TextPlaces& all) {
  std::string html;
  size_t at = begin;
  for (const auto& place : all) {
    if (place.first < at || place.second > end) {
      continue;
    }
    const bool is_gold = Contains(gold, place);
    const bool is_predicted = Contains(predicted, place);
    absl::StrAppend(
        &html, HtmlText(text.substr(at, place.first - at)), "<mark class=\"",
        is_gold && is_predicted ? "both"
        : is_gold               ? "gold"
                                : "predicted",
        "\">", HtmlText(text.substr(place.first, place.second - place.first)),
        "</mark>");
    at = place.second;
  }
  return absl::StrCat(html, HtmlText(text.substr(at, end - at)));
}

// The next byte from `at` on at which a character begins.
size_t ToCharacter(const std::string& text, size_t at) {
  while (at < text.size() && !BeginsCharacter(text[at])) {
    ++at;
  }
  return std::min(at, text.size());
}

std::string MarkedText(const std::string& text, const TextPlaces& gold,
                       const std::vector<std::string>& predicted_texts) {
  const TextPlaces predicted = FindWords(text, predicted_texts);
  TextPlaces both = gold;
  both.insert(both.end(), predicted.begin(), predicted.end());
  const TextPlaces all = WithoutOverlaps(std::move(both));
  if (text.size() <= kWholeText) {
    return Marked(text, 0, text.size(), gold, predicted, all);
  }
  // The beginning, and what is around the first marks, twice as many if they
  // are gold.
  std::string html;
  size_t end = ToCharacter(text, 3 * kAround);
  size_t begin = 0;
  size_t shown = 0;
  for (const auto& place : all) {
    if (shown >= kShownPlaces * (Contains(gold, place) ? 2 : 1)) {
      continue;
    }
    const size_t from =
        ToCharacter(text, place.first - std::min(place.first, kAround));
    const size_t to = ToCharacter(text, place.second + kAround);
    if (from > end) {
      absl::StrAppend(&html, Marked(text, begin, end, gold, predicted, all),
                      " [...] ");
      begin = from;
      ++shown;
    }
    end = std::max(end, to);
  }
  return absl::StrCat(html, Marked(text, begin, end, gold, predicted, all),
                      end < text.size() ? " [...]" : "");
}

// The name of the score of single records.
std::string RecordScoreName(const Report& report) {
  return report.predictions.front().judged.record_score(0).first;
}

std::string RecordHtml(const Report& report,
                       const std::vector<RecordsById>& indices,
                       const RankedRecord& ranked) {
  const GroupPredictions& first = report.predictions.front();
  const JudgedRecord& record =
      first.judged.records[indices.front().at(ranked.id)];
  std::vector<std::string> predicted;
  std::string rows;
  for (size_t g = 0; g < report.predictions.size(); ++g) {
    const GroupPredictions& group = report.predictions[g];
    const size_t at = indices[g].at(ranked.id);
    const JudgedRecord& judged = group.judged.records[at];
    predicted.insert(predicted.end(), judged.predicted_texts.begin(),
                     judged.predicted_texts.end());
    absl::StrAppend(
        &rows, "<tr>", Cell(GroupName(report, group)),
        NumberCell(FormatScore(group.judged.record_score(at).second)),
        "<td><code>", HtmlText(Shortened(judged.prediction, kMostAnswer)),
        "</code></td></tr>\n");
  }
  return absl::StrCat(
      "<div class=\"record\"><strong>", HtmlText(record.id),
      "</strong> <span class=\"faint\">", record.length, " characters",
      record.evidence >= 0
          ? absl::StrFormat(", evidence at %.0f %%", record.evidence * 100)
          : "",
      "</span>\n<p>", MarkedText(record.text, record.gold_places, predicted),
      "</p>\n<table><tr>", HeadCell("", false),
      HeadCell(RecordScoreName(report), true), HeadCell("answer", false),
      "</tr>\n<tr><td>gold</td><td></td><td><code>",
      HtmlText(Shortened(record.gold, kMostAnswer)), "</code></td></tr>\n",
      rows, "</table></div>\n");
}

// Up to kShownRecords of `ranked` in the order of `before` that are not shown
// yet and that `is_meant`.
template <typename Before, typename IsMeant>
std::string RecordList(const Report& report,
                       const std::vector<RecordsById>& indices,
                       const std::string& title,
                       std::vector<RankedRecord> ranked, Before before,
                       IsMeant is_meant, std::set<std::string>* shown) {
  std::erase_if(ranked, [&](const RankedRecord& record) {
    return shown->contains(record.id) || !is_meant(record);
  });
  std::stable_sort(ranked.begin(), ranked.end(), before);
  std::string html;
  for (size_t i = 0; i < std::min(ranked.size(), kShownRecords); ++i) {
    html += RecordHtml(report, indices, ranked[i]);
    shown->insert(ranked[i].id);
  }
  return html.empty() ? ""
                      : absl::StrCat("<h3>", HtmlText(title), "</h3>\n", html);
}

std::string RecordLists(const Report& report) {
  std::vector<RecordsById> indices;
  for (const GroupPredictions& group : report.predictions) {
    indices.push_back(IndexOf(group.judged));
  }
  const std::vector<RankedRecord> ranked = Rank(report, indices);
  if (ranked.empty()) {
    return "<p>The runs have predictions for different records.</p>\n";
  }
  const auto [worst, best] = std::minmax_element(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.mean < b.mean; });
  const double low = worst->mean;
  const double high = best->mean;
  std::set<std::string> shown;
  std::string html = absl::StrCat(
      "<p class=\"faint\">Marks: <mark class=\"gold\">gold</mark>, <mark "
      "class=\"predicted\">predicted</mark>, <mark class=\"both\">both</mark>. "
      "The score of a record is ",
      HtmlText(RecordScoreName(report)),
      " of it alone; of equal ones the longest come first.</p>\n");
  const auto longer = [](const RankedRecord& a, const RankedRecord& b) {
    return a.length > b.length;
  };
  html += RecordList(
      report, indices, "Where the runs differ most", ranked,
      [&](const RankedRecord& a, const RankedRecord& b) {
        return a.spread != b.spread ? a.spread > b.spread : longer(a, b);
      },
      [](const RankedRecord& record) { return record.spread > 0; }, &shown);
  html += RecordList(
      report, indices, "Worst", ranked,
      [&](const RankedRecord& a, const RankedRecord& b) {
        return a.mean != b.mean ? a.mean < b.mean : longer(a, b);
      },
      [&](const RankedRecord& record) { return record.mean < high; }, &shown);
  html += RecordList(
      report, indices, "Best", ranked,
      [&](const RankedRecord& a, const RankedRecord& b) {
        return a.mean != b.mean ? a.mean > b.mean : longer(a, b);
      },
      [&](const RankedRecord& record) {
        return record.mean > low || low == high;
      },
      &shown);
  return html;
}

std::string Predictions(const Report& report) {
  if (report.predictions.empty()) {
    return "";
  }
  const JudgedRecords& judged = report.predictions.front().judged;
  std::string html = absl::StrCat(
      "<h2>Scores by length and by place of the evidence</h2>\n<p "
      "class=\"faint\">Predictions of the seed with the middle score of each "
      "for ",
      Counted(static_cast<int64_t>(judged.records.size()), "record"),
      " with an answer. The document is the field of a record that has its "
      "text, most often the longest.</p>\n",
      PartTable(report, "length, characters", LengthParts(judged)));
  const std::vector<RecordPart> evidence = EvidenceParts(judged);
  if (!evidence.empty()) {
    absl::StrAppend(
        &html,
        "<p class=\"faint\">The evidence is where the answer is said to begin "
        "or, without that, where the document first has the last of the gold "
        "texts.</p>\n",
        PartTable(report, "place of the evidence", evidence));
  }
  return absl::StrCat(html, "<h2>Predictions</h2>\n", RecordLists(report));
}

std::string Notes(const Report& report) {
  std::vector<std::string> notes = report.notes;
  for (const RunGroup& group : report.groups) {
    for (const LoggedRun& run : group.runs) {
      if (run.log.is_cut) {
        notes.push_back(absl::StrCat(run.directory,
                                     "/metrics.jsonl ends within a line, which "
                                     "is left out"));
      }
    }
    if (!group.not_begun.empty()) {
      notes.push_back(absl::StrCat(group.directory,
                                   " has neither an update nor an evaluation "
                                   "yet of seed ",
                                   absl::StrJoin(group.not_begun, ", ")));
    }
    if (group.settings.is_null()) {
      notes.push_back(absl::StrCat(
          group.directory,
          " has no evaluated checkpoint, so that its settings are not known"));
    }
  }
  std::string html = "<h2>Runs</h2>\n<ul>\n";
  for (const RunGroup& group : report.groups) {
    for (const LoggedRun& run : group.runs) {
      absl::StrAppend(&html, "<li><code>", HtmlText(run.directory),
                      "</code></li>\n");
    }
  }
  html += "</ul>\n";
  for (const std::string& note : notes) {
    absl::StrAppend(&html, "<p>", HtmlText(note), ".</p>\n");
  }
  return html;
}

}  // namespace

std::vector<CurveBand> BandOf(const std::vector<const Curve*>& curves,
                              int64_t steps, int64_t bins) {
  if (steps < 1) {
    return {};
  }
  const int64_t width = (steps + bins - 1) / bins;
  std::map<int64_t, std::vector<double>> means;  // by part
  for (const Curve* curve : curves) {
    std::map<int64_t, std::pair<double, int64_t>> sums;
    for (const auto& [step, value] : *curve) {
      auto& [sum, count] = sums[(step - 1) / width];
      sum += value;
      ++count;
    }
    for (const auto& [part, sum] : sums) {
      means[part].push_back(sum.first / static_cast<double>(sum.second));
    }
  }
  std::vector<CurveBand> band;
  for (const auto& [part, values] : means) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    band.push_back({.step = std::min((part + 1) * width, steps),
                    .median = MedianOf(values),
                    .low = *low,
                    .high = *high});
  }
  return band;
}

std::string ReportPage(const Report& report) {
  const std::string task =
      report.groups.empty() || report.groups.front().task.empty()
          ? "runs"
          : report.groups.front().task;
  const std::string title = absl::StrCat("Report: ", task);
  const std::string state = absl::StrCat(
      Counted(static_cast<int64_t>(report.groups.size()), "setting"), ", ",
      Counted(NumRuns(report.groups), "run"),
      AllEnded(report.groups) ? ", all ended" : ", not all of them ended yet");
  return ToHtml(
      {.title = title,
       .body = absl::StrCat(
           "<h1>", HtmlText(title), "</h1>\n<p class=\"faint\">",
           HtmlText(state), "</p>\n<h2>Did residual scores help here?</h2>\n",
           Verdicts(report), Charts(report), ScoreTable(report),
           Differences(report), Predictions(report), Notes(report)),
       .style = kStyle,
       .script = ""});
}

}  // namespace etc
