#include "tasks/report/logged_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/directory.h"
#include "base/json_reader.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/data_files.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/output/metrics_log.h"
#include "tasks/output/results.h"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kMetricsFile[] = "metrics.jsonl";

std::string TextField(const Json& json, const std::string& field) {
  const bool has_it =
      json.is_object() && json.contains(field) && json[field].is_string();
  return has_it ? json[field].get<std::string>() : "";
}

MainMetric ReadMainMetric(const Json& json) {
  return {.name = TextField(json, "main_metric"),
          .lower_is_better =
              TextField(json, kMainMetricDirection) == kLowerIsBetter};
}

// Takes one line in.
void AddLine(const Json& line, int64_t step, MetricsFile* file) {
  file->steps = std::max(file->steps, step);
  if (line.contains(kDivergence)) {
    file->has_diverged = true;
    return;
  }
  const auto evaluation = line.find("evaluation");
  if (evaluation != line.end()) {
    LoggedEvaluation& added = file->evaluations.emplace_back();
    added.step = step;
    file->main_metric = ReadMainMetric(line);
    if (evaluation->is_object()) {
      for (const auto& [name, value] : evaluation->items()) {
        if (value.is_number()) {
          added.metrics.emplace_back(name, value.get<double>());
        }
      }
    }
    return;
  }
  const Json numbers = line.flatten();  // "/scores/l2l/largest/0"
  for (const auto& [place, value] : numbers.items()) {
    if (place != "/step" && value.is_number()) {
      file->curves[absl::StrReplaceAll(place.substr(1), {{"/", "."}})]
          .emplace_back(step, value.get<double>());
    }
  }
  const auto loss = line.find("loss");
  file->lost_losses += loss != line.end() && !loss->is_number() ? 1 : 0;
}

absl::StatusOr<bool> IsFile(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const bool exists, PathExists(path));
  std::error_code ignored;
  return exists && fs::is_regular_file(path, ignored);
}

// The field "settings" of a file; null: the file is not there, or is just being
// replaced.
Json SettingsIn(const absl::StatusOr<Json>& json) {
  const bool has_settings =
      json.ok() && json->is_object() && json->contains("settings");
  return has_settings ? (*json)["settings"] : Json();
}

// The directory of the checkpoint "last" or "best" of a seed's directory; empty
// if there is none.
std::string CheckpointIn(const std::string& directory, const char* name) {
  const absl::StatusOr<FoundCheckpoint> found =
      FindCheckpoint(absl::StrCat(directory, "/checkpoints/", name));
  return found.ok() ? found->directory : "";
}

// The run in the directory of a seed; nothing if it has neither an update nor
// an evaluation, nor diverged.
absl::StatusOr<std::optional<LoggedRun>> ReadRun(const std::string& directory,
                                                 int64_t seed) {
  LoggedRun run = {.directory = directory, .seed = seed};
  const std::string path = absl::StrCat(directory, "/", kMetricsFile);
  ETC_ASSIGN_OR_RETURN(const bool has_log, IsFile(path));
  if (!has_log) {
    return std::nullopt;
  }
  ETC_ASSIGN_OR_RETURN(run.log, ReadMetricsFile(path));
  if (run.log.steps == 0 && run.log.evaluations.empty() &&
      !run.log.has_diverged) {
    return std::nullopt;
  }
  const std::string result = directory + "/result.json";
  ETC_ASSIGN_OR_RETURN(run.finished, IsFile(result));
  run.settings = SettingsIn(ReadJsonFile(result));
  run.checkpoint = CheckpointIn(directory, "best");
  for (const std::string& checkpoint :
       {CheckpointIn(directory, "last"), run.checkpoint}) {
    if (run.settings.is_null() && !checkpoint.empty()) {
      run.settings =
          SettingsIn(ReadSealedJson(checkpoint + "/evaluation.json"));
    }
  }
  return run;
}

