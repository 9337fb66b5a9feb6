#ifndef ETC_TASKS_GLUE_TASK_H_
#define ETC_TASKS_GLUE_TASK_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/data/record_source.h"
#include "tasks/glue/example.h"
#include "tasks/glue/record.h"
#include "tasks/inputs/text_input.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct GlueLogits {
  // [C], in the order of the option `labels`; of STS-B [1], the score.
  T classes;

  static constexpr auto kMembers = std::make_tuple(&GlueLogits::classes);
};

// One of the tasks of GLUE (doc/glue.md), which the option `name` says, on BERT
// or ETC.
class Glue final : public Benchmark<GlueRecord, GlueExample, GlueLogits,
                                    GlueOptions, GlueGold, GluePrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override;
  // The main metric of the task; empty if the options say no task, as without
  // a configuration, where ReadFile gives the error.
  std::string main_metric() const override {
    return options().task == nullptr ? "" : options().task->main_metric();
  }

  TableSizes Tables(const InputOptions& input) const override {
    return TablesOfTexts(input);
  }
  NeededLengths Lengths(const Options& options) const override {
    return LengthsOfTexts(options.input, options.marks);
  }
  // Looks up what stands around texts (FindTextMarks).
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override {
    return FindTextMarks(tokenizer, &options->marks);
  }

  // The rows of an official file.
  //   kInvalidArgument  the options say no task, and what ReadGlueFile says
  absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const RecordLimits& limits) const override;
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override { return {"label"}; }
  //   kInvalidArgument  the record is of another task, or has one text where
  //                     its task has two, or two for one
  absl::Status CheckRecord(const Record& record,
                           const std::string& where) const override;
  // The label; empty for STS-B, which has scores.
  std::string Stratum(const Record& record) const override {
    return record.gold.task->is_regression() ? "" : record.gold.label;
  }
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"pieces", example.dropped_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return GlobalTokensOfTexts(options().input.has_long_tokens);
  }
  // The label, what truncation took, and the tokens.
  std::string Describe(const Example& example) const override;

  // The label with the largest logit, of equals the first; or the score.
  Prediction Decode(Outputs outputs) const override;
  Gold GoldOf(const Example& example) const override { return example.gold; }
  std::optional<Gold> GoldOf(const Record& record) const override {
    return record.has_label ? std::optional<Gold>(record.gold) : std::nullopt;
  }
  // Ids are the numbers of rows.
  Example::IdKind IdKindOf(const Record& /*record*/) const override {
    return Example::IdKind::kNumber;
  }
  // A file of the GLUE server (doc/glue.md 8): "index<TAB>prediction", and a
  // line for each row. Scores are in it with 3 decimals, and from 0 to 5. Rows
  // of several evaluation files may have the same numbers.
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override;
  // {"id": "0", "label": "entailment"}, of STS-B {"id": "0", "score": 3.214}.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // Checks that each row has one prediction, which is a label of the task, or a
  // number if the task is a regression.
  absl::Status CheckFiles(const Answers& answers,
                          const ScoredFiles& files) const override;
  // The metrics of the task (GlueMetrics). MNLI has "accuracy" of all rows, and
  // "accuracy_matched" and "accuracy_mismatched" of those from files with these
  // names. Correlations are those of the scores as the model says them. As a
  // diagnostic "distinct_predictions": with one, correlations are not defined,
  // and are 0.
  Scores Score(const Answers& answers) const override;
  std::string Remark(const Answers& answers) const override {
    const auto answer = [](const auto& of_row) {
      return std::tie(of_row.label, of_row.score);
    };
    return SameAnswersRemark(answers.gold, answer, answers.predictions, answer);
  }
  // "accuracy"; of STS-B "absolute_error", at most that of the whole scale.
  std::pair<std::string, double> RecordScore(
      const Answers& answers) const override;
};

// The layers around the encoder: a class, or a score, of the pooled output
// (PooledClassifier).
Glue::HeadPtr MakeGlueHead(const EtcConfig& model, const GlueOptions& options);

// "Overall" of RealFormer's Tables 3 and 5 (doc/glue.md 9): of each task the
// mean of its metrics, each the median over the seeds of a run, and then the
// mean of tasks, in which the two dev files of MNLI count as two and WNLI does
// not count. `runs` has one for each of the eight tasks. The score "overall"
// comes last, after the nine numbers that it is the mean of.
//   kInvalidArgument  a task has no run or several; a run is of no such task,
//                     or has not all metrics
absl::StatusOr<Metrics> GlueOverall(const std::vector<RunSummary>& runs);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_TASK_H_
