#ifndef ETC_TASKS_CLASSIFY_TASK_H_
#define ETC_TASKS_CLASSIFY_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/classify/example.h"
#include "tasks/task_definition.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The object "classify" of a fine-tuning configuration: {"labels": ["yes",
// "no"]}, which are all that a record may be.
struct ClassifyOptions {
  ClassifyExampleOptions example;
};

// See tasks/logits.h.
template <typename T>
struct ClassifyLogits {
  T labels;  // [C], in the order of the option `labels`

  static constexpr auto kMembers = std::make_tuple(&ClassifyLogits::labels);
};

// A class for each text, or pair of texts. Gold and predictions are labels.
//
// The label is read off the global token, logits = g w + b, and not off the
// long [CLS]: with a single global token that one alone sees the whole input in
// every layer, while a long token sees only its neighbours and that token.
struct Classify {
  static constexpr char kName[] = "classify";
  static constexpr char kDescription[] =
      "JSON lines: choose one of several labels for a text or two";
  static constexpr char kMainMetric[] = "accuracy";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kClassifyGlobalToken + 1,
            .token_names = "the global token 1",
            .types = kClassifyTextBType + 1};
  }

  using Record = ClassifyRecord;
  using Example = ClassifyExample;
  template <typename T>
  using Logits = ClassifyLogits<T>;
  using Gold = std::string;
  using Prediction = std::string;
  using Options = ClassifyOptions;

  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for less than [CLS] and two [SEP].
  static absl::Status CheckLengths(const Options& options,
                                   const std::string& source);
  // Looks up [CLS] and [SEP], or <unused_63> and <unused_2>, which ETC's
  // SentencePiece model has for them; kInvalidArgument if both are missing.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    const TaskSettings& settings,
                                    Options* options);

  static constexpr auto Parse = ParseClassifyRecord;
  static constexpr auto MakeExamples = MakeClassifyExample;
  // The label, what truncation took, and the tokens.
  static std::string Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& options);
  static std::shared_ptr<TaskHead> MakeHead(const EtcConfig& model,
                                            const Options& options);
  // The label with the largest logit, of equals the first.
  static Prediction Decode(const Example& example,
                           const Logits<LogitRow>& logits,
                           const Options& options, const Tokenizer& tokenizer);

  static Gold GoldOf(const Example& example) { return example.label_name; }
  static absl::StatusOr<std::pair<std::string, Gold>> ParseGold(
      const std::string& text, const std::string& where, ScoringRules rules);
  // A line for each record: {"id": "7", "label": "yes"}.
  static absl::StatusOr<ById<Prediction>> ReadPredictions(
      const std::string& path);
  static std::string FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& gold);
  static absl::Status CheckFiles(const ById<Gold>& gold,
                                 const ById<Prediction>& predictions,
                                 const ScoredFiles& files);
  // "accuracy", and "macro_f1", the mean of F1 = 2PR / (P + R) (0 if nothing is
  // right) over the labels that occur in gold or predictions.
  static Scores Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions, ScoringRules rules);
};
static_assert(TaskDefinition<Classify>);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_TASK_H_
