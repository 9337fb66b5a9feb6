#include "tasks/output/results.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/metrics.h"
#include "tasks/output/run_lock.h"

namespace etc {
namespace {

using Json = nlohmann::json;

// A field of a run in summary.json that is only there with the value true.
constexpr char kOtherSettings[] = "other_settings";
// The field of a result.json that summary.json has not.
constexpr char kResultSettings[] = "settings";

// The scores of a summary.json, which `text` is, in the order of the file,
// which a Json has not.
absl::StatusOr<std::vector<ScoreSummary>> ReadScores(const Json& scores,
                                                     const std::string& text,
                                                     const std::string& where) {
  JsonObjectReader reader(scores, where);
  ETC_RETURN_IF_ERROR(reader.status());
  const auto in_order = nlohmann::ordered_json::parse(text);
  std::vector<ScoreSummary> summaries;
  for (const auto& [name, ignored] : in_order["scores"].items()) {
    const Json& score = scores[name];
    ScoreSummary summary = {.name = name};
    JsonObjectReader score_reader(score, reader.Where(name));
    if (score.is_object() && score.contains("median") &&
        score["median"].is_null()) {
      continue;  // not finite, as earlier builds wrote it
    }
    score_reader.Required("median", &summary.median);
    // Null: of a single seed, or too large for a number.
    if (score.is_object() && score.contains("standard_deviation") &&
        !score["standard_deviation"].is_null()) {
      score_reader.Required("standard_deviation",
                            &summary.standard_deviation.emplace());
    }
    ETC_RETURN_IF_ERROR(score_reader.status());
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

// A list of objects.
absl::Status CheckIsList(const Json& json, const std::string& where) {
  return json.is_array() ? absl::OkStatus()
                         : absl::InvalidArgumentError(
                               absl::StrCat(where, " should be a list"));
}

}  // namespace

absl::StatusOr<RunSummary> ReadRunSummary(const std::string& directory) {
  const std::string path = directory + "/summary.json";
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ETC_ASSIGN_OR_RETURN(const Json json, ParseJson(text, path));
  RunSummary summary = {.directory = directory};
  JsonObjectReader reader(json, path);
  reader.Required("task", &summary.task);
  reader.Required("main_metric", &summary.main_metric);
  std::string direction;
  reader.Optional(kMainMetricDirection, &direction);
  summary.lower_is_better = direction == kLowerIsBetter;
  const Json* options = reader.Raw("options", /*required=*/true);
  const Json* scores = reader.Raw("scores", /*required=*/true);
  const Json* runs = reader.Raw("runs", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  summary.options = *options;
  ETC_ASSIGN_OR_RETURN(summary.scores,
                       ReadScores(*scores, text, reader.Where("scores")));
  ETC_RETURN_IF_ERROR(CheckIsList(*runs, reader.Where("runs")));
  for (const Json& run : *runs) {
    JsonObjectReader run_reader(run, reader.Where("runs"));
    int64_t seed = 0;
    run_reader.Required("seed", &seed);
    const Json* best = run_reader.Raw("best", /*required=*/true);
    ETC_RETURN_IF_ERROR(run_reader.status());
    JsonObjectReader best_reader(*best, run_reader.Where("best"));
    double score = 0;
    // Null: it was not a number.
    const bool has_score = best->is_object() &&
                           best->contains(summary.main_metric) &&
                           !(*best)[summary.main_metric].is_null();
    if (has_score) {
      best_reader.Required(summary.main_metric, &score);
    }
    ETC_RETURN_IF_ERROR(best_reader.status());
    summary.seeds.insert(seed);
    if (run.contains(kOtherSettings)) {
      summary.other_settings.insert(seed);
    }
    if (has_score) {
      summary.best.emplace(seed, score);
    }
  }
  return summary;
}

ScoreSummary SummarizeScore(std::string name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const size_t middle = count / 2;
  ScoreSummary summary{.name = std::move(name)};
  summary.median = count % 2 == 1
                       ? values[middle]
                       : std::midpoint(values[middle - 1], values[middle]);
  if (count > 1) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) /
                        static_cast<double>(count);
    double squares = 0;
    for (const double value : values) {
      squares += (value - mean) * (value - mean);
    }
    const double deviation =
        std::sqrt(squares / static_cast<double>(count - 1));
    if (std::isfinite(deviation)) {
      summary.standard_deviation = deviation;
    }
  }
  return summary;
}

nlohmann::ordered_json ScoreSummariesToJson(
    const std::vector<ScoreSummary>& scores) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  for (const ScoreSummary& score : scores) {
    json[score.name] = {
        {"median", score.median},
        {"standard_deviation", score.standard_deviation.has_value()
                                   ? Json(*score.standard_deviation)
                                   : Json()}};
  }
  return json;
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::string Text(const OrderedJson& json) {
  return JsonText(json, /*indent=*/2) + "\n";
}

OrderedJson MetricsToJson(const Metrics& metrics) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, value] : metrics) {
    json[name] = value;
  }
  return json;
}

