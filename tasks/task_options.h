#ifndef ETC_TASKS_TASK_OPTIONS_H_
#define ETC_TASKS_TASK_OPTIONS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/task_definition.h"
#include "tasks/task_settings.h"
#include "tasks/train/config.h"

namespace etc {

// The options of task D from the object of its name, with what `settings` adds.
// Absent fields keep their default. `source` names the object and starts each
// message ("finetune.json: wikihop").
//   kInvalidArgument  a field that does not exist, a wrong type or value
template <TaskDefinition D>
absl::StatusOr<typename D::Options> ReadTaskOptions(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings = {}) {
  typename D::Options options;
  options.input = InputOptionsOf(settings);
  if constexpr (requires { options.split_sentences; }) {
    options.split_sentences = settings.split_sentences;
  }
  JsonObjectReader reader(json, source);
  if constexpr (requires { options.official_compatibility; }) {
    reader.Optional("official_compatibility", &options.official_compatibility);
  }
  D::ReadOptions(reader, &options);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return options;
}

// ReadTaskOptions, and whether lengths, model and vocabulary have what the task
// needs. Without a tokenizer (null) nothing is asked of the vocabulary: a task
// can be described before there is one.
template <TaskDefinition D>
absl::StatusOr<typename D::Options> ReadCheckedTaskOptions(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings, const Tokenizer* tokenizer) {
  ETC_ASSIGN_OR_RETURN(typename D::Options options,
                       ReadTaskOptions<D>(json, source, settings));
  if constexpr (requires { D::Lengths(options); }) {
    ETC_RETURN_IF_ERROR(
        CheckLengths(options.input, D::Lengths(options), source));
  }
  ETC_RETURN_IF_ERROR(
      CheckTables(settings.model, TablesOf<D>(options.input),
                  tokenizer == nullptr ? 0 : tokenizer->vocab_size(), source));
  if constexpr (requires { D::UseVocabulary(*tokenizer, &options); }) {
    const absl::Status status = tokenizer == nullptr
                                    ? absl::OkStatus()
                                    : D::UseVocabulary(*tokenizer, &options);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": ", status.message()));
    }
  }
  return options;
}

// D::CompleteOptions, if there is one; null otherwise.
template <TaskDefinition D>
std::function<absl::Status(FinetuneConfig*)> CompletionOf() {
  if constexpr (requires(FinetuneConfig config, typename D::Options options) {
                  D::CompleteOptions(options, config.data,
                                     &config.task_options);
                }) {
    return [](FinetuneConfig* config) -> absl::Status {
      ETC_ASSIGN_OR_RETURN(
          const typename D::Options options,
          ReadTaskOptions<D>(config->task_options,
                             absl::StrCat(config->source, ": ", D::kName)));
      ETC_RETURN_IF_ERROR(
          D::CompleteOptions(options, config->data, &config->task_options));
      config->json[D::kName] = config->task_options;
      return absl::OkStatus();
    };
  } else {
    return nullptr;
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_OPTIONS_H_
