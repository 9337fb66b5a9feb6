#include "tasks/run_task.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/grid.h"
#include "tasks/output/grid_results.h"
#include "tasks/output/results.h"
#include "tasks/registry.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/runs/grid_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_plan.h"

namespace etc {
namespace {

// All default generators of LibTorch: those that torch::manual_seed seeds.
std::vector<at::Generator> DefaultGenerators() {
  std::vector<at::Generator> generators = {
      at::globalContext().defaultGenerator(torch::kCPU)};
  for (size_t i = 0; i < torch::cuda::device_count(); ++i) {
    generators.push_back(at::globalContext().defaultGenerator(
        torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i))));
  }
  return generators;
}

// The turn of a run: a new model draws from LibTorch's generators and each
// update seeds them, but the process has them once. The end of a turn restores
// them, and the number of threads, for the caller.
class RunTurn {
 public:
  RunTurn() = default;
  RunTurn(const RunTurn&) = delete;
  RunTurn& operator=(const RunTurn&) = delete;
  ~RunTurn() {
    if (!lock_.owns_lock()) {
      return;
    }
    for (auto& [generator, state] : states_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state);
    }
    if (at::get_num_threads() != threads_) {
      // Fails where the system starts no more of them: fewer threads compute
      // the same.
      SetThreads(threads_, "threads").status().IgnoreError();
    }
    is_running_ = false;
  }

  // Waits for the runs of other threads.
  //   kCancelled  stopped meanwhile
  absl::Status Begin(const std::atomic<bool>* stop) {
    TORCH_CHECK(!is_running_, "a callback of a run should not begin another");
    while (!lock_.try_lock_for(std::chrono::milliseconds(100))) {
      if (stop != nullptr && *stop) {
        return absl::CancelledError("stopped before another run had ended");
      }
    }
    is_running_ = true;
    threads_ = at::get_num_threads();
    for (at::Generator& generator : DefaultGenerators()) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      states_.emplace_back(generator, generator.get_state());
    }
    return absl::OkStatus();
  }

 private:
  static std::timed_mutex& Mutex() {
    static std::timed_mutex mutex;
    return mutex;
  }

  inline static thread_local bool is_running_ = false;

  std::unique_lock<std::timed_mutex> lock_{Mutex(), std::defer_lock};
  std::vector<std::pair<at::Generator, torch::Tensor>> states_;
  int threads_ = 0;
};

// The options among `overrides` that say how answers are decoded, without the
// name of the task.
std::vector<std::string> DecodingOptions(
    const std::vector<std::string>& overrides, const TaskEntry& entry) {
  std::vector<std::string> options;
  for (const std::string& option : entry.decoding_options) {
    if (absl::c_any_of(overrides, [&option](const std::string& text) {
          return absl::StartsWith(text, option + "=");
        })) {
      options.push_back(option.substr(entry.name.size() + 1));
    }
  }
  return options;
}

// Returns true if an override decides anything about scores.
bool DecidesScores(const std::string& override_text, const std::string& task) {
  return absl::StartsWith(override_text, task + ".") ||
         absl::StartsWith(override_text, "data.max_record_megabytes=") ||
         absl::StartsWith(override_text, "data.sentences=");
}

}  // namespace

absl::StatusOr<TrainTaskResult> TrainTask(const TrainTaskOptions& options) {
  ETC_ASSIGN_OR_RETURN(const RunConfig config,
                       ReadTaskConfig(options.config, options.overrides));
  RunTurn turn;
  ETC_RETURN_IF_ERROR(turn.Begin(options.callbacks.stop));
  CallbackReporter reporter(options.callbacks.message,
                            options.callbacks.warning);
  ETC_ASSIGN_OR_RETURN(
      const GridResult grid,
      TrainGrid(config, {.earlier = options.earlier,
                         .allow_changes = options.allow_changes,
                         .context = {.reporter = &reporter,
                                     .stop = options.callbacks.stop}}));
  TrainTaskResult result{.finished = grid.finished};
  for (const SettingResult& setting : grid.settings) {
    TrainTaskSetting& scores = result.settings.emplace_back();
    scores.directory = setting.name.empty()
                           ? config.output
                           : absl::StrCat(config.output, "/", setting.name);
    scores.diverged = setting.diverged;
    for (const RunResult& run : setting.result.runs) {
      result.directories.push_back(run.directory);
    }
    for (const ScoreSummary& score : setting.result.scores) {
      scores.medians.emplace_back(score.name, score.median);
      if (score.standard_deviation.has_value()) {
        scores.deviations.emplace_back(score.name, *score.standard_deviation);
      }
    }
  }
  const std::optional<size_t> best = BestSetting(grid);
  if (grid.finished && best.has_value()) {
    result.scores = result.settings[*best].medians;
  }
  return result;
}

