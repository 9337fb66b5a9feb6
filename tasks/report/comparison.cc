#include "tasks/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"
#include "tasks/config/run_settings.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"

namespace etc {
namespace {

using Json = nlohmann::json;

constexpr char kOff[] = "off";
constexpr char kUnknown[] = "unknown";
constexpr char kAbsent[] = "absent";

// A list of files as their paths with the first digits of their digests.
std::string ValueText(const Json& value) {
  const bool is_files =
      value.is_array() && !value.empty() &&
      std::all_of(value.begin(), value.end(), [](const Json& file) {
        return file.is_object() && file.contains("path") &&
               file["path"].is_string() && file.contains("digest") &&
               file["digest"].is_string();
      });
  if (!is_files) {
    return value.is_string() ? value.get<std::string>() : JsonText(value);
  }
  return absl::StrJoin(value, ", ", [](std::string* text, const Json& file) {
    const std::string digest = file["digest"].get<std::string>();
    const size_t colon = digest.find(':');
    absl::StrAppend(
        text, file["path"].get<std::string>(), " (",
        digest.substr(colon == std::string::npos ? 0 : colon + 1, 8), ")");
  });
}

void Flatten(const Json& json, const std::string& prefix,
             std::map<std::string, std::string>* fields) {
  if (!json.is_object() || json.empty()) {
    (*fields)[prefix] = ValueText(json);
    return;
  }
  for (const auto& [name, value] : json.items()) {
    Flatten(value, prefix.empty() ? name : absl::StrCat(prefix, ".", name),
            fields);
  }
}

std::map<std::string, std::string> FieldsOf(const Json& settings) {
  std::map<std::string, std::string> fields;
  if (!settings.is_null()) {
    Flatten(settings, "", &fields);
  }
  return fields;
}

// True for fields that say how residual scores are made.
bool IsOfResidual(const std::string& field) {
  return absl::StrContains(field, "residual_") ||
         absl::StrContains(field, "gate") || field == "train.score_storage";
}

// The fields beside those of residual scores in which two groups differ.
std::vector<std::string> OtherDifferences(const RunGroup& a,
                                          const RunGroup& b) {
  std::vector<std::string> names;
  const std::vector<RunGroup> both = {a, b};
  for (const DifferingField& field : DifferingFields(both)) {
    if (!IsOfResidual(field.name)) {
      names.push_back(field.name);
    }
  }
  return names;
}

struct Summary {
  double median = 0;
  double low = 0;
  double high = 0;
};

Summary SummaryOf(absl::Span<const double> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {.median = SummarizeScore("", {values.begin(), values.end()}).median,
          .low = *low,
          .high = *high};
}

std::string Describe(const std::string& name, absl::Span<const double> values) {
  const Summary summary = SummaryOf(values);
  return values.size() == 1
             ? absl::StrCat(name, " ", FormatScore(summary.median), " (1 seed)")
             : absl::StrCat(
                   name, " median ", FormatScore(summary.median), " (",
                   FormatScore(summary.low), " to ", FormatScore(summary.high),
                   ", ", Counted(static_cast<int64_t>(values.size()), "seed"),
                   ")");
}

// "better in 6, worse in 2 and equal in 1 of the 9 pairs of seeds"
std::string Pairs(absl::Span<const double> with,
                  absl::Span<const double> without, bool lower_is_better) {
  int64_t better = 0;
  int64_t worse = 0;
  for (const double a : with) {
    for (const double b : without) {
      better += (lower_is_better ? a < b : a > b) ? 1 : 0;
      worse += (lower_is_better ? a > b : a < b) ? 1 : 0;
    }
  }
  const auto pairs = static_cast<int64_t>(with.size() * without.size());
  return absl::StrCat("better in ", better, ", worse in ", worse,
                      " and equal in ", pairs - better - worse, " of the ",
                      pairs, " pairs of seeds");
}

// True if runs with these settings are scored on a part of the files of
// data.train.
bool EvaluatesTrainFiles(const Json& settings) {
  const auto is = [&](const char* place, const Json& value) {
    const Json::json_pointer at(place);
    return settings.contains(at) && settings[at] == value;
  };
  return is("/data/dev", Json::array()) && is("/data/dev_records", "");
}

// A group with residual scores beside one without.
struct Comparison {
  const RunGroup& with;
  const RunGroup& without;
  // For people: "sum", "sum (runs/b)".
  std::string with_name;
  std::string without_name;
  std::vector<double> with_scores;
  std::vector<double> without_scores;
  std::vector<std::string> differences;  // OtherDifferences
  bool is_scored_apart = false;

