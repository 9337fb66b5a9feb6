#include "tasks/runs/grid_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "nlohmann/json.hpp"
#include "tasks/config/grid.h"
#include "tasks/config/run_settings.h"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/grid_results.h"
#include "tasks/output/results.h"
#include "tasks/registry.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/device.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"

namespace etc {
namespace {

// `error` of a setting, with which it is.
absl::Status InSetting(const std::string& name, const absl::Status& error) {
  return absl::Status(error.code(),
                      absl::StrCat("setting ", name, ": ", error.message()));
}

// Shared by settings with the same examples (HaveSameTask).
struct OpenedTask {
  TaskSetup setup;
  std::unique_ptr<RunData> data;
};

struct PreparedSetting {
  GridSetting setting;
  std::shared_ptr<const OpenedTask> opened;  // null once it has been run
  CheckedRuns checked;
};

// The model without the fields of its residual scores, which decide neither
// examples nor the layers of a task.
nlohmann::json ModelOfTask(const RunConfig& config) {
  auto model = nlohmann::json::parse(ModelToJson(config));
  std::erase_if(model.get_ref<nlohmann::json::object_t&>(),
                [](const auto& field) {
                  return absl::StrContains(field.first, "residual_");
                });
  return model;
}

bool HaveSameTask(const RunConfig& a, const RunConfig& b) {
  return a.task_options == b.task_options && a.data == b.data &&
         a.tokenizer == b.tokenizer &&
         a.train.max_examples == b.train.max_examples &&
         ModelOfTask(a) == ModelOfTask(b);
}

// Progress of the runs of a configuration, by their directory.
enum RunProgress : char { kNotBegun = '0', kBegun = '1', kFinished = '2' };

char ProgressOf(const RunConfig& config) {
  std::error_code ignored;
  if (std::filesystem::exists(config.output + "/summary.json", ignored)) {
    return kFinished;
  }
  const bool is_begun = std::any_of(
      config.train.seeds.begin(), config.train.seeds.end(), [&](int64_t seed) {
        return CheckpointStore(SeedDirectory(config.output, seed) +
                               "/checkpoints")
            .last()
            .has_value();
      });
  return is_begun ? kBegun : kNotBegun;
}

// Checks that a setting of a grid has no run, which could not be replaced.
absl::Status CheckNotBegun(const RunConfig& config) {
  return ProgressOf(config) == kNotBegun
             ? absl::OkStatus()
             : absl::AlreadyExistsError(absl::StrCat(
                   config.output,
                   " has a run already: resume it, or choose another output "
                   "directory"));
}

// The settings of a grid differ between two starts: which of them belong to the
// one that is to be replaced is not known.
absl::Status CheckMayOverwrite(const RunConfig& config,
                               const TrainOptions& options) {
  return options.earlier == EarlierRun::kOverwrite && !config.grid.empty()
             ? absl::InvalidArgumentError(absl::StrCat(
                   config.source,
                   ": --overwrite replaces the runs of one setting, and this "
                   "configuration has a grid: choose another output directory, "
                   "or remove ",
                   config.output))
             : absl::OkStatus();
}

// Returns true if nothing of it is left to run.
bool IsDone(const SettingResult& setting) {
  return setting.result.finished || !setting.diverged.empty();
}

std::string GridFile(const RunConfig& config) {
  return config.output + "/grid.json";
}

// Checks that the directory has no run with a grid if this has none, or the
// other way round.
absl::Status CheckKindOfDirectory(const RunConfig& config) {
  std::error_code ignored;
  if (config.grid.empty()) {
    return std::filesystem::exists(GridFile(config), ignored)
               ? absl::AlreadyExistsError(absl::StrCat(
                     config.output,
                     " has the runs of a grid: choose another output "
                     "directory"))
               : absl::OkStatus();
  }
  return ProgressOf(config) == kNotBegun
             ? absl::OkStatus()
             : absl::AlreadyExistsError(absl::StrCat(
                   config.output,
                   " has a run without a grid: choose another output "
                   "directory"));
}

// SetUpTraining, with its warnings. Before the data are read, which may take
// long, also finds out whether the device is there and the threads can start.
absl::StatusOr<TaskSetup> SetUpAndWarn(const TrainOptions& options,
                                       RunConfig* config) {
  ETC_ASSIGN_OR_RETURN(TaskSetup setup, SetUpTraining(config));
  options.context.TellOnce({.warnings = setup.warnings});
  ETC_RETURN_IF_ERROR(JoinDevice(*config, options.context.group).status());
  ETC_RETURN_IF_ERROR(
      SetThreads(config->train.threads, "train.threads").status());
  return setup;
}

absl::StatusOr<GridResult> TrainAlone(RunConfig config,
                                      const TrainOptions& options) {
  const auto check = [&]() -> absl::Status {
    ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
    ETC_RETURN_IF_ERROR(CheckKindOfDirectory(config));
    return options.earlier == EarlierRun::kResume
               ? CheckHasRun(config.output, {config.output})
               : absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, check));
  // Before the data are read, which may take long.
  ETC_ASSIGN_OR_RETURN(const RunClaims claims, ClaimRuns(config, options));
  ETC_ASSIGN_OR_RETURN(const TaskSetup setup, SetUpAndWarn(options, &config));
  const MainMetric metric =
      MainMetricOf(config.train, setup.task->main_metric());
  GridResult grid = {.main_metric = metric.name,
                     .lower_is_better = metric.lower_is_better,
                     .settings = {SettingResult()}};
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<RunData> data,
                       OpenRunData(config, *setup.task, options.context));
  ETC_ASSIGN_OR_RETURN(const CheckedRuns checked,
                       CheckRuns(config, *setup.task, data.get(), options));
  ETC_ASSIGN_OR_RETURN(
      grid.settings.front().result,
      TrainChecked(config, *setup.task, checked, claims, options));
  grid.finished = grid.settings.front().result.finished;
  return grid;
}