absl::StatusOr<EvaluateTaskResult> EvaluateTask(
    const EvaluateTaskOptions& options) {
  RunTurn turn;
  ETC_RETURN_IF_ERROR(turn.Begin(options.callbacks.stop));
  CallbackReporter reporter(options.callbacks.message,
                            options.callbacks.warning);
  const CheckpointRunOptions run_options = {
      .checkpoint = options.checkpoint,
      .data = options.data,
      .residual_attention = options.residual_attention,
      .device = options.device,
      .threads = options.threads,
      .context = {.reporter = &reporter, .stop = options.callbacks.stop}};
  ETC_ASSIGN_OR_RETURN(const CheckpointRun run, RunCheckpoint(run_options));
  return EvaluateTaskResult{
      .num_examples = run.evaluation.num_examples,
      .scores = run.evaluation.metrics,
      .predictions = run.evaluation.predictions->FileContents()};
}

absl::StatusOr<TaskScores> ScoreTask(
    const std::string& task, const std::string& gold,
    const std::string& predictions, ScoringRules rules,
    const std::string& config, const std::vector<std::string>& overrides) {
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(task));
  if (entry->score == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(task, " has no prediction files"));
  }
  nlohmann::json options;
  GoldReading reading;
  reading.limits.max_record_field = "data.max_record_megabytes, of --config";
  const std::string source =
      overrides.empty()
          ? config
          : absl::StrCat(config, config.empty() ? "" : " with ", "--set");
  if (!config.empty() || !overrides.empty()) {
    nlohmann::json json = nlohmann::json::object();
    if (!config.empty()) {
      ETC_ASSIGN_OR_RETURN(json, ReadJsonFile(config));
    }
    for (const std::string& override_text : overrides) {
      if (!DecidesScores(override_text, task)) {
        return InvalidArgument(
            "--set ", override_text, " should set an option of the task, ",
            task, ".NAME=VALUE, data.max_record_megabytes or data.sentences");
      }
      ETC_RETURN_IF_ERROR(ApplyOverride(override_text, &json, TypesOfFields()));
    }
    ETC_ASSIGN_OR_RETURN(ScoringConfig scoring,
                         ReadScoringConfig(json, source, task));
    reading.limits.max_record_bytes =
        RecordLimitsOf(scoring.data).max_record_bytes;
    reading.sentences = std::move(scoring.data.sentences);
    options = std::move(scoring.task_options);
  }
  return entry->score({.gold = gold,
                       .predictions = predictions,
                       .decoding = DecodingOptions(overrides, *entry)},
                      rules, options, source, reading);
}

absl::StatusOr<Metrics> ScoreRuns(const std::string& task,
                                  const std::vector<std::string>& directories) {
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(task));
  if (entry->overall == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(task, " is one task, and has no overall score"));
  }
  std::vector<RunSummary> runs;
  for (const std::string& directory : directories) {
    ETC_ASSIGN_OR_RETURN(const FoundRun found, FindRun(directory));
    ETC_ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunSummary(found.directory));
    if (runs.back().task != task) {
      return absl::InvalidArgumentError(
          absl::StrCat(found.directory, " is a run of ", runs.back().task,
                       ", not of ", task));
    }
  }
  return entry->overall(runs);
}

}  // namespace etc