  // True if it may be answered with yes or no.
  bool is_test() const {
    return differences.empty() && with_scores.size() > 1 &&
           without_scores.size() > 1;
  }
};

std::string ModeAndName(const RunGroup& group) {
  const std::string mode = group.mode();
  return mode.empty() || mode == group.name
             ? group.name
             : absl::StrCat(mode, " (", group.name, ")");
}

// The comparisons of `with`: with the groups without residual scores whose
// settings differ in nothing else or, where there are none, with all.
std::vector<Comparison> ComparisonsOf(
    const RunGroup& with, const std::vector<const RunGroup*>& without,
    const MainMetric& metric) {
  std::vector<Comparison> exact;
  std::vector<Comparison> rough;
  const bool evaluates_train_files = EvaluatesTrainFiles(with.settings);
  for (const RunGroup* off : without) {
    std::vector<std::string> differences = OtherDifferences(with, *off);
    const bool is_scored_apart = std::any_of(
        differences.begin(), differences.end(), [&](const std::string& field) {
          return ChangesScoredRecords(field, evaluates_train_files);
        });
    std::vector<Comparison>& alike = differences.empty() ? exact : rough;
    alike.push_back(
        {.with = with,
         .without = *off,
         .with_name = ModeAndName(with),
         .without_name = without.size() > 1 ? ModeAndName(*off) : kOff,
         .with_scores = SeedScores(with, metric, metric.name),
         .without_scores = SeedScores(*off, metric, metric.name),
         .differences = std::move(differences),
         .is_scored_apart = is_scored_apart});
  }
  return exact.empty() ? rough : exact;
}

// The comparisons of all groups with residual scores: first those that may be
// answered with yes or no, as not all may be shown.
std::vector<Comparison> AllComparisons(absl::Span<const RunGroup> groups,
                                       const MainMetric& metric) {
  std::vector<const RunGroup*> without;
  for (const RunGroup& group : groups) {
    if (group.mode() == kOff) {
      without.push_back(&group);
    }
  }
  std::vector<Comparison> exact;
  std::vector<Comparison> rough;
  for (const RunGroup& with : groups) {
    if (!with.mode().empty() && with.mode() != kOff) {
      for (Comparison& found : ComparisonsOf(with, without, metric)) {
        (found.differences.empty() ? exact : rough).push_back(std::move(found));
      }
    }
  }
  for (Comparison& found : rough) {
    exact.push_back(std::move(found));
  }
  return exact;
}

// "data.train, train.epochs, train.steps and 4 more"
std::string FirstOf(absl::Span<const std::string> names) {
  constexpr size_t kMost = 3;
  return absl::StrCat(absl::StrJoin(names.subspan(0, kMost), ", "),
                      names.size() > kMost
                          ? absl::StrCat(" and ", names.size() - kMost, " more")
                          : "");
}

std::string Headline(const Comparison& comparison, Certainty certainty,
                     bool is_better) {
  const std::string& with = comparison.with_name;
  const std::string& without = comparison.without_name;
  const std::string better = is_better ? "better" : "worse";
  if (comparison.is_scored_apart) {
    return absl::StrCat("Cannot be compared: ", with, " and ", without,
                        " are scored on different data.");
  }
  const bool is_apart =
      certainty == Certainty::kHint || certainty == Certainty::kLikely;
  if (is_apart && !comparison.differences.empty()) {
    return absl::StrCat(with, " scores ", better, " than ", without,
                        ", but they differ in more than the mode: ",
                        FirstOf(comparison.differences), ".");
  }
  const std::string claim =
      absl::StrCat(with, " is ", better, " than ", without, " here");
  switch (certainty) {
    case Certainty::kNothing:
      return absl::StrCat("Nothing can be concluded yet about ", with,
                          " against ", without,
                          ": that takes at least two seeds of each.");
    case Certainty::kOverlap:
      return absl::StrCat("No difference can be shown: the seeds of ", with,
                          " and ", without, " overlap.");
    case Certainty::kHint:
      return absl::StrCat(is_better ? "Probably yes: " : "Probably no: ", claim,
                          ", but so few seeds are only a hint.");
    case Certainty::kLikely:
      return absl::StrCat(is_better ? "Yes: " : "No: ", claim,
                          ", and that is fairly sure.");
  }
  return "";
}

std::string Apart(Certainty certainty, const Comparison& comparison,
                  int64_t tests) {
  if (certainty != Certainty::kHint && certainty != Certainty::kLikely) {
    return "";
  }
  const double chance = ChanceApart(std::ssize(comparison.with_scores),
                                    std::ssize(comparison.without_scores));
  std::string text = absl::StrFormat(
      " The ranges lie apart; those of equal settings would in 1 of %.0f "
      "comparisons",
      1 / chance);
  if (comparison.is_test() && tests > 1) {
    absl::StrAppendFormat(
        &text, ", and in up to %.0f %% of reports with %d of them",
        100 * std::min(1.0, chance * static_cast<double>(tests)), tests);
  }
  return text + ".";
}

// The number that people read, so that differences are those of the page.
double AsShown(double score) {
  double shown = score;
  return absl::SimpleAtod(FormatScore(score), &shown) ? shown : score;
}

// "; difference of medians +0.0300", without a sign where it is 0.
std::string DifferenceText(const Comparison& comparison) {
  const double difference =
      AsShown(SummaryOf(comparison.with_scores).median) -
      AsShown(SummaryOf(comparison.without_scores).median);
  return absl::StrCat("; difference of medians ", difference > 0 ? "+" : "",
                      FormatScore(difference));
}

// Names the seeds of `group` that diverged, if any did.
std::string DivergedText(const RunGroup& group, const std::string& name) {
  std::vector<int64_t> seeds;
  for (const LoggedRun& run : group.runs) {
    if (run.log.has_diverged) {
      seeds.push_back(run.seed);
    }
  }
  return seeds.empty() ? ""
                       : absl::StrCat(" Diverged: ", name, ", seed ",
                                      absl::StrJoin(seeds, ", "),
                                      " (scores, if any, are from before "
                                      "that).");
}

// Names all seeds that diverged, each group a sentence behind a space.
std::string AllDiverged(absl::Span<const RunGroup> groups) {
  std::string text;
  for (const RunGroup& group : groups) {
    text += DivergedText(group, ModeAndName(group));
  }
  return text;
}

// The caveats of a comparison, each a sentence behind a space.
std::string Caveats(const Comparison& comparison) {
  std::string text;
  if (!comparison.differences.empty()) {
    absl::StrAppend(
        &text, " They differ in more than the mode",
        comparison.is_scored_apart ? "" : ", which may be the reason", ": ",
        absl::StrJoin(comparison.differences, ", "), ".");
  }
  absl::StrAppend(&text, DivergedText(comparison.with, comparison.with_name),
                  DivergedText(comparison.without, comparison.without_name));
  if (!comparison.with.has_ended() || !comparison.without.has_ended()) {
    text += " Not all of these runs have ended.";
  }
  return text;
}

// `tests` comparisons of the report may be answered with yes or no.
Verdict Compare(const Comparison& comparison, const MainMetric& metric,
                int64_t tests) {
  const std::vector<double>& a = comparison.with_scores;
  const std::vector<double>& b = comparison.without_scores;
  if (a.empty() || b.empty()) {
    return {.headline = Headline(comparison, Certainty::kNothing, true),
            .detail = absl::StrCat(
                a.empty() ? comparison.with.name : comparison.without.name,
                " has no evaluation.", Caveats(comparison))};
  }
  const bool lower = metric.lower_is_better;
  const double difference = SummaryOf(a).median - SummaryOf(b).median;
  const Certainty certainty = CertaintyOf(a, b, tests);
  const std::string mode = comparison.with.mode();
  std::string detail =
      absl::StrCat("Best ", metric.name, " of each seed: ", Describe(mode, a),
                   ", ", Describe(kOff, b));
  if (comparison.is_scored_apart) {
    detail += ".";
  } else if (certainty != Certainty::kNothing) {
    absl::StrAppend(&detail, DifferenceText(comparison), ". ", mode, " is ",
                    Pairs(a, b, lower), ".",
                    Apart(certainty, comparison, tests));
  } else {
    absl::StrAppend(&detail, DifferenceText(comparison),
                    ". Another seed alone may make such a difference: set "
                    "train.seeds to [1, 2, 3] or more.");
  }
  return {.headline = Headline(comparison, certainty,
                               lower ? difference < 0 : difference > 0),
          .detail = detail + Caveats(comparison)};
}

// The answer where no group with residual scores stands beside one without.
Verdict NoComparison(absl::Span<const RunGroup> groups) {
  std::set<std::string> modes;
  for (const RunGroup& group : groups) {
    modes.insert(group.mode());
  }
  modes.erase("");
  return {.headline = "These runs do not compare residual scores.",
          .detail = absl::StrCat(
              "That takes runs with residual_attention \"off\" beside runs "
              "with another mode; these have ",
              modes.empty() ? "no known mode yet" : absl::StrJoin(modes, "; "),
              ".", AllDiverged(groups))};
}

}  // namespace

std::vector<std::string> EvaluatedMetrics(absl::Span<const RunGroup> groups) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const RunGroup& group : groups) {
    for (const LoggedRun& run : group.runs) {
      for (const LoggedEvaluation& evaluation : run.log.evaluations) {
        for (const auto& [name, value] : evaluation.metrics) {
          if (known.insert(name).second) {
            names.push_back(name);
          }
        }
      }
    }
  }
  return names;
}

