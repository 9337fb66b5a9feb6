#ifndef ETC_TESTS_SUPPORT_TASK_CONFIG_H_
#define ETC_TESTS_SUPPORT_TASK_CONFIG_H_

#include <cstdint>

#include "etc/config.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {

struct TaskLengths {
  int64_t max_long_length = DataConfig().max_long_length;
  int64_t max_global_length = DataConfig().max_global_length;
};

// The configuration "f.json" with a model, and `options` in the object of the
// task's name.
inline RunConfig TaskConfig(
    const EtcConfig& model,
    const nlohmann::json& options = nlohmann::json::object(),
    const TaskLengths& lengths = {}) {
  RunConfig config;
  config.model = model;
  config.data.max_long_length = lengths.max_long_length;
  config.data.max_global_length = lengths.max_global_length;
  config.task_options = options;
  config.source = "f.json";
  return config;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TASK_CONFIG_H_