// Directories in `directory`, sorted by their names.
std::vector<fs::path> DirectoriesIn(const std::string& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(entry->path(), ignored)) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Reads the task and the main metric of a summary.json, if it is there.
absl::Status ReadNames(const std::string& path, RunGroup* group) {
  ETC_ASSIGN_OR_RETURN(const bool exists, IsFile(path));
  if (exists) {
    ETC_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
    group->task = TextField(json, "task");
    group->main_metric = ReadMainMetric(json);
  }
  return absl::OkStatus();
}

Json WithoutSeed(Json settings) {
  if (settings.is_object() && settings.contains("train") &&
      settings["train"].is_object()) {
    settings["train"].erase("seed");
  }
  return settings;
}

bool HasSeed(const RunGroup& group, int64_t seed) {
  return std::any_of(group.runs.begin(), group.runs.end(),
                     [&](const LoggedRun& run) { return run.seed == seed; });
}

// Adds a run to the group of its settings, of those from `first` on; without
// settings to the first of these. Returns the group.
RunGroup* AddRun(LoggedRun run, const RunGroup& described, size_t first,
                 std::vector<RunGroup>* groups) {
  const Json settings = WithoutSeed(run.settings);
  const Json compared = WithoutPaths(settings);
  RunGroup* joined = nullptr;
  for (size_t i = 0; i < groups->size() && joined == nullptr; ++i) {
    RunGroup& group = (*groups)[i];
    const bool is_here = i >= first;
    const bool has_same =
        !settings.is_null() && WithoutPaths(group.settings) == compared;
    const bool may_join =
        is_here && (settings.is_null() || group.settings.is_null());
    if ((has_same || may_join) && !HasSeed(group, run.seed)) {
      joined = &group;
    }
  }
  if (joined == nullptr) {
    joined = &groups->emplace_back(described);
  }
  if (joined->settings.is_null()) {
    joined->settings = settings;
  }
  if (joined->task.empty()) {
    joined->task = TextField(settings, "task");
  }
  if (joined->main_metric.name.empty()) {
    joined->main_metric = run.log.main_metric;
  }
  joined->runs.push_back(std::move(run));
  return joined;
}

// Adds the seeds of an output directory, or a single one; false if it is not
// the directory of a run.
absl::StatusOr<bool> AddDirectory(const std::string& directory,
                                  std::vector<RunGroup>* groups,
                                  bool* has_updates) {
  RunGroup described = {.directory = directory};
  ETC_RETURN_IF_ERROR(ReadNames(directory + "/summary.json", &described));
  std::map<int64_t, std::string> seeds;
  if (const std::optional<int64_t> own = SeedOf(directory)) {
    seeds = {{*own, directory}};
    ETC_RETURN_IF_ERROR(
        ReadNames(FolderOf(directory) + "/summary.json", &described));
  } else {
    seeds = SeedDirectories(directory);
  }
  const size_t first = groups->size();
  std::vector<LoggedRun> begun;
  std::vector<int64_t> not_begun;
  for (const auto& [seed, path] : seeds) {
    ETC_ASSIGN_OR_RETURN(std::optional<LoggedRun> run, ReadRun(path, seed));
    if (run.has_value()) {
      begun.push_back(*std::move(run));
    } else {
      not_begun.push_back(seed);
    }
  }
  *has_updates = *has_updates || !begun.empty();
  // A run ends with the seed that diverges.
  if (std::any_of(begun.begin(), begun.end(),
                  [](const LoggedRun& run) { return run.log.has_diverged; })) {
    not_begun.clear();
  }
  for (LoggedRun& run : begun) {
    RunGroup* const group = AddRun(std::move(run), described, first, groups);
    // With the first of the others, whose settings they have.
    group->not_begun.insert(group->not_begun.end(), not_begun.begin(),
                            not_begun.end());
    not_begun.clear();
  }
  return !seeds.empty();
}

