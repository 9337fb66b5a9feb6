#ifndef ETC_TASKS_WIKIHOP_TASK_H_
#define ETC_TASKS_WIKIHOP_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/task/benchmark.h"
#include "tasks/wikihop/example.h"

namespace etc {

// One question of a QAngaroo WikiHop file (doc/wikihop.md 1.2).
struct WikihopRecord {
  std::string id;
  // Relation and subject, as in the file: "country_of_citizenship ann lee".
  std::string query;
  // Stripped and in lower case, in the order of the file. Never empty.
  std::vector<std::string> candidates;
  // Documents, as in the file.
  std::vector<std::string> supports;
  // Index of the first candidate that is the answer; none if the record has no
  // field "answer", as in data to predict for.
  std::optional<int32_t> label;
};

// See tasks/task/benchmark.h.
template <typename T>
struct WikihopLogits {
  // [G], by global token; the candidates are the first ones.
  T candidates;

  static constexpr auto kMembers = std::make_tuple(&WikihopLogits::candidates);
};

// QAngaroo WikiHop. Gold and predictions are answers.
struct Wikihop : TaskTypes<WikihopRecord, WikihopExample, WikihopLogits,
                           WikihopOptions, std::string, std::string> {
  static constexpr char kName[] = "wikihop";
  static constexpr char kDescription[] =
      "QAngaroo WikiHop: choose among candidates by several documents";
  static constexpr char kMainMetric[] = "accuracy";
  static constexpr bool kRefusesOtherIds = true;
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kWikihopDocumentToken + 1,
            .token_names = "the global tokens 1 to 5",
            .types = kWikihopDocumentGlobalType + 1};
  }

  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for WordPiece with upper case and mention_alignment
  // "pieces".
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options);

  // The answer is put in lower case but not stripped before it is looked for
  // (doc/wikihop.md 1.3). Mistakes: no candidates, an answer that is none of
  // them.
  static void ReadRecord(JsonObjectReader& reader, Record* record);
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"answer"};
  }
  //   kInvalidArgument  a candidate or query without pieces; candidates and
  //                     query alone longer than `max_long_length`; more global
  //                     tokens than `max_global_length`
  static ExampleOr<Example> MakeExamples(const Record& record,
                                         const Context& context);
  // The question and its answer, losses by truncation, and a line for each
  // global token. A token linked to a candidate has that candidate's index
  // behind it: "oslo>3".
  static std::string Describe(const Example& example, const Context& context);

  // A logit for each candidate (doc/wikihop.md 5). With x the global output of
  // the encoder, B examples, G global tokens, H hidden:
  //
  //   y     = LayerNorm(x + dropout(W2 act(W1 x + b1) + b2))    final layer
  //   logit = y w + b, and -10000 for what is no candidate      [B, G]
  //
  // W1, W2 are Glorot uniform (Keras' default), w truncated normal; activation,
  // sizes and dropout are those of the encoder. The loss is cross entropy
  // (doc/wikihop.md 6). Throws c10::Error if `label_smoothing` is not in [0,
  // 1).
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);

  // The candidate with the largest logit, the first of them if there are
  // several (doc/wikihop.md 8).
  static Prediction Decode(const Output& output, const Context& context);

  static Gold GoldOf(const Example& example);
  static std::optional<Gold> GoldOf(const Record& record);
  // The official submission: {"WH_dev_0": "norway", ...}. Written in the order
  // given, ASCII with escapes, and a newline.
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers);
  // "accuracy", the share of questions whose prediction is equal to the gold
  // answer when stripped and in lower case (doc/wikihop.md 9), and "answered",
  // that of questions with a prediction.
  static Scores Score(const Answers& answers);
};
static_assert(TaskDefinition<Wikihop>);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_TASK_H_
