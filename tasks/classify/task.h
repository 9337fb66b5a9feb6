#ifndef ETC_TASKS_CLASSIFY_TASK_H_
#define ETC_TASKS_CLASSIFY_TASK_H_

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/classify/data_summary.h"
#include "tasks/classify/example.h"
#include "tasks/classify/metric.h"
#include "tasks/classify/options.h"
#include "tasks/classify/prediction.h"
#include "tasks/classify/records.h"
#include "tasks/task/benchmark.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct ClassifyLogits {
  T outputs;  // [C], in the order of the labels; [1] of a number

  static constexpr auto kMembers = std::make_tuple(&ClassifyLogits::outputs);
};

// Labels or a number for documents of any origin, from tables or JSON.
struct Classify
    : TaskTypes<ClassifyRecord, ClassifyExample, ClassifyLogits,
                ClassifyOptions, ClassifyAnswer, ClassifyPrediction> {
  static constexpr char kName[] = "classify";
  static constexpr char kDescription[] =
      "your own documents, CSV, TSV or JSON: say labels or a number of each";
  static constexpr char kMainMetric[] = "accuracy";
  static constexpr char kPredictionUnit[] = "line";
  static TableSizes Tables(const InputOptions& input) {
    return TablesOfTexts(input);
  }
  static NeededLengths Lengths(const Options& options) {
    return LengthsOfTexts(options.input);
  }
  static std::string MainMetric(const Options& options);

  static void ReadOptions(JsonObjectReader& reader, Options* options) {
    ReadClassifyOptions(reader, options);
  }
  static absl::Status CompleteOptions(const Options& options,
                                      const DataConfig& data,
                                      nlohmann::json* json) {
    return CompleteClassifyOptions(options, data, json);
  }
  // FindTextMarks.
  static absl::Status UseVocabulary(const Tokenizer& tokenizer,
                                    Options* options) {
    return FindTextMarks(tokenizer, &options->marks);
  }

  static absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const Options& options,
      const RecordLimits& limits) {
    return ReadClassifyFile(path, options, ClassifyFileUse::kAny, limits);
  }
  static void ReadRecord(JsonObjectReader& reader, const Options& options,
                         Record* record) {
    ReadClassifyRecord(reader, options, record);
  }
  static std::vector<std::string> AnswerFields(const Options& options) {
    return {options.label};
  }
  //   kInvalidArgument  a label that is none of `options.labels`
  static absl::Status CheckRecord(const Record& record, const Options& options,
                                  const std::string& where);
  // The labels.
  static std::string Stratum(const Record& record);
  // DescribeClassifyData.
  static std::vector<std::string> DescribeRecords(
      const std::vector<FileRecord>& train, const std::vector<FileRecord>& dev,
      const Options& options) {
    return DescribeClassifyData(train, dev, options);
  }
  //   kInvalidArgument  what CheckRecord says
  static ExampleOr<Example> MakeExamples(const Record& record,
                                         const Context& context);
  // The answer, what did not fit, and the tokens: of ETC a line for each global
  // token with those that belong to it, of BERT a line for each.
  static std::string Describe(const Example& example, const Context& context);

  // PooledClassifier with the dropout of the encoder, and as the loss of a
  // document
  //
  //   one      its class weight times the cross entropy
  //   several  the mean binary cross entropy over labels
  //   number   the square of what (number - mean) / deviation differs by
  //
  // While the labels are not known it has two outputs, enough to be described.
  static HeadPtr MakeHead(const EtcConfig& model, const Options& options);
  static Prediction Decode(const Output& output, const Context& context) {
    return DecodeClassify(output.logits.outputs, context.options);
  }

  static Gold GoldOf(const Example& example) { return example.answer; }
  static std::optional<Gold> GoldOf(const Record& record) {
    return record.answer;
  }
  static PredictionsOr ReadPredictions(const std::string& path) {
    return ReadClassifyPredictions(path);
  }
  static std::string FileContents(const Answers& answers,
                                  const Options& /*options*/) {
    return ClassifyPredictionsToJson(answers.predictions);
  }
  // Checks that predictions are of the type of the gold.
  static absl::Status CheckFiles(const Answers& answers,
                                 const ScoredFiles& files);
  static Scores Score(const Answers& answers, const Options& options) {
    return ScoreClassify(answers.gold, answers.predictions, options.type);
  }
};
static_assert(TaskDefinition<Classify>);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_TASK_H_
