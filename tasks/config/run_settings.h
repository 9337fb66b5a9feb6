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
// field itself or the object that it is in ("train"); residual_attention names
// that of each path of an encoder-decoder, too.
// The task and `of_outputs` (Task::OutputSettings) may not change at all: the
// outputs of the head would get another meaning, as those of labels in another
// order do.
//   kFailedPrecondition  something else changed; the message has it all
absl::StatusOr<std::vector<SettingChange>> CheckSameSettings(
    const nlohmann::json& then, const nlohmann::json& now,
    const std::vector<std::string>& allowed,
    const std::vector<std::string>& of_outputs = {});

// The settings without the paths of files, whose sizes and digests stay: equal
// if nothing but places differs.
nlohmann::json WithoutPaths(nlohmann::json settings);

// The output directory of the runs of a configuration.
RunOutput OutputOf(const RunConfig& config);

// The settings, by field or object, on which the training examples and their
// batches depend.
std::vector<std::string> ExampleSettings(const RunConfig& config);

// Returns true if a change of the setting `field` invalidates the place in the
// training data where a run stopped: it is one of `example_settings` or in one
// of them, but is not data.dev.
bool ChangesExamples(const std::vector<std::string>& example_settings,
                     const std::string& field);

// Fields of a model, an encoder or an encoder-decoder, that only its training
// reads: two models that differ in others compute different functions.
inline constexpr absl::string_view kTrainingModelFields[] = {
    "hidden_dropout_prob",      "attention_probs_dropout_prob",
    "activation_dropout_prob",  "initializer_range",
    "depth_scaled_initializer", "residual_gate_init",
    "grad_checkpointing_period"};

// Returns true if a change of the setting `field` makes the model compute
// another function with the same weights.
bool ChangesModel(const std::string& field);

// Checks that each of `names` is a field of a configuration, or an object in
// it. Of the object of the task, which the data may complete, any name is
// taken.
//   kInvalidArgument  with the nearest name that is
absl::Status CheckFieldNames(const RunConfig& config,
                             const std::vector<std::string>& names);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_RUN_SETTINGS_H_