// Adds what `path` names.
absl::Status AddPath(std::string path, std::vector<RunGroup>* groups) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  ETC_ASSIGN_OR_RETURN(const bool exists, PathExists(path));
  if (!exists) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such run"));
  }
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
  bool is_run = false;
  bool has_updates = false;
  if (is_directory) {
    ETC_ASSIGN_OR_RETURN(is_run, AddDirectory(path, groups, &has_updates));
    ETC_ASSIGN_OR_RETURN(const bool is_grid, IsFile(path + "/grid.json"));
    // A grid that goes on may not have its grid.json yet.
    for (const fs::path& setting :
         is_run ? std::vector<fs::path>() : DirectoriesIn(path)) {
      ETC_ASSIGN_OR_RETURN(
          const bool is_setting,
          AddDirectory(setting.string(), groups, &has_updates));
      is_run = is_run || is_setting;
    }
    is_run = is_run || is_grid;
  }
  if (!is_run) {
    return absl::NotFoundError(absl::StrCat(
        path,
        " is the directory of no run: it should have seed-1/metrics.jsonl, or "
        "settings of a grid with that, as train writes"));
  }
  return has_updates
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   path,
                   " has no metrics yet: none of its seeds has finished "
                   "an update or an evaluation"));
}

void NameGroups(std::vector<RunGroup>* groups) {
  const auto last_part = [](const std::string& directory) {
    const fs::path path = fs::path(directory).lexically_normal();
    const fs::path name =
        path.has_filename() ? path.filename() : path.parent_path().filename();
    return SeedOf(name.string()).has_value() &&
                   path.parent_path().has_filename()
               ? (path.parent_path().filename() / name).string()
               : name.string();
  };
  std::map<std::string, int> uses;
  for (const RunGroup& group : *groups) {
    ++uses[last_part(group.directory)];
  }
  std::map<std::string, int> given;
  for (RunGroup& group : *groups) {
    const std::string name = last_part(group.directory);
    group.name = uses[name] == 1 ? name : group.directory;
    if (const int again = ++given[group.name]; again > 1) {
      absl::StrAppend(&group.name, " (", again, ")");
    }
    std::sort(
        group.runs.begin(), group.runs.end(),
        [](const LoggedRun& a, const LoggedRun& b) { return a.seed < b.seed; });
  }
}

}  // namespace

absl::StatusOr<MetricsFile> ReadMetricsFile(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const bool exists, IsFile(path));
  std::ifstream stream(path, std::ios::binary);
  if (!exists || !stream) {
    return absl::NotFoundError(absl::StrCat(path, " cannot be read"));
  }
  MetricsFile file;
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const bool is_last = stream.eof();  // without its newline
    const Json json = ParseJson(line, path).value_or(Json());
    const bool is_line = json.is_object() && json.contains("step") &&
                         json["step"].is_number_integer();
    if (is_line) {
      AddLine(json, json["step"].get<int64_t>(), &file);
    } else if (is_last) {
      file.is_cut = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number,
                       ": should be a JSON object with a whole number "
                       "\"step\", but is damaged"));
    }
  }
  return file;
}

std::string RunGroup::mode() const {
  // residual_attention itself is but the default of the paths.
  const Json model = settings.is_object() && settings.contains("model")
                         ? settings["model"]
                         : Json();
  std::vector<std::string> paths;
  for (const char* path :
       {"encoder_residual_attention", "decoder_residual_attention",
        "cross_residual_attention"}) {
    paths.push_back(TextField(model, path));
  }
  if (paths.front().empty()) {
    return TextField(settings, "residual_attention");
  }
  const bool are_equal = std::count(paths.begin(), paths.end(),
                                    paths.front()) == std::ssize(paths);
  return are_equal ? paths.front() : absl::StrJoin(paths, ", ");
}

bool RunGroup::has_ended() const {
  return not_begun.empty() &&
         std::all_of(runs.begin(), runs.end(),
                     [](const LoggedRun& run) { return run.has_ended(); });
}

absl::StatusOr<std::vector<RunGroup>> ReadRunGroups(
    const std::vector<std::string>& paths) {
  ETC_RETURN_IF_ERROR(CheckNamedOnce(paths, "run"));
  std::vector<RunGroup> groups;
  for (const std::string& path : paths) {
    ETC_RETURN_IF_ERROR(AddPath(path, &groups));
  }
  NameGroups(&groups);
  return groups;
}

}  // namespace etc
