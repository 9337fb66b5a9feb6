#ifndef ETC_TASKS_WIKIHOP_TASK_H_
#define ETC_TASKS_WIKIHOP_TASK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/task.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"
#include "tasks/wikihop/example.h"
#include "tasks/wikihop/head.h"

namespace etc {

// The score by which checkpoints are compared.
inline constexpr char kWikihopMainMetric[] = "accuracy";

// The object "wikihop" of a fine-tuning configuration.
struct WikihopOptions {
  WikihopHeadOptions head;
  WikihopExampleOptions example;
};

// Reads the fields add_final_layer, label_smoothing, max_num_sentences,
// candidate_ignore_hard_g2l, query_ignore_hard_g2l, enable_l2g_linking and
// mention_alignment ("pieces" or "characters"). Absent ones keep their default,
// which is the published recipe. `source` names the object and starts each
// message ("finetune.json: wikihop").
//   kInvalidArgument  a field that does not exist, a wrong type or value
absl::StatusOr<WikihopOptions> WikihopOptionsFromJson(
    const nlohmann::json& json, const std::string& source);

// What a task is made of besides its options.
struct WikihopSetup {
  EtcConfig model;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 430;
  SentenceSplitter split_sentences = SplitSentences;
};

// WikiHop as the trainer knows it. Its main metric is "accuracy".
//   kInvalidArgument  what WikihopOptionsFromJson says; a vocabulary or type
//                     table too small for the ids of WikiHop; WordPiece with
//                     upper case and mention_alignment "pieces"
absl::StatusOr<std::unique_ptr<Task>> MakeWikihopTask(
    const nlohmann::json& options, const std::string& source,
    WikihopSetup setup, std::shared_ptr<const Tokenizer> tokenizer);

// Its layers around the encoder alone, which need no tokenizer.
//   kInvalidArgument  what MakeWikihopTask says, but of the vocabulary
absl::StatusOr<std::shared_ptr<TaskHead>> MakeWikihopHead(
    const nlohmann::json& options, const std::string& source,
    const EtcConfig& config);

// ScoreWikihopFiles as metrics: "accuracy", and "answered", the share of
// questions with a prediction.
absl::StatusOr<Metrics> ScoreWikihop(const std::string& gold_path,
                                     const std::string& predictions_path);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_TASK_H_
