#include "tasks/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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

std::string Headline(Certainty certainty, bool is_better,
                     const std::string& with, const std::string& without) {
  const std::string claim = absl::StrCat(
      with, " is ", is_better ? "better" : "worse", " than ", without, " here");
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

std::string Apart(Certainty certainty, size_t with, size_t without) {
  if (certainty != Certainty::kHint && certainty != Certainty::kLikely) {
    return "";
  }
  const double chance =
      ChanceApart(static_cast<int64_t>(with), static_cast<int64_t>(without));
  return absl::StrFormat(
      " The ranges lie apart; those of equal settings would in 1 of %.0f "
      "comparisons.",
      1 / chance);
}

Verdict Compare(const RunGroup& with, const RunGroup& without,
                const MainMetric& metric) {
  const std::vector<double> a = SeedScores(with, metric, metric.name);
  const std::vector<double> b = SeedScores(without, metric, metric.name);
  const std::string with_name =
      with.mode() == with.name
          ? with.name
          : absl::StrCat(with.mode(), " (", with.name, ")");
  if (a.empty() || b.empty()) {
    return {.headline = Headline(Certainty::kNothing, true, with_name, kOff),
            .detail = absl::StrCat(a.empty() ? with.name : without.name,
                                   " has no evaluation yet.")};
  }
  const bool lower = metric.lower_is_better;
  const double difference = SummaryOf(a).median - SummaryOf(b).median;
  const Certainty certainty = CertaintyOf(a, b);
  Verdict verdict = {
      .headline = Headline(certainty, lower ? difference < 0 : difference > 0,
                           with_name, kOff),
      .detail = absl::StrCat(
          "Best ", metric.name, " of each seed: ", Describe(with.mode(), a),
          ", ", Describe(kOff, b), "; difference of medians ",
          difference > 0 ? "+" : "", FormatScore(difference), ". ")};
  if (certainty != Certainty::kNothing) {
    absl::StrAppend(&verdict.detail, with.mode(), " is ", Pairs(a, b, lower),
                    ".", Apart(certainty, a.size(), b.size()));
  } else {
    absl::StrAppend(&verdict.detail,
                    "Another seed alone may make such a difference: set "
                    "train.seeds to [1, 2, 3] or more.");
  }
  const std::vector<std::string> others = OtherDifferences(with, without);
  if (!others.empty()) {
    absl::StrAppend(&verdict.detail,
                    " They differ in more than the mode, which "
                    "may be the reason: ",
                    absl::StrJoin(others, ", "), ".");
  }
  const auto goes_on = [](const RunGroup& group) {
    return !group.not_begun.empty() ||
           std::any_of(group.runs.begin(), group.runs.end(),
                       [](const LoggedRun& run) { return !run.has_ended(); });
  };
  if (goes_on(with) || goes_on(without)) {
    verdict.detail += " Not all of these runs have ended.";
  }
  return verdict;
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
    if (!value.has_value() || !std::isfinite(*value) ||
        evaluation.scores_forgotten <
            run.log.evaluations.back().scores_forgotten) {
      continue;
    }
    if (best == nullptr || !metric.IsBetter(best_value, *value)) {
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
                      absl::Span<const double> without) {
  constexpr double kUnlikely = 0.05;
  if (with.size() < 2 || without.size() < 2) {
    return Certainty::kNothing;
  }
  const Summary a = SummaryOf(with);
  const Summary b = SummaryOf(without);
  if (a.low <= b.high && b.low <= a.high) {
    return Certainty::kOverlap;
  }
  return ChanceApart(static_cast<int64_t>(with.size()),
                     static_cast<int64_t>(without.size())) <= kUnlikely
             ? Certainty::kLikely
             : Certainty::kHint;
}

std::vector<Verdict> CompareModes(absl::Span<const RunGroup> groups,
                                  const MainMetric& metric) {
  std::vector<Verdict> exact;
  std::vector<Verdict> rough;
  for (const RunGroup& with : groups) {
    if (with.mode().empty() || with.mode() == kOff) {
      continue;
    }
    for (const RunGroup& without : groups) {
      if (without.mode() == kOff) {
        const bool is_exact = OtherDifferences(with, without).empty();
        (is_exact ? exact : rough).push_back(Compare(with, without, metric));
      }
    }
  }
  return exact.empty() ? rough : exact;
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
