#include "tasks/run_summary.h"

#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "tasks/train/score_table.h"

namespace etc {
namespace {

using Json = nlohmann::json;

constexpr auto kIgnoreOthers = JsonObjectReader::UnknownFields::kIgnore;

absl::StatusOr<Metrics> ReadMedians(const Json& scores,
                                    const std::string& where) {
  Metrics medians;
  JsonObjectReader reader(scores, where);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  for (const auto& [name, score] : scores.items()) {
    JsonObjectReader score_reader(score, reader.Where(name));
    if (score.is_object() && score.contains("median") &&
        score["median"].is_null()) {
      continue;  // it was not a number
    }
    double median = 0;
    score_reader.Required("median", &median);
    ETC_RETURN_IF_ERROR(score_reader.Finish(kIgnoreOthers));
    medians.emplace_back(name, median);
  }
  return medians;
}

// The scores of a summary.json that has been read, in the order of the file,
// which a Json has not.
std::vector<ScoreSummary> ScoresInOrder(const std::string& text) {
  const auto json = nlohmann::ordered_json::parse(text);
  std::vector<ScoreSummary> scores;
  for (const auto& [name, score] : json["scores"].items()) {
    const auto deviation = score.find("standard_deviation");
    scores.push_back({.name = name,
                      .median = score["median"].is_number()
                                    ? score["median"].get<double>()
                                    : std::numeric_limits<double>::quiet_NaN(),
                      .standard_deviation =
                          deviation != score.end() && deviation->is_number()
                              ? std::optional<double>(deviation->get<double>())
                              : std::nullopt});
  }
  return scores;
}

// A list of objects.
absl::Status CheckIsList(const Json& json, const std::string& where) {
  return json.is_array() ? absl::OkStatus()
                         : absl::InvalidArgumentError(
                               absl::StrCat(where, " should be a list"));
}

// The settings of a grid.json that are finished, and all.
struct GridSettings {
  int64_t finished = 0;
  int64_t all = 0;
  Metrics of_best;
};

absl::StatusOr<GridSettings> ReadSettings(const Json& json,
                                          const std::string& where,
                                          const std::string& best) {
  ETC_RETURN_IF_ERROR(CheckIsList(json, where));
  GridSettings settings;
  for (const Json& setting : json) {
    JsonObjectReader reader(setting, where);
    std::string directory;
    reader.Required("directory", &directory);
    const Json* scores = reader.Raw("scores", /*required=*/true);
    ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
    ++settings.all;
    if (scores->is_null()) {
      continue;
    }
    ++settings.finished;
    if (directory == best) {
      ETC_ASSIGN_OR_RETURN(settings.of_best,
                           ReadMedians(*scores, reader.Where("scores")));
    }
  }
  return settings;
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
  if (const Json* options = reader.Raw("options", /*required=*/false)) {
    summary.options = *options;
  }
  const Json* scores = reader.Raw("scores", /*required=*/true);
  const Json* runs = reader.Raw("runs", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  ETC_ASSIGN_OR_RETURN(summary.medians,
                       ReadMedians(*scores, reader.Where("scores")));
  summary.scores = ScoresInOrder(text);
  ETC_RETURN_IF_ERROR(CheckIsList(*runs, reader.Where("runs")));
  for (const Json& run : *runs) {
    JsonObjectReader run_reader(run, reader.Where("runs"));
    int64_t seed = 0;
    run_reader.Required("seed", &seed);
    const Json* best = run_reader.Raw("best", /*required=*/true);
    ETC_RETURN_IF_ERROR(run_reader.Finish(kIgnoreOthers));
    JsonObjectReader best_reader(*best, run_reader.Where("best"));
    double score = 0;
    // Null: it was not a number.
    const bool has_score = best->is_object() &&
                           best->contains(summary.main_metric) &&
                           !(*best)[summary.main_metric].is_null();
    if (has_score) {
      best_reader.Required(summary.main_metric, &score);
    }
    ETC_RETURN_IF_ERROR(best_reader.Finish(kIgnoreOthers));
    summary.seeds.insert(seed);
    if (has_score) {
      summary.best.emplace(seed, score);
    }
  }
  return summary;
}

absl::StatusOr<FoundRun> FindRun(const std::string& path) {
  const std::string file = path + "/grid.json";
  ETC_ASSIGN_OR_RETURN(const bool is_grid, PathExists(file));
  if (!is_grid) {
    return FoundRun{.directory = path};
  }
  ETC_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  JsonObjectReader reader(json, file);
  std::string main_metric;
  std::optional<std::string> best;
  reader.Required("main_metric", &main_metric);
  reader.Required("best", &best);
  const Json* settings_json = reader.Raw("settings", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  if (!best.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is of a grid of which no setting has scores yet; name "
                     "the directory of one, in it"));
  }
  if (!IsPlainBaseName(*best)) {
    reader.Fail("best", "should be the name of a directory beside it");
    return reader.Finish(kIgnoreOthers);
  }
  ETC_ASSIGN_OR_RETURN(
      const GridSettings settings,
      ReadSettings(*settings_json, reader.Where("settings"), *best));
  std::string reason = absl::StrCat(
      "the best of ",
      settings.finished == settings.all
          ? Counted(settings.all, "setting")
          : absl::StrCat("the ", settings.finished, " finished of ",
                         settings.all, " settings"));
  if (const auto median = FindMetric(settings.of_best, main_metric)) {
    absl::StrAppend(&reason, ", median ", main_metric, " ",
                    FormatScore(*median));
  }
  return FoundRun{.directory = absl::StrCat(path, "/", *best),
                  .reason = std::move(reason)};
}

}  // namespace etc
