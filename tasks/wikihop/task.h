#ifndef ETC_TASKS_WIKIHOP_TASK_H_
#define ETC_TASKS_WIKIHOP_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/logits.h"
#include "tasks/scoring.h"
#include "tasks/task_definition.h"
#include "tasks/task_settings.h"
#include "tasks/text/tokenizer.h"
#include "tasks/wikihop/example.h"
#include "tasks/wikihop/raw.h"

namespace etc {

struct WikihopHeadOptions {
  // Whether a feed-forward block stands between encoder and logits.
  bool add_final_layer = true;
  // Share of the target that is spread over all candidates, in [0, 1).
  double label_smoothing = 0.0;
};

// The object "wikihop" of a fine-tuning configuration: README.md has its
// fields. Absent ones keep their default, which is the published recipe.
struct WikihopOptions {
  WikihopHeadOptions head;
  WikihopExampleOptions example;
};

// See tasks/logits.h.
template <typename T>
struct WikihopLogits {
  // [G], by global token; the candidates are the first ones.
  T candidates;

  static constexpr auto kMembers = std::make_tuple(&WikihopLogits::candidates);
};

// QAngaroo WikiHop. Gold and predictions are answers.
struct Wikihop {
  static constexpr char kName[] = "wikihop";
  static constexpr char kDescription[] =
      "QAngaroo WikiHop: choose among candidates by several documents";
  static constexpr char kMainMetric[] = "accuracy";
  static constexpr char kUniqueIdField[] = "id";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kWikihopDocumentToken + 1,
            .token_names = "the global tokens 1 to 5",
            .types = kWikihopDocumentGlobalType + 1};
  }

  using Record = WikihopRecord;
  using Example = WikihopExample;
  template <typename T>
  using Logits = WikihopLogits<T>;
  using Gold = std::string;
  using Prediction = std::string;
  using Options = WikihopOptions;

  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for WordPiece with upper case and mention_alignment
  // "pieces".
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    const TaskSettings& settings,
                                    Options* options);

  static constexpr auto Parse = ParseWikihopRecord;
  static constexpr auto MakeExamples = MakeWikihopExample;
  // The question and its answer, what truncation took, and a line for each
  // global token. A token linked to a candidate has that candidate's index
  // behind it: "oslo>3".
  static std::string Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& options);
  // A WikihopHead.
  static std::shared_ptr<TaskHead> MakeHead(const EtcConfig& model,
                                            const Options& options);
  // The candidate with the largest logit, the first of them if there are
  // several (doc/wikihop.md 8).
  static Prediction Decode(const Example& example,
                           const Logits<LogitRow>& logits,
                           const Options& options, const Tokenizer& tokenizer);

  static Gold GoldOf(const Example& example);
  static absl::StatusOr<std::pair<std::string, Gold>> ParseGold(
      const std::string& text, const std::string& where, ScoringRules rules);
  // The official submission: {"WH_dev_0": "norway", ...}. Written in the order
  // given, ASCII with escapes, and a newline.
  static absl::StatusOr<ById<Prediction>> ReadPredictions(
      const std::string& path);
  static std::string FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& gold);
  // kInvalidArgument for a prediction of a question that the data do not have.
  static absl::Status CheckFiles(const ById<Gold>& gold,
                                 const ById<Prediction>& predictions,
                                 const ScoredFiles& files);
  // "accuracy", the share of questions whose prediction is equal to the gold
  // answer when stripped and in lower case (doc/wikihop.md 9), and "answered",
  // that of questions with a prediction.
  static Scores Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions, ScoringRules rules);
};
static_assert(TaskDefinition<Wikihop>);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_TASK_H_
