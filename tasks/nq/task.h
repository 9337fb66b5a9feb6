#ifndef ETC_TASKS_NQ_TASK_H_
#define ETC_TASKS_NQ_TASK_H_

#include <cstdint>
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
class Nq final : public Benchmark<NqRecord, NqExample, NqLogits, NqOptions,
                                  std::vector<NqAnnotation>, NqPrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override {
    return {.name = "nq",
            .description =
                "Natural Questions: find a long and a short answer "
                "on a web page",
            .prediction_unit = "prediction"};
  }
  std::string main_metric() const override { return "average_f1"; }
  ScoringRules rules() const override {
    return options().official_compatibility ? ScoringRules::kOfficial
                                            : ScoringRules::kDefault;
  }
  TableSizes Tables(const InputOptions& /*input*/) const override {
    return {.tokens = kNqGlobalQuestionToken + 1,
            .token_names = "the global tokens of Natural Questions",
            .types = kPlainLongType + 1};
  }

  // Room for a question and a stride.
  NeededLengths Lengths(const Options& options) const override;
  void CheckOptions(JsonObjectReader& reader, Options* options) const override;
  // kInvalidArgument for a vocabulary without the special tokens.
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override;

  // Reads a record of either format; a simplified one is told by its field
  // "document_text", which is split at every single blank; there, text between
  // < and > is HTML, and no bytes are known. The id may also be a string of
  // digits. Token ranges lie within the document. A mistake is also a span that
  // is none (doc/nq.md 7.1) or not within the document.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override {
    return {"annotations"};
  }
  std::vector<std::string> DocumentFields() const override {
    return {"document_text", "document_tokens"};
  }
  // Spans become their first words, null ones null; they stay as they are if
  // the record lacks their tokens.
  void ShowAnswers(const nlohmann::json& record,
                   nlohmann::json* answers) const override;
  // The windows over the document, one at least. Throws c10::Error if the
  // lengths in the options are too small.
  //   kInvalidArgument  a candidate without tokens, or not within the document
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  // Windows have all of the page, so only the question can be cut.
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf(
        {{"question_pieces", example.document->dropped_question_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return {{"question", kNqGlobalQuestionToken},
            {options().fixed_blocks ? "block" : "candidate",
             kNqGlobalCandidateToken},
            {"end", kNqGlobalEndToken}};
  }
  // Question, targets, and a line for each global token. HTML tags are "<>" and
  // "</>", the long answer is in braces and the short one in brackets: "{ <>
  // blue was written by [ ann lee ] . </> }".
  std::string Describe(const Example& example) const override;

  int64_t NumExamples(const Example& example) const override {
    return example.document->num_windows;
  }
  Prediction Decode(Outputs windows) const override {
    return DecodeNqDocument(windows, options());
  }

  Gold GoldOf(const Example& example) const override {
    return example.document->annotations;
  }
  std::optional<Gold> GoldOf(const Record& record) const override;
  // Reads the annotations alone (ParseNqGold): pages are long.
  absl::StatusOr<std::pair<std::string, std::optional<Gold>>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules /*rules*/) const override {
    return ParseNqGold(text, where);
  }
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override;
  // An element of the file's list.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  Scores Score(const Answers& answers) const override {
    return {.metrics =
                ScoreNq(answers.gold, answers.predictions, answers.rules)};
  }
  // ScoreNqRecord: the best threshold says nothing of one page without an
  // answer.
  std::pair<std::string, double> RecordScore(
      const Answers& answers) const override {
    return {main_metric(),
            ScoreNqRecord(answers.gold.front().second,
                          answers.predictions.front().second, answers.rules)};
  }
};

// Two linear layers (doc/nq.md 4). With B examples, L long tokens, x the long
// output of the encoder:
//
//   ends         x w + b, each long token            [B, 4, L], by NqChannel
//   answer type  x[0] w + b, that of the long [CLS]  [B, 5], by NqAnswerType
//
// w are truncated normal with a standard deviation of 0.02, whatever the
// encoder's. With `mask_long_output` the ends are -1e9 where they take no
// part. The loss is the mean of five cross entropies, those of the ends of
// short and long answer over the long tokens and that of the type (doc/nq.md
// 5).
Nq::HeadPtr MakeNqHead(const EtcConfig& model, const NqOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_NQ_TASK_H_