namespace {

MainMetric MetricNamed(const std::string& name,
                       absl::Span<const RunGroup> groups) {
  for (const RunGroup& group : groups) {
    if (group.main_metric.name == name) {
      return group.main_metric;
    }
  }
  return {.name = name, .lower_is_better = IsLowerBetter(name)};
}

}  // namespace

absl::StatusOr<MainMetric> ComparedMetric(absl::Span<const RunGroup> groups,
                                          const std::string& wanted) {
  const std::vector<std::string> names = EvaluatedMetrics(groups);
  if (!wanted.empty()) {
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      return MetricNamed(wanted, groups);
    }
    const std::string nearest = NearestName(wanted, names);
    return absl::NotFoundError(absl::StrCat(
        "the runs have no metric \"", wanted, "\"",
        names.empty() ? ": none was evaluated yet"
        : nearest.empty()
            ? absl::StrCat("; they have: ", absl::StrJoin(names, ", "))
            : absl::StrCat("; did you mean \"", nearest, "\"?")));
  }
  for (const RunGroup& group : groups) {
    if (!group.main_metric.name.empty()) {
      return group.main_metric;
    }
  }
  return MetricNamed(names.empty() ? "" : names.front(), groups);
}

const LoggedEvaluation* BestEvaluation(const LoggedRun& run,
                                       const MainMetric& metric) {
  const LoggedEvaluation* best = nullptr;
  double best_value = 0;
  for (const LoggedEvaluation& evaluation : run.log.evaluations) {
    const std::optional<double> value =
        FindMetric(evaluation.metrics, metric.name);
    if (value.has_value() && std::isfinite(*value) &&
        (best == nullptr || !metric.IsBetter(best_value, *value))) {
      best = &evaluation;
      best_value = *value;
    }
  }
  return best;
}