// Returns the result of a seed, as in the list "runs" of summary.json.
OrderedJson RunToJson(const RunResult& run) {
  OrderedJson json = {{"seed", run.seed},
                      {"directory", run.directory},
                      {"steps", run.steps},
                      {"best_step", run.best_step},
                      {"best", MetricsToJson(run.best)},
                      {"last", MetricsToJson(run.last)}};
  if (!run.end_reason.empty()) {
    json["end_reason"] = run.end_reason;
  }
  if (!run.program.version.empty()) {
    json["program"] = ProgramVersionToJson(run.program);
  }
  return json;
}

bool IsRun(const OrderedJson& json) {
  return json.is_object() && json.contains("seed") &&
         json["seed"].is_number_integer() && json.contains("best") &&
         json["best"].is_object();
}

// Returns true for the contents of a result.json.
bool IsResult(const OrderedJson& json) {
  return IsRun(json) && json.contains(kResultSettings);
}

// An object, in the order of its file; nothing if there is no file.
absl::StatusOr<std::optional<OrderedJson>> ReadIfThere(
    const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return std::nullopt;
  }
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<Json> checked = ParseJson(text, path);
  if (!checked.ok() || !checked->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " should be a JSON object, but is damaged: move it away, and the "
        "end of a run makes it anew"));
  }
  OrderedJson json = OrderedJson::parse(text);
  return json;
}

std::string SummaryFile(const std::string& output) {
  return output + "/summary.json";
}

absl::StatusOr<std::optional<OrderedJson>> ReadSummaryIfThere(
    const std::string& output) {
  ETC_ASSIGN_OR_RETURN(std::optional<OrderedJson> summary,
                       ReadIfThere(SummaryFile(output)));
  if (summary.has_value() &&
      (!summary->contains("task") || !summary->contains("main_metric") ||
       !summary->contains("runs") || !(*summary)["runs"].is_array())) {
    return absl::InvalidArgumentError(absl::StrCat(
        SummaryFile(output),
        " should have task, main_metric and a list of runs, as a run writes "
        "them, but has not: move it away, and the end of a run makes it "
        "anew"));
  }
  return summary;
}

constexpr char kSeedPrefix[] = "seed-";

// Results of the seeds in the directory of a run, read from disk.
class RunResults {
 public:
  static absl::StatusOr<RunResults> Read(const std::string& output);

  // Results as in summary.json, by seed.
  const std::map<int64_t, OrderedJson>& runs() const { return runs_; }
  // `settings`, if one of `runs` has them; else those of the last one.
  const Json& SettingsOf(const RunOutput& output,
                         const std::vector<RunResult>& runs,
                         const Json& settings) const;
  // Returns true if `seed` had `settings`.
  bool HadSettings(const RunOutput& output, int64_t seed,
                   const Json& settings) const;

 private:
  std::map<int64_t, OrderedJson> runs_;
  std::map<int64_t, Json> settings_;
};

