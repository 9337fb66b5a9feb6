#ifndef ETC_TASKS_GLUE_TASK_H_
#define ETC_TASKS_GLUE_TASK_H_

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/data/record_source.h"
#include "tasks/glue/example.h"
#include "tasks/glue/overall.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/task/benchmark.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct GlueLogits {
  // [C], in the order of the option `labels`; of STS-B [1], the score.
  T classes;

  static constexpr auto kMembers = std::make_tuple(&GlueLogits::classes);
};

// A prediction for a row, by the model or from a file.
struct GluePrediction {
  // From a file: the text, whatever the task.
  std::string label;
  // STS-B: as the model says, without bounds. NaN: the file has no number.
  double score = 0;

  bool operator==(const GluePrediction&) const = default;
};

// One of the tasks of GLUE (doc/glue.md), which the option `name` says, on BERT
// or ETC.
struct Glue : TaskTypes<GlueRecord, GlueExample, GlueLogits, GlueOptions,
                        GlueGold, GluePrediction> {
  static constexpr char kName[] = "glue";
  static constexpr char kDescription[] =
      "GLUE: the class or the score of a text or two; the configuration says "
      "which task";
  static constexpr char kPredictionUnit[] = "line";
  static TableSizes Tables(const InputOptions& input) {
    return TablesOfTexts(input);
  }
  static NeededLengths Lengths(const Options& options) {
    return LengthsOfTexts(options.input);
  }
  // Required: `name`.
  static void ReadOptions(JsonObjectReader& reader, Options* options);
  // Looks up the marks around texts (FindTextMarks).
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options) {
    return FindTextMarks(tokenizer, &options->marks);
  }

  // The rows of an official file.
  //   kInvalidArgument  `options` say no task, and what ReadGlueFile says
  static absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const Options& options,
      const RecordLimits& limits);
  static void ReadRecord(JsonObjectReader& reader, Record* record);
  static std::vector<std::string> AnswerFields(const Options& /*options*/) {
    return {"label"};
  }
  // The label; empty for STS-B, which has scores.
  static std::string Stratum(const Record& record) {
    return record.gold.task->is_regression() ? "" : record.gold.label;
  }
  //   kInvalidArgument  the record is of another task
  static absl::Status CheckRecord(const Record& record, const Options& options,
                                  const std::string& where);
  static ExampleOr<Example> MakeExamples(Record record, const Context& context);
  // The label, losses by truncation, and the tokens.
  static std::string Describe(const Example& example, const Context& context);
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);
  // The label with the largest logit, of equals the first; or the score.
  static Prediction Decode(const Output& output, const Context& context);

  static Gold GoldOf(const Example& example) { return example.gold; }
  static std::optional<Gold> GoldOf(const Record& record) {
    return record.has_label ? std::optional<Gold>(record.gold) : std::nullopt;
  }
  // A file of the GLUE server (doc/glue.md 8): "index<TAB>prediction", and a
  // line for each row, each row once. Scores are in it with 3 decimals, and
  // from 0 to 5.
  static PredictionsOr ReadPredictions(const std::string& path);
  static std::string FileContents(const Answers& answers,
                                  const Options& options);
  // Checks that each prediction is a label of the task, or a number if the task
  // is a regression.
  static absl::Status CheckFiles(const Answers& answers,
                                 const ScoredFiles& files);

  static std::string MainMetric(const Options& options) {
    return options.task->main_metric();
  }
  // The metrics of the task (GlueMetrics). MNLI has "accuracy" of all rows, and
  // "accuracy_matched" and "accuracy_mismatched" of those from files with these
  // names. Correlations are those of the scores as the model says them. As a
  // diagnostic "distinct_predictions": with one, correlations are not defined,
  // and are 0.
  static Scores Score(const Answers& answers, const Options& options);
  // Overall score of runs on all of its tasks.
  static absl::StatusOr<Metrics> Overall(const std::vector<RunSummary>& runs) {
    return GlueOverall(runs);
  }
};
static_assert(TaskDefinition<Glue>);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_TASK_H_
