#ifndef ETC_TASKS_NQ_TASK_H_
#define ETC_TASKS_NQ_TASK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/nq/example.h"
#include "tasks/nq/head.h"
#include "tasks/nq/prediction.h"
#include "tasks/task.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The score by which checkpoints are compared.
inline constexpr char kNqMainMetric[] = "average_f1";

// The object "nq" of a fine-tuning configuration.
struct NqOptions {
  NqExampleOptions example;
  NqHeadOptions head;
  NqDecodingOptions decoding;
};

// Reads the fields stride, question_len, predict_la_when_no_sa,
// include_unknown_rate, include_unknown_rate_for_unanswerable (absent: four
// times the other), include_unknown_seed, fixed_blocks, fixed_block_size,
// mask_long_output (absent: not with official_compatibility),
// span_selection_method ("joint", "disjoint" or "joint_exhaustive"),
// consider_answer_type, max_short_answer_len and official_compatibility. Other
// absent ones keep their default. `source` names the object and starts each
// message ("finetune.json: nq").
//   kInvalidArgument  a field that does not exist, a wrong type or value
absl::StatusOr<NqOptions> NqOptionsFromJson(const nlohmann::json& json,
                                            const std::string& source);

// What the rest of a configuration says to the task.
struct NqSetup {
  EtcConfig model;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 230;
};

// Natural Questions as the trainer knows it: an example for each window over a
// page. Its main metric is "average_f1".
//   kInvalidArgument  what NqOptionsFromJson says; lengths without room for a
//                     question and a stride; a vocabulary without the special
//                     tokens, tables too small for the ids
absl::StatusOr<std::unique_ptr<Task>> MakeNqTask(
    const nlohmann::json& options, const std::string& source,
    const NqSetup& setup, std::shared_ptr<const Tokenizer> tokenizer);

// Its layers around the encoder alone, which need no tokenizer.
//   kInvalidArgument  what MakeNqTask says, but of the vocabulary
absl::StatusOr<std::shared_ptr<TaskHead>> MakeNqHead(
    const nlohmann::json& options, const std::string& source,
    const NqSetup& setup);

}  // namespace etc

#endif  // ETC_TASKS_NQ_TASK_H_