// Checks from its directory and its configuration that a setting of a grid can
// begin, or be resumed.
absl::Status CheckSettingWithoutData(const GridSetting& setting,
                                     const TrainOptions& options) {
  const RunConfig& config = setting.config;
  if (!Resumes(options.earlier)) {
    ETC_RETURN_IF_ERROR(CheckNotBegun(config));
  }
  absl::Status status = CheckWithoutData(config, options);
  if (status.ok()) {
    status = CheckLaterRuns(config, {.earlier = options.earlier,
                                     .allow_changes = options.allow_changes});
  }
  return status.ok() ? status : InSetting(setting.name, status);
}

// Checks all settings, on rank 0.
absl::Status CheckGridWithoutData(const RunConfig& config,
                                  const std::vector<GridSetting>& settings,
                                  const TrainOptions& options) {
  return OnRankZero(options.context.group, [&]() -> absl::Status {
    ETC_RETURN_IF_ERROR(CheckKindOfDirectory(config));
    std::error_code ignored;
    if (options.earlier == EarlierRun::kResume &&
        !std::filesystem::exists(GridFile(config), ignored)) {
      std::vector<std::string> directories;
      for (const GridSetting& setting : settings) {
        directories.push_back(setting.config.output);
      }
      ETC_RETURN_IF_ERROR(CheckHasRun(config.output, directories));
    }
    for (const GridSetting& setting : settings) {
      ETC_RETURN_IF_ERROR(CheckSettingWithoutData(setting, options));
    }
    return absl::OkStatus();
  });
}

// Adds a setting to `grid`, all of which have the main metric of the first one;
// `config` is that of the whole grid.
//   kInvalidArgument  it has another
// Errors also as of CheckGridFile.
absl::Status AddSetting(const RunConfig& config, const GridSetting& setting,
                        const Task& task, const TrainOptions& options,
                        GridResult* grid) {
  const MainMetric metric =
      MainMetricOf(setting.config.train, task.main_metric());
  if (grid->settings.empty()) {
    grid->main_metric = metric.name;
    grid->lower_is_better = metric.lower_is_better;
    ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, [&] {
      return CheckGridFile(OutputOf(config), metric.name);
    }));
  } else if (metric.name != grid->main_metric ||
             metric.lower_is_better != grid->lower_is_better) {
    const auto text = [](const std::string& name, bool lower_is_better) {
      return absl::StrCat(name, lower_is_better ? " (smaller is better)" : "");
    };
    return absl::InvalidArgumentError(absl::StrCat(
        config.source,
        ": the settings of grid should have one main metric, but ",
        grid->settings.front().name, " has ",
        text(grid->main_metric, grid->lower_is_better), ", and ", setting.name,
        " has ", text(metric.name, metric.lower_is_better)));
  }
  grid->settings.push_back({.name = setting.name, .values = setting.values});
  return absl::OkStatus();
}