std::vector<double> SeedScores(const RunGroup& group, const MainMetric& metric,
                               const std::string& name) {
  std::vector<double> scores;
  for (const LoggedRun& run : group.runs) {
    const LoggedEvaluation* const best = BestEvaluation(run, metric);
    if (best != nullptr) {
      if (const auto score = FindMetric(best->metrics, name)) {
        scores.push_back(*score);
      }
    }
  }
  return scores;
}

std::optional<size_t> MiddleRun(const RunGroup& group,
                                const MainMetric& metric) {
  std::vector<std::pair<double, size_t>> scores;
  for (size_t i = 0; i < group.runs.size(); ++i) {
    if (const LoggedEvaluation* found = BestEvaluation(group.runs[i], metric)) {
      scores.emplace_back(*FindMetric(found->metrics, metric.name), i);
    }
  }
  if (scores.empty()) {
    return std::nullopt;
  }
  std::sort(scores.begin(), scores.end());
  return scores[(scores.size() - 1) / 2].second;
}

double ChanceApart(int64_t a, int64_t b) {
  double ways = 1;  // C(a + b, a)
  for (int64_t i = 1; i <= a; ++i) {
    ways = ways * static_cast<double>(b + i) / static_cast<double>(i);
  }
  return 2 / ways;
}

