#ifndef ETC_TASKS_CLASSIFY_TASK_H_
#define ETC_TASKS_CLASSIFY_TASK_H_

#include <optional>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/classify/example.h"
#include "tasks/task_definition.h"

namespace etc {

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
struct Classify : TaskTypes<ClassifyRecord, ClassifyExample, ClassifyLogits,
                            ClassifyOptions, std::string, std::string> {
  static constexpr char kName[] = "classify";
  static constexpr char kDescription[] =
      "JSON lines: choose one of several labels for a text or two";
  static constexpr char kMainMetric[] = "accuracy";
  static constexpr char kPredictionUnit[] = "line";
  static constexpr char kAnswerField[] = "label";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kClassifyGlobalToken + 1,
            .token_names = "the global token 1",
            .types = kClassifyTextBType + 1};
  }

  static NeededLengths Lengths(const Options& /*options*/) {
    return {.long_tokens = 3, .long_use = "[CLS] and two [SEP]"};
  }
  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // Looks up [CLS] and [SEP], or <unused_63> and <unused_2>, which ETC's
  // SentencePiece model has for them; kInvalidArgument if both are missing.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options);

  // `where` of the reader ends with the number of the record.
  static void ReadRecord(JsonObjectReader& reader, Record* record);
  //   kInvalidArgument  a label that is none of `options.labels`
  static ExampleOr<Example> MakeExamples(const Record& record,
                                         const Context& context);
  // The label, what truncation took, and the tokens.
  static std::string Describe(const Example& example, const Context& context);
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);
  // The label with the largest logit, of equals the first.
  static Prediction Decode(const Output& output, const Context& context);

  static Gold GoldOf(const Example& example) { return example.label_name; }
  static std::optional<Gold> GoldOf(const Record& record) {
    return record.label;
  }
  // A line for each record: {"id": "7", "label": "yes"}.
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers);
  // "accuracy", and "macro_f1", the mean of F1 = 2PR / (P + R) (0 if nothing is
  // right) over the labels that occur in gold or predictions.
  static Scores Score(const Answers& answers);
};
static_assert(TaskDefinition<Classify>);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_TASK_H_
