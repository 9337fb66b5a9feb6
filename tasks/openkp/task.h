#ifndef ETC_TASKS_OPENKP_TASK_H_
#define ETC_TASKS_OPENKP_TASK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/openkp/example.h"
#include "tasks/openkp/head.h"
#include "tasks/openkp/prediction.h"
#include "tasks/task.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The score by which checkpoints are compared.
inline constexpr char kOpenkpMainMetric[] = "f1@3";

// The object "openkp" of a fine-tuning configuration.
struct OpenkpOptions {
  OpenkpExampleOptions example;
  OpenkpHeadOptions head;
  OpenkpDecodingOptions decoding;
};

// Reads the fields that tasks/openkp/README.md lists. Absent ones keep their
// default, which is the published recipe with sound rules. `source` names the
// object and starts each message ("finetune.json: openkp").
//   kInvalidArgument  a field that does not exist, a wrong type or value
absl::StatusOr<OpenkpOptions> OpenkpOptionsFromJson(const nlohmann::json& json,
                                                    const std::string& source);

// What decides over a task besides its own options.
struct OpenkpSetup {
  EtcConfig model;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
};

// OpenKP as the trainer knows it. Its main metric is "f1@3".
//   kInvalidArgument  what OpenkpOptionsFromJson says; a vocabulary or type
//                     table too small for the ids of OpenKP
absl::StatusOr<std::unique_ptr<Task>> MakeOpenkpTask(
    const nlohmann::json& options, const std::string& source,
    const OpenkpSetup& setup, std::shared_ptr<const Tokenizer> tokenizer);

// Its layers around the encoder alone, which need no tokenizer.
//   kInvalidArgument  what MakeOpenkpTask says, but of the vocabulary
absl::StatusOr<std::shared_ptr<TaskHead>> MakeOpenkpHead(
    const nlohmann::json& options, const std::string& source,
    const OpenkpSetup& setup);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_TASK_H_