Certainty CertaintyOf(absl::Span<const double> with,
                      absl::Span<const double> without, int64_t tests) {
  constexpr double kUnlikely = 0.05;
  if (with.size() < 2 || without.size() < 2) {
    return Certainty::kNothing;
  }
  const Summary a = SummaryOf(with);
  const Summary b = SummaryOf(without);
  if (a.low <= b.high && b.low <= a.high) {
    return Certainty::kOverlap;
  }
  const double chance = ChanceApart(static_cast<int64_t>(with.size()),
                                    static_cast<int64_t>(without.size()));
  return chance * static_cast<double>(tests) <= kUnlikely ? Certainty::kLikely
                                                          : Certainty::kHint;
}

std::vector<Verdict> CompareModes(absl::Span<const RunGroup> groups,
                                  const MainMetric& metric) {
  constexpr size_t kMostVerdicts = 12;
  if (metric.name.empty()) {
    return {{.headline = "Nothing was evaluated yet.",
             .detail = absl::StrCat(
                 "Scores appear here after the first evaluation of a run; "
                 "curves of the updates are on the page.",
                 AllDiverged(groups))}};
  }
  const std::vector<Comparison> comparisons = AllComparisons(groups, metric);
  if (comparisons.empty()) {
    return {NoComparison(groups)};
  }
  const int64_t tests = std::count_if(
      comparisons.begin(), comparisons.end(),
      [](const Comparison& comparison) { return comparison.is_test(); });
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < std::min(comparisons.size(), kMostVerdicts); ++i) {
    verdicts.push_back(Compare(comparisons[i], metric, tests));
  }
  if (comparisons.size() > kMostVerdicts) {
    verdicts.push_back(
        {.headline = absl::StrCat(comparisons.size() - kMostVerdicts,
                                  " more comparisons are not shown."),
         .detail = "The table of scores has all settings."});
  }
  std::string of_no_mode;
  for (const RunGroup& group : groups) {
    if (group.mode().empty()) {
      of_no_mode += DivergedText(group, group.name);
    }
  }
  if (!of_no_mode.empty()) {
    verdicts.push_back(
        {.headline = "Some runs diverged before their mode was known.",
         .detail = absl::StrCat("Settings are known from the first evaluated "
                                "checkpoint on.",
                                of_no_mode)});
  }
  return verdicts;
}

std::vector<DifferingField> DifferingFields(absl::Span<const RunGroup> groups) {
  // Files are shown with their paths, and compared without.
  std::vector<std::map<std::string, std::string>> shown;
  std::vector<std::map<std::string, std::string>> compared;
  std::set<std::string> names;
  for (const RunGroup& group : groups) {
    compared.push_back(FieldsOf(WithoutPaths(group.settings)));
    for (const auto& [name, value] :
         shown.emplace_back(FieldsOf(group.settings))) {
      names.insert(name);
    }
  }
  std::vector<DifferingField> differing;
  for (const std::string& name : names) {
    DifferingField field = {.name = name};
    std::set<std::string> values;
    for (size_t i = 0; i < shown.size(); ++i) {
      const auto found = shown[i].find(name);
      field.values.push_back(shown[i].empty()          ? kUnknown
                             : found == shown[i].end() ? kAbsent
                                                       : found->second);
      if (!shown[i].empty()) {
        const auto value = compared[i].find(name);
        values.insert(value == compared[i].end() ? kAbsent : value->second);
      }
    }
    if (values.size() > 1) {
      differing.push_back(std::move(field));
    }
  }
  return differing;
}

}  // namespace etc
