#ifndef ETC_TASKS_TRAIN_CONFIG_H_
#define ETC_TASKS_TRAIN_CONFIG_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json.hpp"
#include "tasks/train/config_parts.h"

namespace etc {

// The configuration of fine-tuning: the contents of its JSON file. Each struct
// is the object of the same name in it, and each field has the name that it has
// there. A new field is one line in the struct, one in its table
// (tasks/train/config_fields.h) and a row in doc/configuration.md.

struct FinetuneConfig {
  // "wikihop", ...: see the registry.
  std::string task;
  // {"preset": "base"} or {"path": "etc_config.json"}, and any fields of
  // etc_config.json beside it, which override these. With neither of the two
  // they override the configuration of `init`, or what BERT in `init` is lifted
  // to.
  EtcConfig model;
  // Weights to start from, in any format of etc/weights/weights.h; of the
  // directory of a run or a grid, its best checkpoint (FindCheckpoint) has been
  // put here. Empty: random ones.
  std::string init;
  // "off", "sum" or "mean", and the same in `model`; absent: as in `model`.
  std::string residual_attention = "off";
  TokenizerConfig tokenizer;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  // The object with the task's name, which the task reads.
  nlohmann::json task_options = nlohmann::json::object();
  // Directory for checkpoints, metrics and predictions.
  std::string output;
  // Lists of values by the names of fields (tasks/train/grid.h).
  nlohmann::json grid = nlohmann::json::object();

  // What messages about it start with: the path of its file.
  std::string source;
  // The JSON that all this was read from, with the overrides in it.
  nlohmann::json json = nlohmann::json::object();
  // Messages for the user about what is allowed, but likely not meant.
  std::vector<std::string> warnings;
};

// Whether there is a task of that name: the status of FindTask
// (tasks/registry.h).
using TaskNameCheck = std::function<absl::Status(const std::string& name)>;

// Reads the file at `path` and applies `overrides`, each
// "train.learning_rate=3e-5": a path of field names, and a JSON value or else a
// string. Relative paths in it are relative to the working directory. Where
// `check_task` is not null, its error is returned before that of any other
// field: a misspelt task makes the object of the task's name an unknown field.
//   kInvalidArgument  a field that does not exist (with the nearest one that
//                     does), a wrong type, a value out of range
absl::StatusOr<FinetuneConfig> ReadFinetuneConfig(
    const std::string& path, const std::vector<std::string>& overrides,
    const TaskNameCheck& check_task = nullptr);

// The same from JSON; `source` starts each message.
absl::StatusOr<FinetuneConfig> FinetuneConfigFromJson(
    nlohmann::json json, const std::string& source,
    const TaskNameCheck& check_task = nullptr);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_H_
