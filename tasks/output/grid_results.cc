#include "tasks/output/grid_results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/output/run_lock.h"

namespace etc {
namespace {

using OrderedJson = nlohmann::ordered_json;

}  // namespace

const ScoreSummary* MainScore(const GridResult& grid,
                              const SettingResult& setting) {
  for (const ScoreSummary& score : setting.result.scores) {
    if (score.name == grid.main_metric) {
      return &score;
    }
  }
  return nullptr;
}

std::vector<size_t> BestSettings(const GridResult& result) {
  const MainMetric metric = {.lower_is_better = result.lower_is_better};
  std::vector<size_t> best;
  double best_median = 0;
  for (size_t i = 0; i < result.settings.size(); ++i) {
    const ScoreSummary* score = MainScore(result, result.settings[i]);
    if (score == nullptr || std::isnan(score->median)) {
      continue;
    }
    if (best.empty() || metric.IsBetter(score->median, best_median)) {
      best = {i};
      best_median = score->median;
    } else if (score->median == best_median) {
      best.push_back(i);
    }
  }
  return best;
}

std::optional<size_t> BestSetting(const GridResult& result) {
  const std::vector<size_t> best = BestSettings(result);
  return best.empty() ? std::nullopt : std::optional(best.front());
}

OrderedJson GridToJson(const GridResult& result, const std::string& task) {
  OrderedJson settings = OrderedJson::array();
  for (const SettingResult& setting : result.settings) {
    settings.push_back(
        {{"values", setting.values},
         {"directory", setting.name},
         {"scores", setting.result.finished
                        ? ScoreSummariesToJson(setting.result.scores)
                        : OrderedJson()}});
    if (!setting.diverged.empty()) {
      settings.back()["diverged"] = setting.diverged;
    }
  }
  const std::optional<size_t> best = BestSetting(result);
  OrderedJson grid = {{"task", task}};
  AddMainMetric(
      {.name = result.main_metric, .lower_is_better = result.lower_is_better},
      &grid);
  grid["finished"] = result.finished;
  grid["best"] = best.has_value() ? OrderedJson(result.settings[*best].name)
                                  : OrderedJson();
  grid["settings"] = settings;
  return grid;
}

namespace {

bool HasDeviations(const GridResult& grid) {
  return std::any_of(grid.settings.begin(), grid.settings.end(),
                     [&](const SettingResult& setting) {
                       const ScoreSummary* score = MainScore(grid, setting);
                       return score != nullptr &&
                              score->standard_deviation.has_value();
                     });
}

std::string ScoreText(const SettingResult& setting, const ScoreSummary* score) {
  if (score != nullptr) {
    return FormatScore(score->median);
  }
  if (!setting.diverged.empty()) {
    return "diverged";
  }
  return setting.result.finished ? "no score" : "not finished";
}

}  // namespace

std::string GridValueText(const nlohmann::json& value) {
  constexpr double kExact = 1e15;
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < kExact) {
      return absl::StrCat(static_cast<int64_t>(number));
    }
  }
  return value.is_string() ? value.get<std::string>() : JsonText(value);
}

std::string FormatGridTable(const GridResult& result) {
  const bool has_deviations = HasDeviations(result);
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [field, value] : result.settings.front().values.items()) {
    rows[0].push_back(field);
  }
  rows[0].push_back(result.main_metric);
  if (has_deviations) {
    rows[0].emplace_back("deviation");
  }
  for (const SettingResult& setting : result.settings) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& [field, value] : setting.values.items()) {
      row.push_back(GridValueText(value));
    }
    const ScoreSummary* score = MainScore(result, setting);
    row.push_back(ScoreText(setting, score));
    if (has_deviations) {
      row.push_back(score != nullptr && score->standard_deviation.has_value()
                        ? FormatScore(*score->standard_deviation)
                        : "");
    }
  }
  // Behind the header and the settings.
  std::vector<std::string> marks(rows.size());
  const std::vector<size_t> best = BestSettings(result);
  for (const size_t setting : best) {
    marks[setting + 1] = setting == best.front() ? "  best" : "  equal";
  }
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t column = 0; column < rows[i].size(); ++column) {
      size_t width = 0;
      for (const std::vector<std::string>& row : rows) {
        width = std::max(width, row[column].size());
      }
      absl::StrAppendFormat(&table, "%s%*s", column == 0 ? "" : "  ",
                            static_cast<int>(width), rows[i][column]);
    }
    absl::StrAppend(&table, marks[i], "\n");
  }
  return table;
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string GridFileIn(const std::string& directory) {
  return directory + "/grid.json";
}

