#ifndef ETC_TASKS_NQ_TASK_H_
#define ETC_TASKS_NQ_TASK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/nq/example.h"
#include "tasks/nq/metric.h"
#include "tasks/nq/prediction.h"
#include "tasks/nq/raw.h"
#include "tasks/task/benchmark.h"

namespace etc {

// Natural Questions: an example for each window over a page. Gold are the
// annotations of a page, a prediction its answers.
struct Nq : TaskTypes<NqRecord, NqExample, NqLogits, NqOptions,
                      std::vector<NqAnnotation>, NqPrediction> {
  static constexpr char kName[] = "nq";
  static constexpr char kDescription[] =
      "Natural Questions: find a long and a short answer on a web page";
  static constexpr char kMainMetric[] = "average_f1";
  static constexpr char kPredictionUnit[] = "prediction";
  static constexpr TableSizes Tables(TokenizerKind) {
    return {.tokens = kNqGlobalQuestionToken + 1,
            .token_names = "the global tokens of Natural Questions",
            .types = kPlainLongType + 1};
  }

  // Room for a question and a stride.
  static NeededLengths Lengths(const Options& options);
  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for a vocabulary without the special tokens.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options);

  // Reads a record of either format; a simplified one is told by its field
  // "document_text", which is split at every single blank; there, text between
  // < and > is HTML, and no bytes are known. The id may also be a string of
  // digits. Token ranges lie within the document. A mistake is also a span that
  // is none (doc/nq.md 7.1) or not within the document.
  static void ReadRecord(JsonObjectReader& reader, Record* record);
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"annotations"};
  }
  // The windows over the document, one at least. Throws c10::Error if the
  // lengths in the options are too small.
  static std::vector<std::shared_ptr<const Example>> MakeExamples(
      Record record, const Context& context);
  // Question, targets, and a line for each global token. HTML tags are "<>" and
  // "</>", the long answer is in braces and the short one in brackets: "{ <>
  // blue was written by [ ann lee ] . </> }".
  static std::string Describe(const Example& example, const Context& context);

  // Two linear layers (doc/nq.md 4). With B examples, L long tokens, x the long
  // output of the encoder:
  //
  //   ends         x w + b, each long token            [B, 4, L], see NqChannel
  //   answer type  x[0] w + b, that of the long [CLS]   [B, 5], see
  //   NqAnswerType
  //
  // w are truncated normal with a standard deviation of 0.02, whatever the
  // encoder's. With `mask_long_output` the ends are -1e9 where they take no
  // part. The loss is the mean of five cross entropies, those of the ends of
  // short and long answer over the long tokens and that of the type (doc/nq.md
  // 5).
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);

  static int64_t NumExamples(const Example& example) {
    return example.document->num_windows;
  }
  static Prediction Decode(const Outputs& windows, const Context& context) {
    return DecodeNqDocument(windows, context.options);
  }

  static Gold GoldOf(const Example& example) {
    return example.document->annotations;
  }
  static absl::StatusOr<std::pair<std::string, std::optional<Gold>>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules /*rules*/) {
    return ParseNqGold(text, where);
  }
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers);
  static Scores Score(const Answers& answers) {
    return {.metrics =
                ScoreNq(answers.gold, answers.predictions, answers.rules)};
  }
};
static_assert(TaskDefinition<Nq>);

}  // namespace etc

#endif  // ETC_TASKS_NQ_TASK_H_
