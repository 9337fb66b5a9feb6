#ifndef ETC_TASKS_TASK_OPTIONS_H_
#define ETC_TASKS_TASK_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/file_records.h"
#include "tasks/data/hold_out.h"
#include "tasks/record_json.h"
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

// True if data.dev_fraction can hold out records of D.
template <TaskDefinition D>
constexpr bool HoldsOutRecords() {
  return requires(const typename D::Record& record) { D::Stratum(record); };
}

// Returns the stratum by which a record is held out; empty for a record with an
// error, which is reported elsewhere.
template <TaskDefinition D>
std::string StratumOfRecord(const std::string& record, const std::string& where,
                            const typename D::Options& options) {
  if constexpr (HoldsOutRecords<D>()) {
    const absl::StatusOr<typename D::Record> parsed =
        ParseRecord<D>(record, where, options);
    return parsed.ok() ? D::Stratum(*parsed) : std::string();
  } else {
    return "";
  }
}

// Finds out which records of data.train are held out, where some are, and notes
// it in data.dev_records, which checkpoints keep.
//   kFailedPrecondition  the configuration says others
template <TaskDefinition D>
absl::Status NoteHeldOut(const typename D::Options& options,
                         FinetuneConfig* config) {
  const HoldOutOptions hold_out = HoldOutOptionsOf(config->data);
  if (hold_out.fraction == 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      ReadAllFiles(
          hold_out.patterns,
          [&](const std::string& path, const RecordLimits& limits) {
            return D::ReadFile(path, options, limits);
          },
          /*listener=*/nullptr, RecordLimitsOf(config->data)));
  std::vector<std::string> strata;
  strata.reserve(records.size());
  for (const FileRecord& record : records) {
    strata.push_back(StratumOfRecord<D>(record.json, record.where, options));
  }
  const std::vector<bool> is_held_out = ChooseHeldOut(strata, hold_out);
  ETC_RETURN_IF_ERROR(CheckHeldOut(records, is_held_out, hold_out));
  config->data.dev_records = DescribeHeldOut(records, is_held_out);
  config->json["data"]["dev_records"] = config->data.dev_records;
  return absl::OkStatus();
}

// Returns the function that completes a configuration for training: it calls
// D::CompleteOptions, if there is one, and notes the held out records. Null if
// there is nothing to complete.
template <TaskDefinition D>
std::function<absl::Status(FinetuneConfig*)> CompletionOf() {
  constexpr bool kCompletes =
      requires(FinetuneConfig config, typename D::Options options) {
    D::CompleteOptions(options, config.data, &config.task_options);
  };
  if constexpr (kCompletes || HoldsOutRecords<D>()) {
    return [](FinetuneConfig* config) -> absl::Status {
      ETC_ASSIGN_OR_RETURN(
          const typename D::Options options,
          ReadTaskOptions<D>(config->task_options,
                             absl::StrCat(config->source, ": ", D::kName)));
      if constexpr (kCompletes) {
        ETC_RETURN_IF_ERROR(
            D::CompleteOptions(options, config->data, &config->task_options));
        config->json[D::kName] = config->task_options;
      }
      if constexpr (HoldsOutRecords<D>()) {
        ETC_RETURN_IF_ERROR(NoteHeldOut<D>(options, config));
      }
      return absl::OkStatus();
    };
  } else {
    return nullptr;
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_OPTIONS_H_