// The contents of a grid.json.
struct StoredGrid {
  std::string task;
  std::string main_metric;
  bool lower_is_better = false;
  // Settings with names, values and the way they diverged; finished if they
  // have scores, which stay in the file.
  std::vector<SettingResult> settings;
};

// Null: there is none.
const SettingResult* Find(const std::vector<SettingResult>& settings,
                          const std::string& name) {
  const auto found = std::find_if(
      settings.begin(), settings.end(),
      [&](const SettingResult& setting) { return setting.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

// The settings whose directories were not removed.
std::vector<SettingResult> StillThere(const RunOutput& output,
                                      std::vector<SettingResult> settings) {
  std::erase_if(settings, [&](const SettingResult& setting) {
    std::error_code ignored;
    return !fs::exists(absl::StrCat(output.directory, "/", setting.name),
                       ignored);
  });
  return settings;
}

// Merges both lists. If all of `before` are among those now, in the order of
// these; else in the order of `before`, which decides between equal medians.
std::vector<const SettingResult*> InOrder(
    const std::vector<SettingResult>& before,
    const std::vector<SettingResult>& now) {
  const bool has_others = std::any_of(
      before.begin(), before.end(), [&](const SettingResult& setting) {
        return Find(now, setting.name) == nullptr;
      });
  std::vector<const SettingResult*> all;
  for (const SettingResult& setting : before) {
    if (has_others) {
      all.push_back(&setting);
    }
  }
  for (const SettingResult& setting : now) {
    if (!has_others || Find(before, setting.name) == nullptr) {
      all.push_back(&setting);
    }
  }
  return all;
}

absl::StatusOr<SettingResult> ReadSetting(const Json& json,
                                          const std::string& where) {
  SettingResult setting;
  JsonObjectReader reader(json, where);
  const Json* values = reader.Raw("values", /*required=*/true);
  reader.Required("directory", &setting.name);
  reader.Optional("diverged", &setting.diverged);
  const Json* scores = reader.Raw("scores", /*required=*/false);
  ETC_RETURN_IF_ERROR(reader.status());
  if (!values->is_object() || !IsPlainBaseName(setting.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where,
        " should have an object of values, and the name of a directory "
        "beside the file"));
  }
  setting.values = *values;
  setting.result.finished = scores != nullptr && !scores->is_null();
  return setting;
}

// Returns nothing if there is no file.
absl::StatusOr<std::optional<StoredGrid>> ReadStoredGrid(
    const std::string& directory) {
  const std::string path = GridFileIn(directory);
  ETC_ASSIGN_OR_RETURN(const bool exists, PathExists(path));
  if (!exists) {
    return std::nullopt;
  }
  ETC_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  StoredGrid grid;
  std::string direction;
  JsonObjectReader reader(json, path);
  reader.Required("task", &grid.task);
  reader.Required("main_metric", &grid.main_metric);
  reader.Optional(kMainMetricDirection, &direction);
  grid.lower_is_better = direction == kLowerIsBetter;
  const Json* settings = reader.Raw("settings", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  if (!settings->is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.Where("settings"), " should be a list"));
  }
  for (const Json& setting : *settings) {
    ETC_ASSIGN_OR_RETURN(grid.settings.emplace_back(),
                         ReadSetting(setting, reader.Where("settings")));
  }
  return grid;
}

// A setting as its directory has it.
struct StoredSetting {
  SettingResult setting;
  std::set<int64_t> seeds;

  bool has_all(const std::vector<int64_t>& wanted) const {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](int64_t seed) { return seeds.contains(seed); });
  }
};

absl::StatusOr<StoredSetting> ReadStored(const std::string& output,
                                         const SettingResult& described) {
  StoredSetting stored = {
      .setting = {.name = described.name, .values = described.values}};
  const std::string directory = absl::StrCat(output, "/", described.name);
  std::error_code ignored;
  if (!fs::exists(directory + "/summary.json", ignored)) {
    return stored;
  }
  ETC_ASSIGN_OR_RETURN(const RunSummary summary, ReadRunSummary(directory));
  stored.setting.result.finished = true;
  stored.setting.result.scores = summary.scores;
  stored.setting.result.num_scored =
      std::ssize(summary.seeds) - std::ssize(summary.other_settings);
  stored.seeds = summary.seeds;
  return stored;
}

