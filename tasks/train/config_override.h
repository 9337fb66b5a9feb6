#ifndef ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_
#define ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Applies one "train.learning_rate=3e-5" (see ReadFinetuneConfig) to `json`.
// Whether the field exists is found out when the result is read. A field of the
// grid has the dots of its name: "grid.train.epochs=[2, 3]".
//   kInvalidArgument  no "=", an empty name, or a path into what is no object
absl::Status ApplyOverride(const std::string& text, nlohmann::json* json);

// Sets "train.learning_rate" in `json`; objects on the way are made.
//   kInvalidArgument  a path into what is no object; `what` starts the message
absl::Status SetField(const std::vector<std::string>& path,
                      nlohmann::json value, absl::string_view what,
                      nlohmann::json* json);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_
