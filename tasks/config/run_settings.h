#ifndef ETC_TASKS_CONFIG_RUN_SETTINGS_H_
#define ETC_TASKS_CONFIG_RUN_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/run_files.h"
#include "tasks/output/results.h"

namespace etc {

// Inputs of a run beside its configuration.
struct RunInputs {
  int64_t seed = 1;
  // Sizes of the training data; examples as ExampleSource::expected_examples.
  int64_t num_records = 0;
  int64_t num_examples = 0;
  // The configuration's files. A field that has no entry is compared by its
  // value: data that are made in memory have no files.
  const RunFiles& files;
};

// All settings that the course of a run depends on: every field of the
// configuration's tables (tasks/config/config_fields.h) except those that may
// change (FieldRule::may_change), the model and the options of the task.
nlohmann::json RunSettings(const RunConfig& config, const RunInputs& inputs);

// The same before the data are read, to be compared with `then`: what follows
// from the contents of files, and the options of the task, which may be
// completed from the data, are taken from there.
nlohmann::json SettingsWithFilesOf(const RunConfig& config, int64_t seed,
                                   const nlohmann::json& then);

// A setting that is not what it was.
struct SettingChange {
  std::string field;  // "train.precision"
  std::string was;    // for people
  std::string is;
};

// Every setting that differs, by name. Files are compared by their contents.
std::vector<SettingChange> FindChanges(const nlohmann::json& then,
                                       const nlohmann::json& now);

// Compares the settings with which a run began to those with which it is to go
// on, by FindChanges. Returns the changes, all of which `allowed` names: by the
// field itself or the object that it is in ("train").
// Nothing allows a change that makes the model another function of the same
// weights, or its scores no longer comparable: of residual_attention and the
// model, but for fields that only training reads; of the task, its options, the
// tokenizer, the data and the main metric, but for kTrainingDataFields; and of
// kHeldOutFields where a part of data.train is scored
// (`evaluates_train_files`).
// optimizer.type may not change either: the state is that of the type.
//   kFailedPrecondition  something else changed; the message has it all
absl::StatusOr<std::vector<SettingChange>> CheckSameSettings(
    const nlohmann::json& then, const nlohmann::json& now,
    const std::vector<std::string>& allowed,
    bool evaluates_train_files = false);

// The settings without the paths of files, whose sizes and digests stay: equal
// if nothing but places differs.
nlohmann::json WithoutPaths(nlohmann::json settings);

// The output directory of the runs of a configuration.
RunOutput OutputOf(const RunConfig& config);

// Settings that decide which examples are trained on, and in which batches, and
// no score. A change makes the run begin a new pass over the data.
// data.on_bad_record decides no score: a bad record either ended the evaluation
// or was never in one.
inline constexpr absl::string_view kTrainingDataFields[] = {
    "data.train",
    "data.number of training records",
    "data.bucket_batches",
    "data.on_bad_record",
    "train.batch_size",
    "train.max_examples",
    "train.seed",
    "translation.max_tokens",
    "translation.max_sentences"};

// Settings that decide which records are scored.
inline constexpr absl::string_view kScoredRecordFields[] = {
    "data.dev", "data.dev_records", "pretrain.min_sentences"};

// Settings that decide it too where a part of the files of data.train is
// scored, of which data.dev_records says nothing (Task::holds_out).
inline constexpr absl::string_view kHeldOutFields[] = {
    "data.train", "pretrain.development_one_in", "pretrain.max_sentences"};

// Returns true if runs that differ in the setting `field` score other records.
bool ChangesScoredRecords(absl::string_view field, bool evaluates_train_files);

// Checks that each of `names` is a field of a configuration, or an object in
// it. Of the object of the task, which the data may complete, any name is
// taken.
//   kInvalidArgument  with the nearest name that is
absl::Status CheckFieldNames(const RunConfig& config,
                             const std::vector<std::string>& names);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_RUN_SETTINGS_H_
