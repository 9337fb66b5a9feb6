#include "tasks/run_task.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/checkpoint_run.h"
#include "tasks/registry.h"
#include "tasks/task_setup.h"
#include "tasks/train/finetune.h"
#include "tasks/train/progress.h"

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

}  // namespace

absl::StatusOr<FinetuneTaskResult> FinetuneTask(
    const FinetuneTaskOptions& options) {
  ETC_ASSIGN_OR_RETURN(FinetuneConfig config,
                       ReadTaskConfig(options.config, options.overrides));
  ETC_ASSIGN_OR_RETURN(const TaskSetup setup, SetUpTraining(&config));
  CallbackReporter reporter(options.callbacks);
  for (const std::string& warning : setup.warnings) {
    reporter.Warn(warning);
  }
  ETC_ASSIGN_OR_RETURN(const FinetuneResult tuned,
                       Finetune(config, *setup.task,
                                {.resume = options.resume,
                                 .reporter = &reporter,
                                 .stop = options.callbacks.stop}));
  FinetuneTaskResult result{.finished = tuned.finished};
  for (const RunResult& run : tuned.runs) {
    result.directories.push_back(run.directory);
  }
  for (const ScoreSummary& score : tuned.scores) {
    result.scores.emplace_back(score.name, score.median);
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
      .reporter = &reporter,
      .warn = [&](const std::string& warning) { reporter.Warn(warning); },
      .stop = options.callbacks.stop};
  if (options.threads >= 0) {
    run_options.threads = options.threads;
  }
  ETC_ASSIGN_OR_RETURN(const CheckpointRun run, RunCheckpoint(run_options));
  return EvaluateTaskResult{
      .num_examples = run.evaluation.num_examples,
      .scores = run.evaluation.metrics,
      .predictions = run.evaluation.predictions->FileContents()};
}

absl::StatusOr<Metrics> ScoreTask(const std::string& task,
                                  const std::string& gold,
                                  const std::string& predictions,
                                  ScoringRules rules,
                                  const std::string& config) {
  ETC_ASSIGN_OR_RETURN(const TaskEntry* entry, FindTask(task));
  if (entry->score == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(task, " has no prediction files"));
  }
  nlohmann::json options;
  if (!config.empty()) {
    ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(config));
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, config));
    options = json.is_object() && json.contains(task)
                  ? json.at(task)
                  : nlohmann::json::object();
  }
  return entry->score({.gold = gold, .predictions = predictions}, rules,
                      options, absl::StrCat(config, ": ", task));
}

}  // namespace etc
