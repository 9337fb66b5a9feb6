#ifndef ETC_TASKS_CONFIG_GRID_H_
#define ETC_TASKS_CONFIG_GRID_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "nlohmann/json_fwd.hpp"
#include "tasks/config/config.h"

namespace etc {

// The grid of a configuration, lists of values by the names of fields:
//
//   "grid": {"train.epochs": [2, 3], "train.learning_rate": [2e-5, 3e-5]}
//
// A grid stands for one configuration for each combination of values. JSON
// objects have no order, so fields are in that of the alphabet; values are in
// the order written, and those of the last field change first.

// The object `json` with a list for each field; `where` starts each message.
//   kInvalidArgument  it is no such object; a list is empty, or has a value
//                     twice; a field may have one value only
absl::StatusOr<nlohmann::json> ReadGrid(const nlohmann::json& json,
                                        const std::string& where);

// One combination of values.
struct GridSetting {
  // The directory of its runs, below that of the grid:
  // "train.epochs=2,train.learning_rate=2e-05". Bytes of a value other than
  // letters, digits and ".+-_" are written as %2F. Empty without a grid.
  std::string name;
  nlohmann::json values = nlohmann::json::object();  // by field
  // Configuration with these values, and with that directory as its output.
  RunConfig config;
};

// The settings of the grid of `config`, in order; without a grid, `config`
// alone. `check_task` as of RunConfigFromJson.
//   kInvalidArgument  a field that does not exist, a value that it may not
//                     have; more than 10 000 settings, or a name longer than
//                     that of a file may be
absl::StatusOr<std::vector<GridSetting>> ExpandGrid(
    const RunConfig& config, const TaskNameCheck& check_task = nullptr);

// Applies one "train.learning_rate=3e-5" (see ReadRunConfig) to `json`.
// Unknown fields are found when the result is read, or here where `types` name
// fields and it is to be null. A field of the grid has the dots of its name:
// "grid.train.epochs=[2, 3]".
//   kInvalidArgument  no "=", an empty name, or a path into what is no object;
//                     null for a field that does not exist
absl::Status ApplyOverride(const std::string& text, nlohmann::json* json,
                           const FieldTypes& types = {});

// Sets "train.learning_rate" in `json`; objects on the way are made. null takes
// the field out, unless it is one of the model.
//   kInvalidArgument  a path into what is no object; `what` starts the message
absl::Status SetField(const std::vector<std::string>& path,
                      nlohmann::json value, absl::string_view what,
                      nlohmann::json* json);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_GRID_H_