absl::Status CheckSameTask(const RunOutput& output,
                           const std::string& main_metric,
                           const std::optional<StoredGrid>& earlier) {
  if (!earlier.has_value() ||
      (earlier->task == output.task && earlier->main_metric == main_metric)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(output.directory, " has a grid of ", earlier->task, " by ",
                   earlier->main_metric, ", and this one is of ", output.task,
                   " by ", main_metric, ": choose another output directory"));
}

}  // namespace

absl::StatusOr<FoundRun> FindRun(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::optional<StoredGrid> file,
                       ReadStoredGrid(path));
  if (!file.has_value()) {
    return FoundRun{.directory = path};
  }
  GridResult grid = {.main_metric = file->main_metric,
                     .lower_is_better = file->lower_is_better};
  for (const SettingResult& described : file->settings) {
    if (described.result.finished) {
      ETC_ASSIGN_OR_RETURN(StoredSetting stored, ReadStored(path, described));
      if (stored.setting.result.finished) {
        grid.settings.push_back(std::move(stored.setting));
      }
    }
  }
  const std::optional<size_t> best = BestSetting(grid);
  if (!best.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is of a grid of which no setting has scores yet; name "
                     "the directory of one, in it"));
  }
  const int64_t all = std::ssize(file->settings);
  const int64_t finished = std::ssize(grid.settings);
  const SettingResult& setting = grid.settings[*best];
  return FoundRun{
      .directory = absl::StrCat(path, "/", setting.name),
      .reason = absl::StrCat(
          "the best of ",
          finished == all ? Counted(all, "setting")
                          : absl::StrCat("the ", finished, " finished of ", all,
                                         " settings"),
          ", median ", grid.main_metric, " ",
          FormatScore(MainScore(grid, setting)->median))};
}

absl::Status CheckGridFile(const RunOutput& output,
                           const std::string& main_metric) {
  ETC_ASSIGN_OR_RETURN(const std::optional<StoredGrid> earlier,
                       ReadStoredGrid(output.directory));
  return CheckSameTask(output, main_metric, earlier);
}

absl::StatusOr<int64_t> WriteGridFile(const RunOutput& output,
                                      const GridResult& grid,
                                      EarlierScores earlier_scores) {
  ETC_ASSIGN_OR_RETURN(const RunLock lock,
                       RunLock::Take(output.directory, kLongestWrite));
  ETC_ASSIGN_OR_RETURN(const std::optional<StoredGrid> earlier,
                       ReadStoredGrid(output.directory));
  ETC_RETURN_IF_ERROR(CheckSameTask(output, grid.main_metric, earlier));
  const std::vector<SettingResult> before =
      StillThere(output, earlier.has_value() ? earlier->settings
                                             : std::vector<SettingResult>());
  GridResult all = {.finished = true,
                    .main_metric = grid.main_metric,
                    .lower_is_better = grid.lower_is_better};
  int64_t others = 0;
  for (const SettingResult* described : InOrder(before, grid.settings)) {
    ETC_ASSIGN_OR_RETURN(StoredSetting stored,
                         ReadStored(output.directory, *described));
    const SettingResult* const now = Find(grid.settings, described->name);
    const SettingResult* const then = Find(before, described->name);
    std::string diverged = now == nullptr ? "" : now->diverged;
    const bool is_new =
        now != nullptr && (now->result.finished || !now->diverged.empty());
    if (!is_new && then != nullptr) {
      diverged = then->diverged;
    }
    const bool is_withdrawn = earlier_scores == EarlierScores::kWithdrawn &&
                              now != nullptr && !is_new;
    if (is_withdrawn || !diverged.empty()) {
      stored.setting.result = TrainResult();
      stored.setting.diverged = diverged;
    }
    // An earlier divergence ends no setting that this start has to retry.
    all.finished = all.finished && !is_withdrawn &&
                   (now == nullptr || !now->diverged.empty() ||
                    (diverged.empty() && stored.has_all(output.seeds)));
    others += now == nullptr && diverged.empty() ? 1 : 0;
    all.settings.push_back(std::move(stored.setting));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      GridFileIn(output.directory),
      JsonText(GridToJson(all, output.task), /*indent=*/2) + "\n"));
  return others;
}

}  // namespace etc
