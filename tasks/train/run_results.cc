#include "tasks/train/run_results.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/train/finetune.h"
#include "tasks/train/run_lock.h"
#include "tasks/train/run_settings.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Others write in a moment; but a machine may have much else to do.
constexpr std::chrono::minutes kLongestWrite(5);

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
  return {{"seed", run.seed},
          {"directory", run.directory},
          {"steps", run.steps},
          {"best_step", run.best_step},
          {"best", MetricsToJson(run.best)},
          {"last", MetricsToJson(run.last)}};
}

bool IsRun(const OrderedJson& json) {
  return json.is_object() && json.contains("seed") &&
         json["seed"].is_number_integer() && json.contains("best") &&
         json["best"].is_object();
}

// An object, in the order of its file; nothing if there is no file.
absl::StatusOr<std::optional<OrderedJson>> ReadIfThere(
    const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return std::nullopt;
  }
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  OrderedJson json = OrderedJson::parse(text, /*cb=*/nullptr,
                                        /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " should be a JSON object, but is damaged: remove it, and the "
        "end of a run makes it anew"));
  }
  return json;
}

// The seeds that have a directory in `output`.
std::vector<int64_t> SeedsIn(const std::string& output) {
  std::vector<int64_t> seeds;
  std::error_code error;
  for (auto entry = fs::directory_iterator(output, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view number = name;
    int64_t seed = 0;
    if (absl::ConsumePrefix(&number, "seed-") &&
        absl::SimpleAtoi(number, &seed)) {
      seeds.push_back(seed);
    }
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

// Results of the seeds in the directory of a run, read from disk.
class RunResults {
 public:
  static absl::StatusOr<RunResults> Read(const FinetuneConfig& config);

  // As in summary.json, by seed.
  const std::map<int64_t, OrderedJson>& runs() const { return runs_; }
  // Why the scores of `seed` are not those of runs with the settings of
  // `other`; empty: they are.
  std::string Difference(int64_t seed, int64_t other) const;

 private:
  std::map<int64_t, OrderedJson> runs_;
  std::map<int64_t, Json> settings_;
};

absl::StatusOr<RunResults> RunResults::Read(const FinetuneConfig& config) {
  RunResults results;
  std::map<int64_t, OrderedJson> earlier;
  ETC_ASSIGN_OR_RETURN(const std::optional<OrderedJson> summary,
                       ReadIfThere(config.output + "/summary.json"));
  if (summary.has_value() && summary->contains("runs")) {
    for (const OrderedJson& run : (*summary)["runs"]) {
      if (IsRun(run)) {
        earlier[run["seed"].get<int64_t>()] = run;
      }
    }
  }
  for (const int64_t seed : SeedsIn(config.output)) {
    const std::string directory = SeedDirectory(config, seed);
    const std::string path = directory + "/result.json";
    ETC_ASSIGN_OR_RETURN(std::optional<OrderedJson> result, ReadIfThere(path));
    if (result.has_value() && !IsRun(*result)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " should have a seed and its best scores"));
    }
    if (result.has_value() && result->contains("settings")) {
      results.settings_[seed] = Json((*result)["settings"]);
      result->erase("settings");
    } else if (const auto found = earlier.find(seed);
               !result.has_value() && found != earlier.end()) {
      result = found->second;  // of a version that wrote no result.json
    }
    if (result.has_value()) {
      (*result)["directory"] = directory;  // it may have been moved
      results.runs_[seed] = *std::move(result);
    }
  }
  return results;
}

std::string RunResults::Difference(int64_t seed, int64_t other) const {
  const auto mine = settings_.find(seed);
  const auto others = settings_.find(other);
  if (mine == settings_.end() || others == settings_.end()) {
    return "its settings are not noted";
  }
  const auto changes =
      CheckSameSettings(mine->second, others->second, {"train.seed"});
  return changes.ok() ? "" : "it had other settings";
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
      if (const auto value = FindMetric(run, name)) {
        values.push_back(*value);
      }
    }
    if (values.size() == runs.size()) {
      scores.push_back(SummarizeScore(name, std::move(values)));
    }
  }
  return scores;
}

absl::Status WriteRunResult(const RunResult& run, const Json& settings) {
  OrderedJson json = RunToJson(run);
  json["settings"] = settings;
  return WriteFileAtomically(run.directory + "/result.json", Text(json));
}

absl::StatusOr<std::vector<std::string>> WriteSummary(
    const FinetuneConfig& config, const std::string& main_metric,
    const std::vector<RunResult>& runs) {
  ETC_ASSIGN_OR_RETURN(const RunLock lock,
                       RunLock::Take(config.output, kLongestWrite));
  ETC_ASSIGN_OR_RETURN(const RunResults results, RunResults::Read(config));
  OrderedJson all = OrderedJson::array();
  std::vector<Metrics> scored;
  std::vector<std::string> messages;
  for (const auto& [seed, run] : results.runs()) {
    all.push_back(run);
    const bool is_own = std::any_of(
        runs.begin(), runs.end(),
        [&, seed = seed](const RunResult& own) { return own.seed == seed; });
    const std::string difference =
        is_own ? "" : results.Difference(seed, runs.front().seed);
    if (difference.empty()) {
      scored.push_back(MetricsOf(run));
    } else {
      messages.push_back(absl::StrCat("the scores of summary.json are without ",
                                      SeedDirectory(config, seed), ": ",
                                      difference));
    }
  }
  if (scored.size() > runs.size()) {
    messages.push_back(absl::StrCat(
        "summary.json is of ",
        Counted(static_cast<int64_t>(scored.size()), "seed"), " that ",
        config.output, " has, not only of those of this start"));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      config.output + "/summary.json",
      Text({{"task", config.task},
            {"options", config.task_options},
            {"main_metric", main_metric},
            {"scores", ScoreSummariesToJson(SummarizeScores(scored))},
            {"runs", all}})));
  return messages;
}

}  // namespace etc
