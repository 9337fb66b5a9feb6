#ifndef ETC_TASKS_HOTPOTQA_TASK_H_
#define ETC_TASKS_HOTPOTQA_TASK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/head.h"
#include "tasks/hotpotqa/prediction.h"
#include "tasks/task.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The score by which checkpoints are compared.
inline constexpr char kHotpotqaMainMetric[] = "joint_f1";

// The object "hotpotqa" of a fine-tuning configuration.
struct HotpotqaOptions {
  HotpotqaHeadOptions head;
  HotpotqaExampleOptions example;
  HotpotqaDecodingOptions decoding;
  // Take the threshold of supporting facts from 0, 0.1, ..., 1 that has the
  // best joint F1 on the very data that are scored, as the official program
  // does at its end. Data without answers get `supporting_fact_threshold`.
  bool search_threshold = false;
};

// Reads the fields answer_encoding ("span" or "bio"),
// supporting_fact_threshold, search_threshold, max_answer_length, flat_sequence
// and official_compatibility. Absent ones keep their default. `source` names
// the object and starts each message ("finetune.json: hotpotqa").
//   kInvalidArgument  a field that does not exist, a wrong type or value
absl::StatusOr<HotpotqaOptions> HotpotqaOptionsFromJson(
    const nlohmann::json& json, const std::string& source);

// What the rest of a configuration says to the task.
struct HotpotqaSetup {
  EtcConfig model;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 256;
};

// HotpotQA as the trainer knows it. Its main metric is "joint_f1".
//   kInvalidArgument  what HotpotqaOptionsFromJson says; a vocabulary or type
//                     table too small for the ids of HotpotQA
absl::StatusOr<std::unique_ptr<Task>> MakeHotpotqaTask(
    const nlohmann::json& options, const std::string& source,
    const HotpotqaSetup& setup, std::shared_ptr<const Tokenizer> tokenizer);

// Its layers around the encoder alone, which need no tokenizer.
//   kInvalidArgument  what MakeHotpotqaTask says, but of the vocabulary
absl::StatusOr<std::shared_ptr<TaskHead>> MakeHotpotqaHead(
    const nlohmann::json& options, const std::string& source,
    const HotpotqaSetup& setup);

// ScoreHotpotqaFiles as metrics: the twelve official ones, then the
// diagnostics.
absl::StatusOr<Metrics> ScoreHotpotqa(const std::string& gold_path,
                                      const std::string& predictions_path);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_TASK_H_
