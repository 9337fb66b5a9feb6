#ifndef ETC_TASKS_NQ_TASK_H_
#define ETC_TASKS_NQ_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/nq/example.h"
#include "tasks/nq/metric.h"
#include "tasks/nq/prediction.h"
#include "tasks/nq/raw.h"
#include "tasks/task_definition.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct NqHeadOptions {
  // Whether only [CLS] and pieces of the document take part in the softmax over
  // long tokens; else question, [SEP] and padding do, too.
  bool mask_long_output = true;
};

// The object "nq" of a fine-tuning configuration: README.md has its fields.
// Absent ones keep their default.
struct NqOptions {
  NqExampleOptions example;
  NqHeadOptions head;
  NqDecodingOptions decoding;
  bool official_compatibility = false;
};

// Natural Questions: an example for each window over a page. Gold are the
// annotations of a page, a prediction its answers.
struct Nq {
  static constexpr char kName[] = "nq";
  static constexpr char kDescription[] =
      "Natural Questions: find a long and a short answer on a web page";
  static constexpr char kMainMetric[] = "average_f1";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kNqGlobalQuestionToken + 1,
            .token_names = "the global tokens of Natural Questions",
            .types = kNqLongType + 1};
  }

  using Record = NqRecord;
  using Example = NqExample;
  template <typename T>
  using Logits = NqLogits<T>;
  using Window = NqWindow;
  using Gold = std::vector<NqAnnotation>;
  using Prediction = NqPrediction;
  using Options = NqOptions;

  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for lengths without room for a question and a stride.
  static absl::Status CheckLengths(const Options& options,
                                   const std::string& source);
  // kInvalidArgument for a vocabulary without the special tokens.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    const TaskSettings& settings,
                                    Options* options);

  static constexpr auto Parse = ParseNqRecord;
  static std::vector<std::shared_ptr<const Example>> MakeExamples(
      Record record, const Tokenizer& tokenizer,
      const NqExampleOptions& options, const std::string& /*where*/) {
    return MakeNqExamples(std::move(record), tokenizer, options);
  }
  // Question, targets, and a line for each global token. HTML tags are "<>" and
  // "</>", the long answer is in braces and the short one in brackets: "{ <>
  // blue was written by [ ann lee ] . </> }".
  static std::string Describe(const Example& example,
                              const Tokenizer& tokenizer,
                              const Options& options);
  // An NqHead.
  static std::shared_ptr<TaskHead> MakeHead(const EtcConfig& model,
                                            const Options& options);
  static int64_t NumExamples(const Example& example) {
    return example.document->num_windows;
  }
  static Prediction Decode(absl::Span<const Window> windows,
                           const Options& options,
                           const Tokenizer& /*tokenizer*/) {
    return DecodeNqDocument(windows, options.decoding);
  }

  static Gold GoldOf(const Example& example) {
    return example.document->annotations;
  }
  static absl::StatusOr<std::pair<std::string, Gold>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules /*rules*/) {
    return ParseNqGold(text, where);
  }
  static absl::StatusOr<ById<Prediction>> ReadPredictions(
      const std::string& path);
  static std::string FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& gold);
  static absl::Status CheckFiles(const ById<Gold>& gold,
                                 const ById<Prediction>& predictions,
                                 const ScoredFiles& files) {
    return CheckSameRecords(gold, predictions, files, "prediction");
  }
  static Scores Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions, ScoringRules rules) {
    return {.metrics = ScoreNq(gold, predictions, rules)};
  }
};
static_assert(TaskDefinition<Nq>);

}  // namespace etc

#endif  // ETC_TASKS_NQ_TASK_H_
