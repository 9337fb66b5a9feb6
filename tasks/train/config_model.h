#ifndef ETC_TASKS_TRAIN_CONFIG_MODEL_H_
#define ETC_TASKS_TRAIN_CONFIG_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// The encoder that the object "model" of a configuration describes (see
// FinetuneConfig::model). `init` are the weights to start from, or empty;
// `where` starts each message. Warnings for the user are appended to
// `*warnings`.
//   kInvalidArgument  unknown fields, wrong types, errors of CheckEtcConfig
//   kNotFound         there is no such preset or file
absl::StatusOr<EtcConfig> ReadConfigModel(const nlohmann::json& json,
                                          const std::string& where,
                                          const std::string& init,
                                          std::vector<std::string>* warnings);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_MODEL_H_
