#ifndef ETC_TASKS_SQUAD_TASK_H_
#define ETC_TASKS_SQUAD_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/squad/example.h"
#include "tasks/squad/metric.h"
#include "tasks/squad/prediction.h"
#include "tasks/squad/raw.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/scoring.h"

namespace etc {

// SQuAD v1.1 and v2.0, and data in their format: an example for each window
// over the context of a question. Gold are the answers that people gave, a
// prediction the text of one with those that were considered.
struct Squad : TaskTypes<SquadRecord, SquadExample, SquadLogits, SquadOptions,
                         SquadGold, SquadPrediction> {
  static constexpr char kName[] = "squad";
  static constexpr char kDescription[] =
      "SQuAD v1.1 and v2.0: find the answer to a question in a text";
  static constexpr char kMainMetric[] = "f1";
  static constexpr char kPredictionUnit[] = "prediction";
  static constexpr bool kMayMissOfficially = true;
  static constexpr TableSizes Tables(const InputOptions& input) {
    return {.tokens = input.has_long_tokens ? kSquadQuestionToken + 1 : 0,
            .token_names = "the global tokens 1 to 3",
            .types = input.has_long_tokens ? kSecondTextType + 1 : 2};
  }

  // Room for a question, its marks and a piece of the context, and of ETC's
  // global input for the question and a sentence.
  static NeededLengths Lengths(const Options& options);
  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // kInvalidArgument for a vocabulary without FindTextMarks.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options) {
    return FindTextMarks(tokenizer, &options->marks);
  }

  static absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const Options& /*options*/,
      const RecordLimits& /*limits*/) {
    return ReadSquadFile(path);
  }
  static void ReadRecord(JsonObjectReader& reader, Record* record) {
    ReadSquadRecord(reader, record);
  }
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"answers", "is_impossible"};
  }
  static absl::Status CheckRecord(const Record& /*record*/,
                                  const Options& /*options*/,
                                  const std::string& /*where*/) {
    return absl::OkStatus();
  }
  static std::string TrainingError(const Record& record,
                                   const Options& options) {
    return SquadTrainingError(record, options);
  }
  static auto MakeExamples(Record record, const Context& context) {
    return MakeSquadExamples(std::move(record), context);
  }
  // The question, the target and the tokens, an answer in brackets.
  static std::string Describe(const Example& example, const Context& context);

  // A linear layer on the outputs x of the text's T tokens (doc/squad.md 4):
  //
  //   ends = x w + b                   [B, 2, T], starts and ends
  //
  // and -1e9 for padding. The official program does not mask it, but its
  // padding is another: all inputs have the full length, and padding sees the
  // text. With ours, which sees nothing, an example's loss and answer would
  // depend on its batch.
  //
  // w, b: qa_outputs, as BertForQuestionAnswering has them, whose values are
  // taken over; else w is truncated normal with a standard deviation of 0.02.
  // The loss is the mean of the cross entropies of start and end over all
  // tokens of the text, question and [SEP] among them.
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);

  static int64_t NumExamples(const Example& example) {
    return example.document->num_windows;
  }
  static Prediction Decode(const Outputs& windows, const Context& context);

  static Gold GoldOf(const Example& example) { return example.document->gold; }
  static std::optional<Gold> GoldOf(const Record& record);
  static PredictionsOr ReadPredictions(const std::string& path) {
    return ReadSquadPredictions(path);
  }
  static std::string FileContents(const Answers& answers,
                                  const Options& /*options*/) {
    return SquadPredictionsToJson(answers.predictions);
  }
  // "nbest_" and, in version 2.0, "null_odds_".
  static std::vector<PredictionFile> MoreFiles(const Answers& answers,
                                               const Options& options);
  // ScoreSquad2 if the options or the data are of version 2.0, else
  // ScoreSquad1. Predictions with candidates are judged anew, by the threshold
  // of the options.
  static Scores Score(const Answers& answers, const Options& options);
};
static_assert(TaskDefinition<Squad>);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_TASK_H_