absl::StatusOr<RunResults> RunResults::Read(const std::string& output) {
  RunResults results;
  for (const auto& [seed, directory] : SeedDirectories(output)) {
    const std::string path = directory + "/result.json";
    ETC_ASSIGN_OR_RETURN(std::optional<OrderedJson> result, ReadIfThere(path));
    if (!result.has_value()) {
      continue;
    }
    if (!IsResult(*result)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " should have a seed, its best scores and its settings"));
    }
    results.settings_[seed] = Json((*result)[kResultSettings]);
    result->erase(kResultSettings);
    (*result)["directory"] = directory;  // it may have been moved
    results.runs_[seed] = *std::move(result);
  }
  return results;
}

const Json& RunResults::SettingsOf(const RunOutput& output,
                                   const std::vector<RunResult>& runs,
                                   const Json& settings) const {
  const bool has_them =
      std::any_of(runs.begin(), runs.end(), [&](const RunResult& run) {
        return HadSettings(output, run.seed, settings);
      });
  const auto last = settings_.find(runs.back().seed);
  return has_them || last == settings_.end() ? settings : last->second;
}

bool RunResults::HadSettings(const RunOutput& output, int64_t seed,
                             const Json& settings) const {
  const auto found = settings_.find(seed);
  return found != settings_.end() &&
         output.has_same_settings(found->second, settings);
}

// A result without what depends on the start that wrote it.
OrderedJson OfTheRunAlone(OrderedJson result) {
  for (const char* field : {kResultSettings, "program", "directory"}) {
    result.erase(field);
  }
  return result;
}

Metrics MetricsOf(const OrderedJson& run) {
  Metrics metrics;
  for (const auto& [name, value] : run["best"].items()) {
    if (value.is_number()) {
      metrics.emplace_back(name, value.get<double>());
    }
  }
  return metrics;
}

}  // namespace

std::vector<ScoreSummary> SummarizeScores(const std::vector<Metrics>& runs) {
  std::vector<ScoreSummary> scores;
  if (runs.empty()) {
    return scores;
  }
  for (const auto& [name, ignored] : runs.front()) {
    std::vector<double> values;
    for (const Metrics& run : runs) {
      const std::optional<double> value = FindMetric(run, name);
      // JSON has no others: the files of the runs lack them.
      if (value.has_value() && std::isfinite(*value)) {
        values.push_back(*value);
      }
    }
    if (values.size() == runs.size()) {
      scores.push_back(SummarizeScore(name, std::move(values)));
    }
  }
  return scores;
}

std::string SeedDirectory(const std::string& output, int64_t seed) {
  return absl::StrCat(output, "/", kSeedPrefix, seed);
}

std::optional<int64_t> SeedOf(const std::string& directory) {
  const std::string name = fs::path(directory).filename().string();
  absl::string_view number = name;
  int64_t seed = 0;
  // No other spelling of the number: "seed-01" is nothing that a run makes.
  return absl::ConsumePrefix(&number, kSeedPrefix) &&
                 absl::SimpleAtoi(number, &seed) && number == absl::StrCat(seed)
             ? std::optional(seed)
             : std::nullopt;
}

