#ifndef ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_
#define ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// Applies one "train.learning_rate=3e-5" (see ReadFinetuneConfig) to `json`.
// Whether the field exists is found out when the result is read.
//   kInvalidArgument  no "=", an empty name, or a path into what is no object
absl::Status ApplyOverride(const std::string& text, nlohmann::json* json);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_OVERRIDE_H_