// The settings of a grid, prepared one by one and then run.
class GridRun {
 public:
  GridRun(const RunConfig& config, const TrainOptions& options)
      : config_(config), options_(options) {}

  // Checks a setting and opens its data, unless one before has the same.
  absl::Status Prepare(GridSetting setting);
  absl::StatusOr<GridResult> Run();

 private:
  absl::Status OpenTask(TaskSetup setup, PreparedSetting* prepared);
  // The settings in the order in which they are run: first those that are
  // finished, then those that are begun.
  absl::StatusOr<std::vector<size_t>> OrderOfSettings() const;
  absl::Status RunSetting(size_t index);

  const RunConfig& config_;
  const TrainOptions& options_;
  std::vector<PreparedSetting> settings_;
  int64_t later_steps_ = 0;
  // Settings of grid.json that this grid has not; on rank 0.
  int64_t others_ = 0;
  GridResult result_;
};

absl::Status GridRun::Prepare(GridSetting setting) {
  PreparedSetting prepared = {.setting = std::move(setting)};
  RunConfig& config = prepared.setting.config;
  ETC_ASSIGN_OR_RETURN(TaskSetup setup, SetUpAndWarn(options_, &config));
  ETC_RETURN_IF_ERROR(
      AddSetting(config_, prepared.setting, *setup.task, options_, &result_));
  ETC_RETURN_IF_ERROR(OpenTask(std::move(setup), &prepared));
  ETC_ASSIGN_OR_RETURN(prepared.checked,
                       CheckRuns(config, *prepared.opened->setup.task,
                                 prepared.opened->data.get(), options_));
  later_steps_ += prepared.checked.steps_left;
  settings_.push_back(std::move(prepared));
  return absl::OkStatus();
}

absl::Status GridRun::OpenTask(TaskSetup setup, PreparedSetting* prepared) {
  const RunConfig& config = prepared->setting.config;
  for (const PreparedSetting& other : settings_) {
    if (HaveSameTask(other.setting.config, config)) {
      prepared->opened = other.opened;
      return absl::OkStatus();
    }
  }
  auto opened = std::make_shared<OpenedTask>();
  opened->setup = std::move(setup);
  ETC_ASSIGN_OR_RETURN(
      opened->data, OpenRunData(config, *opened->setup.task, options_.context));
  prepared->opened = std::move(opened);
  return absl::OkStatus();
}

absl::StatusOr<GridResult> GridRun::Run() {
  ETC_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOfSettings());
  // Left by a process that was killed while it wrote grid.json.
  ETC_RETURN_IF_ERROR(OnRankZero(options_.context.group, [&] {
    return RemoveAbandonedTemporaries(config_.output);
  }));
  for (const size_t index : order) {
    if (const absl::Status status = RunSetting(index); !status.ok()) {
      return InSetting(settings_[index].setting.name, status);
    }
    if (!IsDone(result_.settings[index])) {
      return result_;
    }
  }
  if (std::all_of(result_.settings.begin(), result_.settings.end(),
                  [](const SettingResult& setting) {
                    return !setting.diverged.empty();
                  })) {
    return absl::AbortedError(absl::StrCat("all ", settings_.size(),
                                           " settings have diverged, the first "
                                           "one so: ",
                                           result_.settings.front().diverged));
  }
  if (others_ > 0) {
    options_.context.Message(absl::StrCat(
        GridFile(config_), " also has ", Counted(others_, "setting"),
        " of earlier grids there, which may be better"));
  }
  return result_;
}

absl::StatusOr<std::vector<size_t>> GridRun::OrderOfSettings() const {
  // Progress of each setting; rank 0 alone has it.
  std::string progress;
  for (const PreparedSetting& prepared : settings_) {
    progress += ProgressOf(prepared.setting.config);
  }
  if (options_.context.group != nullptr) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         options_.context.group->Gather(progress));
    progress = all.front();
  }
  if (progress.size() != settings_.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process and process 0 should have the same configuration, but "
        "differ: grid has ",
        settings_.size(), " settings here and ", progress.size(), " there"));
  }
  std::vector<size_t> order(settings_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return progress[a] > progress[b];
  });
  return order;
}