std::map<int64_t, std::string> SeedDirectories(const std::string& output) {
  std::map<int64_t, std::string> directories;
  std::error_code error;
  for (fs::directory_iterator entry(output, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code ignored;
    if (const auto seed = SeedOf(path);
        seed.has_value() && entry->is_directory(ignored)) {
      directories.emplace(*seed, path);
    }
  }
  return directories;
}

absl::Status WriteRunResult(const RunResult& run, const Json& settings) {
  const std::string path = run.directory + "/result.json";
  OrderedJson json = RunToJson(run);
  json[kResultSettings] = settings;
  ETC_ASSIGN_OR_RETURN(const std::optional<OrderedJson> earlier,
                       ReadIfThere(path));
  if (earlier.has_value() && IsResult(*earlier) &&
      Text(OfTheRunAlone(*earlier)) == Text(OfTheRunAlone(json))) {
    return absl::OkStatus();
  }
  return WriteFileAtomically(path, Text(json));
}

namespace {

// The results of some runs as summary.json has them.
struct SummarizedRuns {
  OrderedJson all = OrderedJson::array();
  std::vector<Metrics> scored;
  // Seeds that are not in `scored`: they had other settings.
  std::set<int64_t> left_out;

  nlohmann::ordered_json scores() const {
    return ScoreSummariesToJson(SummarizeScores(scored));
  }
};

// Adds a run, whose scores count unless it had other settings.
void AddSummarized(int64_t seed, OrderedJson run, bool had_other_settings,
                   SummarizedRuns* runs) {
  if (had_other_settings) {
    run[kOtherSettings] = true;
    runs->left_out.insert(seed);
  } else {
    runs->scored.push_back(MetricsOf(run));
  }
  runs->all.push_back(std::move(run));
}

}  // namespace

void AddMainMetric(const MainMetric& metric, OrderedJson* json) {
  (*json)["main_metric"] = metric.name;
  if (metric.lower_is_better) {
    (*json)[kMainMetricDirection] = kLowerIsBetter;
  }
}

absl::Status CheckSummary(const std::string& output) {
  const absl::Status status = ReadSummaryIfThere(output).status();
  // Another run may take it back after the look at whether it is there.
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<WrittenSummary> WriteSummary(const RunOutput& output,
                                            const MainMetric& main_metric,
                                            const std::vector<RunResult>& runs,
                                            const Json& settings) {
  ETC_ASSIGN_OR_RETURN(const RunLock lock,
                       RunLock::Take(output.directory, kLongestWrite));
  ETC_RETURN_IF_ERROR(CheckSummary(output.directory));
  ETC_ASSIGN_OR_RETURN(const RunResults results,
                       RunResults::Read(output.directory));
  const Json& of_scores = results.SettingsOf(output, runs, settings);
  SummarizedRuns summarized;
  for (const auto& [seed, run] : results.runs()) {
    AddSummarized(seed, run, !results.HadSettings(output, seed, of_scores),
                  &summarized);
  }
  WrittenSummary written = {.left_out = summarized.left_out};
  for (const int64_t seed : summarized.left_out) {
    written.messages.push_back(absl::StrCat(
        "the scores of summary.json are without ",
        SeedDirectory(output.directory, seed), ": it had other settings"));
  }
  const auto num_scored = static_cast<int64_t>(summarized.scored.size());
  if (num_scored > static_cast<int64_t>(runs.size())) {
    written.messages.push_back(absl::StrCat(
        "summary.json is of ", Counted(num_scored, "seed"), " that ",
        output.directory, " has, not only of those of this start"));
  }
  OrderedJson summary = {{"task", output.task},
                         {"options", output.task_options}};
  AddMainMetric(main_metric, &summary);
  summary["scores"] = summarized.scores();
  summary["runs"] = summarized.all;
  ETC_RETURN_IF_ERROR(
      WriteFileAtomically(SummaryFile(output.directory), Text(summary)));
  return written;
}

absl::Status WithdrawResult(const RunOutput& output, int64_t seed) {
  const std::string result =
      SeedDirectory(output.directory, seed) + "/result.json";
  ETC_ASSIGN_OR_RETURN(const RunLock lock,
                       RunLock::Take(output.directory, kLongestWrite));
  ETC_ASSIGN_OR_RETURN(std::optional<OrderedJson> summary,
                       ReadSummaryIfThere(output.directory));
  if (summary.has_value()) {
    // The others stay as they were: the settings of this seed, which may be new
    // there, are not known to compare theirs with.
    const std::map<int64_t, std::string> seeds =
        SeedDirectories(output.directory);
    SummarizedRuns others;
    for (const OrderedJson& run : (*summary)["runs"]) {
      if (IsRun(run) && run["seed"] != seed && seeds.contains(run["seed"])) {
        AddSummarized(run["seed"], run, run.contains(kOtherSettings), &others);
      }
    }
    // First the summary: without it the result alone is read again.
    if (others.all.empty()) {
      ETC_RETURN_IF_ERROR(RemoveTree(SummaryFile(output.directory)));
    } else {
      (*summary)["scores"] = others.scores();
      (*summary)["runs"] = others.all;
      ETC_RETURN_IF_ERROR(
          WriteFileAtomically(SummaryFile(output.directory), Text(*summary)));
    }
  }
  return RemoveTree(result);
}

}  // namespace etc
