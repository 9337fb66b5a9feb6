#include "tasks/run_task.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config_fields.h"
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

// Passes messages to the callbacks, and no progress.
class CallbackReporter final : public RunReporter {
 public:
  explicit CallbackReporter(const TaskCallbacks& callbacks)
      : callbacks_(callbacks) {}

  void Message(absl::string_view text) override {
    if (callbacks_.message != nullptr) {
      callbacks_.message(std::string(text));
    }
  }
  void Warn(const std::string& text) const {
    if (callbacks_.warning != nullptr) {
      callbacks_.warning(text);
    }
  }
  void Opening(const OpeningProgress&) override {}
  void Update(const Progress&) override {}
  void Evaluating(const EvaluationProgress&) override {}

 private:
  const TaskCallbacks& callbacks_;
};

// data.max_record_megabytes of a configuration, in bytes.
absl::StatusOr<uint64_t> RecordBytesSaidBy(const nlohmann::json& config,
                                           const std::string& source) {
  JsonObjectReader reader(config, source);
  DataConfig data;
  if (const nlohmann::json* object = reader.Raw("data", /*required=*/false)) {
    JsonObjectReader fields(*object, reader.Where("data"));
    ReadFields(&fields, &data);
    ETC_RETURN_IF_ERROR(fields.Finish());
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  return MaxRecordBytesOf(data);
}

}  // namespace

absl::StatusOr<FinetuneTaskResult> FinetuneTask(
    const FinetuneTaskOptions& options) {
  ETC_ASSIGN_OR_RETURN(const FinetuneConfig config,
                       ReadTaskConfig(options.config, options.overrides));
  CallbackReporter reporter(options.callbacks);
  ETC_ASSIGN_OR_RETURN(
      const GridResult grid,
      FinetuneGrid(
          config,
          {.resume = options.resume,
           .context = {.reporter = &reporter, .stop = options.callbacks.stop}},
          [&](const std::string& warning) { reporter.Warn(warning); }));
  FinetuneTaskResult result{.finished = grid.finished};
  for (const SettingResult& setting : grid.settings) {
    FinetuneTaskSetting& scores = result.settings.emplace_back();
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
  CallbackReporter reporter(options.callbacks);
  CheckpointRunOptions run_options{
      .checkpoint = options.checkpoint,
      .data = options.data,
      .residual_attention = options.residual_attention,
      .device = options.device,
      .warn = [&](const std::string& warning) { reporter.Warn(warning); },
      .context = {.reporter = &reporter, .stop = options.callbacks.stop}};
  if (options.threads >= 0) {
    run_options.threads = options.threads;
  }
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
  RecordLimits limits = {.max_record_field =
                             "data.max_record_megabytes, of --config"};
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
      if (!absl::StartsWith(override_text, task + ".") &&
          !absl::StartsWith(override_text, "data.")) {
        return InvalidArgument("--set ", override_text,
                               " should set an option of the task, ", task,
                               ".NAME=VALUE");
      }
      ETC_RETURN_IF_ERROR(ApplyOverride(override_text, &json));
    }
    ETC_ASSIGN_OR_RETURN(limits.max_record_bytes,
                         RecordBytesSaidBy(json, source));
    options = json.is_object() && json.contains(task)
                  ? json.at(task)
                  : nlohmann::json::object();
  }
  return entry->score({.gold = gold, .predictions = predictions}, rules,
                      options, absl::StrCat(source, ": ", task), limits);
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
