#ifndef ETC_TASKS_SQUAD_TASK_H_
#define ETC_TASKS_SQUAD_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/data/record_source.h"
#include "tasks/inputs/text_input.h"
#include "tasks/squad/example.h"
#include "tasks/squad/metric.h"
#include "tasks/squad/prediction.h"
#include "tasks/squad/record.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/prediction.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// SQuAD v1.1 and v2.0, and data in their format: an example for each window
// over the context of a question. Gold are the answers that people gave, a
// prediction the text of one with those that were considered.
class Squad final : public Benchmark<SquadRecord, SquadExample, SquadLogits,
                                     SquadOptions, SquadGold, SquadPrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override;
  std::string main_metric() const override { return "f1"; }

  TableSizes Tables(const InputOptions& input) const override;
  // Room for a question, its marks and a piece of the context, and of ETC's
  // global input for the question and a sentence.
  NeededLengths Lengths(const Options& options) const override;
  // Warns of a stride at which windows do not overlap.
  std::vector<std::string> Warnings() const override;
  // Looks up what stands around texts.
  //   kInvalidArgument  what FindTextMarks says
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override {
    return FindTextMarks(tokenizer, &options->marks);
  }

  // The records of a file as SQuAD has it, {"data": [{"paragraphs":
  // [{"context": "...", "qas": [{"id": "...", ...}, ...]}, ...]}, ...]}: each
  // question with the context of its paragraph, which they share
  // (FileRecord::shared). They are called "train.json:
  // data[3].paragraphs[2].qas[0]". Plain or packed by gzip.
  //   kInvalidArgument  it is not that, with the place and what was expected
  // and those of ReadUnpackedFile.
  absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const RecordLimits& limits) const override;
  // Reads one of them. Other fields are ignored, `plausible_answers` among
  // them.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override {
    return {"answers", "is_impossible"};
  }
  std::vector<std::string> AnswerTextFields() const override {
    return {"answers"};
  }
  // Returns the error in the answers of a training record, to be appended to
  // the record's place in a message; empty: there is none.
  std::string TrainingError(const Record& record) const override;
  // Returns why training leaves a record out: FindAnswerWords does not find an
  // answer. Needs no tokenizer.
  std::string WhyLeftOut(const Record& record) const override;
  // Makes the windows of a record, at least one: that of a context without
  // pieces is empty. Errors in its answers are mistakes in training alone.
  //   kInvalidArgument  the lengths in the options have no room for a piece
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  // Windows have all of the context, so only the question can be cut.
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf(
        {{"question_pieces", example.document->dropped_question_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    std::vector<GlobalTokenName> names =
        GlobalTokensOfTexts(options().input.has_long_tokens);
    if (!names.empty()) {
      names.push_back({"question", kSquadQuestionToken});
    }
    return names;
  }
  // The question, the target and the tokens, an answer in brackets.
  std::string Describe(const Example& example) const override;

  int64_t NumExamples(const Example& example) const override {
    return example.document->num_windows;
  }
  // Predicts by DecodeSquad; windows may come in any order.
  Prediction Decode(Outputs windows) const override;
  Gold GoldOf(const Example& example) const override {
    return example.document->gold;
  }
  // Returns what the metric needs of a record; nothing if it lacks its answers.
  std::optional<Gold> GoldOf(const Record& record) const override;
  // Reads the id and the answers alone; the context may be absent.
  absl::StatusOr<std::pair<std::string, std::optional<Gold>>> ParseGold(
      const std::string& text, const std::string& where,
      ScoringRules rules) const override;
  // Reads {"ID": "text", ...}, the n-best answers of SquadCandidatesToJson, by
  // id, or lines of PredictionJson. N-best answers are judged by the threshold
  // of the options, those beside an answer only where these have one.
  //   kInvalidArgument  a value is neither a text nor a list of candidates, one
  //                     at least, nor a line with "answer"
  PredictionsOr ReadPredictions(const std::string& path) const override;
  // N-best answers of version 2.0, one of which is empty, by the threshold of
  // null odds.
  bool DecodesAgain(const Prediction& prediction,
                    absl::string_view option) const override {
    return option == "null_score_diff_threshold" &&
           absl::c_any_of(prediction.candidates, [](const SquadCandidate& c) {
             return c.text.empty();
           });
  }
  // Writes {"ID": "text", ...} (doc/squad.md 8).
  std::string FileContents(const Answers& answers) const override;
  // {"id": "57", "answer": "text", "nbest": [{"text": ..., "probability": ...,
  // "start_logit": ..., "end_logit": ...}, ...]}, and "null_odds" in version
  // 2.0.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // "nbest_" and, in version 2.0, "null_odds_".
  std::vector<PredictionFile> MoreFiles(const Answers& answers) const override;
  // ScoreSquad2 if the options or the data are of version 2.0, else
  // ScoreSquad1.
  Scores Score(const Answers& answers) const override;
  // Asks about questions that all have an empty list of answers and no
  // `is_impossible`, as in a file to predict for.
  std::string Remark(const Answers& answers) const override;
};

// A linear layer on the outputs x of the text's T tokens (doc/squad.md 4):
//
//   ends = x w + b                   [B, 2, T], starts and ends
//
// and -1e9 for padding. The official program does not mask it, but its padding
// is another: all inputs have the full length, and padding sees the text. With
// ours, which sees nothing, what an example's loss and answer are would depend
// on its batch.
//
// w, b: qa_outputs, as BertForQuestionAnswering has them, whose values are
// taken over; else w is truncated normal with a standard deviation of 0.02. The
// loss is the mean of the cross entropies of start and end over all tokens of
// the text, question and [SEP] among them.
Squad::HeadPtr MakeSquadHead(const EtcConfig& model,
                             const SquadOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_TASK_H_
