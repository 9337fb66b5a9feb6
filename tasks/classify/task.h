#ifndef ETC_TASKS_CLASSIFY_TASK_H_
#define ETC_TASKS_CLASSIFY_TASK_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/classify/example.h"
#include "tasks/classify/metric.h"
#include "tasks/classify/options.h"
#include "tasks/classify/prediction.h"
#include "tasks/config/config.h"
#include "tasks/data/record_source.h"
#include "tasks/inputs/text_input.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct ClassifyLogits {
  T outputs;  // [C], in the order of the labels; [1] of a number

  static constexpr auto kMembers = std::make_tuple(&ClassifyLogits::outputs);
};

// Labels or a number for documents of any origin, from tables or JSON.
class Classify final
    : public Benchmark<ClassifyRecord, ClassifyExample, ClassifyLogits,
                       ClassifyOptions, ClassifyAnswer, ClassifyPrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override;
  std::string main_metric() const override;

  void CheckOptions(JsonObjectReader& reader, Options* options) const override;
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
  // Adds to `json`, which options() were read from, what it does not say and
  // the training data do: the labels, sorted; of documents that are not held
  // out, weights n / (C n_c) of the labels for "balanced", with n_c of n
  // documents having label c of C, or mean and standard deviation of numbers;
  // text_b, "text_b" if all records have that field and "" if none is a pair.
  // Reads the files of data.train once, and keeps nothing of them.
  //   kInvalidArgument  a mistake in a record (none if `data.on_bad_record` is
  //                     "skip"); fewer than two labels; more than half as many
  //                     labels as documents, which is most likely another
  //                     column
  absl::Status CompleteOptions(const DataConfig& data,
                               nlohmann::json* json) const override;

  // Reads a file by ReadClassifyFile, without regard to its use.
  absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const RecordLimits& limits) const override;
  // Reads the fields of a record. Labels may be numbers and booleans as well,
  // and are then spelt as in JSON; so may ids.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override {
    return {options().label};
  }
  //   kInvalidArgument  a label that is none of the options' labels
  absl::Status CheckRecord(const Record& record,
                           const std::string& where) const override;
  // The first label.
  std::string Stratum(const Record& record) const override;
  // Lines for people about the data of a run: of each set the number of
  // documents, and its labels with theirs, or the range of its numbers;
  // warnings: labels of the training data that differ by case or white space
  // only, labels without training documents, and documents of `dev` whose text
  // is that of a training document. Records with mistakes are left out.
  Notices DescribeRecords(const std::vector<FileRecord>& train,
                          const std::vector<FileRecord>& dev) const override;
  //   kInvalidArgument  what CheckRecord says
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"pieces", example.dropped_pieces}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return GlobalTokensOfTexts(options().input.has_long_tokens);
  }
  // The answer, what did not fit, and the tokens: of ETC a line for each global
  // token with those that belong to it, of BERT a line for each.
  std::string Describe(const Example& example) const override;

  Prediction Decode(Outputs outputs) const override {
    return DecodeClassify(outputs.front().logits.outputs, options());
  }
  Gold GoldOf(const Example& example) const override { return example.answer; }
  std::optional<Gold> GoldOf(const Record& record) const override {
    return record.answer;
  }
  Example::IdKind IdKindOf(const Record& record) const override {
    return record.has_id ? Example::IdKind::kUnique : Example::IdKind::kNumber;
  }
  // Reads and, as FileContents, writes a line for each document:
  //
  //   {"id": "7", "label": "food", "probabilities": {"food": 0.93, "music":
  //   0.07}}
  //   {"id": "7", "labels": ["food", "music"], "probabilities": {...}}
  //   {"id": "7", "value": 3.25}
  //
  // Reading does without the probabilities. Labels that have them are chosen
  // anew by the threshold that options() name.
  //   kInvalidArgument  a line that is none of these, by its number
  PredictionsOr ReadPredictions(const std::string& path) const override;
  std::string FileContents(const Answers& answers) const override;
  // A line of the file.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // Checks that predictions are of the type of the gold.
  absl::Status CheckFiles(const Answers& answers,
                          const ScoredFiles& files) const override;
  // Predictions of several labels with probabilities, by the threshold.
  bool DecodesAgain(const Prediction& prediction,
                    absl::string_view option) const override {
    return option == "threshold" && !prediction.probabilities.empty();
  }
  Scores Score(const Answers& answers) const override {
    return ScoreClassify(answers.gold, answers.predictions, options().type);
  }
  std::string Remark(const Answers& answers) const override {
    return ClassifyRemark(answers.gold, answers.predictions, options().type);
  }
  // The main metric, where there are no labels to find and none is predicted 1;
  // of numbers "mae".
  std::pair<std::string, double> RecordScore(
      const Answers& answers) const override;
};

// PooledClassifier with the dropout of the encoder, and as the loss of a
// document
//
//   one      its class weight times the cross entropy
//   several  the mean binary cross entropy over labels
//   number   the square of what (number - mean) / deviation differs by
//
// While the labels are not known it has two outputs, enough to be described.
Classify::HeadPtr MakeClassifyHead(const EtcConfig& model,
                                   const ClassifyOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_TASK_H_
