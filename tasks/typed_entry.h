#ifndef ETC_TASKS_TYPED_ENTRY_H_
#define ETC_TASKS_TYPED_ENTRY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/score_files.h"
#include "tasks/task_definition.h"
#include "tasks/task_entry.h"
#include "tasks/task_options.h"
#include "tasks/typed_task.h"

namespace etc {

// True if D makes examples for models without long tokens; D::Tables(input)
// then says which tables such a model needs.
template <TaskDefinition D>
constexpr bool ServesBert() {
  return requires(const InputOptions& input) { D::Tables(input); };
}

// Whether D reads texts that are to be split into sentences.
template <TaskDefinition D>
constexpr bool SplitsSentences() {
  return requires(typename D::Options options) { options.split_sentences; };
}

template <TaskDefinition D>
absl::StatusOr<std::unique_ptr<Task>> MakeTaskOfConfig(
    const FinetuneConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  TaskSettings settings = TaskSettingsOf(config);
  if constexpr (SplitsSentences<D>()) {
    absl::StatusOr<SentenceSplitter> split =
        LoadSentenceSplitter(config.data.sentences);
    if (!split.ok()) {
      return absl::Status(split.status().code(),
                          absl::StrCat(config.source, ": data.sentences: ",
                                       split.status().message()));
    }
    settings.split_sentences = *std::move(split);
  }
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<RecordTask> task,
                       MakeTask<D>(config.task_options,
                                   absl::StrCat(config.source, ": ", D::kName),
                                   settings, std::move(tokenizer)));
  task->HoldOut(HoldOutOptionsOf(config.data));
  return task;
}

template <TaskDefinition D>
absl::StatusOr<std::shared_ptr<TaskHead>> MakeHeadOfConfig(
    const FinetuneConfig& config) {
  ETC_ASSIGN_OR_RETURN(
      const typename D::Options options,
      ReadCheckedTaskOptions<D>(config.task_options,
                                absl::StrCat(config.source, ": ", D::kName),
                                TaskSettingsOf(config), /*tokenizer=*/nullptr));
  return D::MakeHead(config.model, options);
}

template <TaskDefinition D>
absl::StatusOr<TaskScores> ScoreFilesOfTask(const ScoredFiles& files,
                                            ScoringRules rules,
                                            const nlohmann::json& json,
                                            const std::string& source,
                                            const RecordLimits& limits) {
  typename D::Options options;
  if (!json.is_null()) {
    ETC_ASSIGN_OR_RETURN(options, ReadTaskOptions<D>(json, source));
  }
  TaskScores scores = {.main_metric = MainMetricOf<D>(options)};
  ETC_ASSIGN_OR_RETURN(
      scores.metrics,
      ScoreFiles<D>(files, rules, options, limits, &scores.unanswered));
  return scores;
}

// The entry of task D in the registry.
template <TaskDefinition D>
TaskEntry TaskEntryOf() {
  TaskEntry entry = {.name = D::kName,
                     .description = D::kDescription,
                     .make = MakeTaskOfConfig<D>,
                     .complete = CompletionOf<D>(),
                     .splits_sentences = SplitsSentences<D>(),
                     .holds_out_records = HoldsOutRecords<D>(),
                     .serves_bert = ServesBert<D>(),
                     .make_head = MakeHeadOfConfig<D>,
                     .score = ScoreFilesOfTask<D>};
  if constexpr (requires { D::Overall; }) {
    entry.overall = D::Overall;
  }
  return entry;
}

}  // namespace etc

#endif  // ETC_TASKS_TYPED_ENTRY_H_