absl::Status GridRun::RunSetting(size_t index) {
  PreparedSetting& prepared = settings_[index];
  SettingResult& result = result_.settings[index];
  options_.context.Message(absl::StrCat("setting ", index + 1, " of ",
                                        settings_.size(), ": ",
                                        prepared.setting.name));
  later_steps_ -= prepared.checked.steps_left;
  TrainOptions options = options_;
  options.later_steps = later_steps_;
  ETC_ASSIGN_OR_RETURN(const RunClaims claims,
                       ClaimRuns(prepared.setting.config, options));
  absl::StatusOr<TrainResult> run =
      TrainChecked(prepared.setting.config, *prepared.opened->setup.task,
                   prepared.checked, claims, options);
  prepared.opened.reset();
  // All ranks have this error at the same place.
  if (absl::IsAborted(run.status())) {
    result.diverged = std::string(run.status().message());
    options_.context.Warn(absl::StrCat(prepared.setting.name,
                                       " has no score: ", result.diverged));
  } else {
    ETC_ASSIGN_OR_RETURN(result.result, std::move(run));
  }
  result_.finished =
      std::all_of(result_.settings.begin(), result_.settings.end(), IsDone);
  return OnRankZero(options_.context.group, [&] {
    const absl::StatusOr<int64_t> others = WriteGridFile(
        OutputOf(config_), result_,
        options_.allow_changes.empty() ? EarlierScores::kKept
                                       : EarlierScores::kWithdrawn);
    others_ = others.value_or(0);
    return others.status();
  });
}

}  // namespace

absl::StatusOr<GridResult> TrainGrid(const RunConfig& config,
                                     const TrainOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSameStart(config, options));
  if (config.grid.empty()) {
    return TrainAlone(config, options);
  }
  ETC_RETURN_IF_ERROR(CheckMayOverwrite(config, options));
  ETC_ASSIGN_OR_RETURN(std::vector<GridSetting> settings,
                       ExpandGrid(config, [](const std::string& task) {
                         return FindTask(task).status();
                       }));
  // Before the data are read, which may take long.
  ETC_RETURN_IF_ERROR(CheckGridWithoutData(config, settings, options));
  GridRun run(config, options);
  for (GridSetting& setting : settings) {
    const std::string name = setting.name;
    const std::string begun = SeedDirectory(setting.config.output,
                                            setting.config.train.seeds.front());
    if (const absl::Status status = run.Prepare(std::move(setting));
        !status.ok()) {
      // One that was stopped while it read its data can be resumed, as a run.
      if (absl::IsCancelled(status) && options.context.is_first()) {
        ETC_RETURN_IF_ERROR(CreateDirectories(begun));
      }
      return InSetting(name, status);
    }
  }
  return run.Run();
}

absl::StatusOr<std::vector<TriedSetting>> TryGrid(const RunConfig& config,
                                                  const TrainOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSameStart(config, options));
  ETC_RETURN_IF_ERROR(CheckMayOverwrite(config, options));
  ETC_ASSIGN_OR_RETURN(std::vector<GridSetting> settings,
                       ExpandGrid(config, [](const std::string& task) {
                         return FindTask(task).status();
                       }));
  // Before the data of the first one are read.
  const auto check = [&]() -> absl::Status {
    ETC_RETURN_IF_ERROR(CheckKindOfDirectory(config));
    if (!config.grid.empty()) {
      for (const GridSetting& setting : settings) {
        ETC_RETURN_IF_ERROR(CheckNotBegun(setting.config));
      }
    }
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, check));
  GridResult grid;
  std::vector<TriedSetting> tried;
  for (GridSetting& setting : settings) {
    if (!setting.name.empty()) {
      options.context.Message(absl::StrCat("setting ", tried.size() + 1, " of ",
                                           settings.size(), ": ",
                                           setting.name));
    }
    const auto try_setting = [&]() -> absl::Status {
      ETC_ASSIGN_OR_RETURN(const TaskSetup setup,
                           SetUpAndWarn(options, &setting.config));
      ETC_RETURN_IF_ERROR(
          AddSetting(config, setting, *setup.task, options, &grid));
      ETC_ASSIGN_OR_RETURN(DryRun run,
                           TryTrain(setting.config, *setup.task, options));
      tried.push_back({.name = setting.name, .run = std::move(run)});
      return absl::OkStatus();
    };
    if (const absl::Status status = try_setting(); !status.ok()) {
      return setting.name.empty() ? status : InSetting(setting.name, status);
    }
  }
  return tried;
}

}  // namespace etc
