#ifndef ETC_TASKS_TASK_BENCHMARK_TASK_H_
#define ETC_TASKS_TASK_BENCHMARK_TASK_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/field_list.h"
#include "tasks/data/batch.h"
#include "tasks/data/hold_out.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_source.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/judge_files.h"
#include "tasks/task/naming_place.h"
#include "tasks/task/prediction.h"
#include "tasks/task/record_texts.h"
#include "tasks/task/score_files.h"
#include "tasks/task/task.h"
#include "tasks/task/task_entry.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// The error of a training record without an answer; `where` is its place.
absl::Status NoAnswer(absl::string_view where, absl::string_view id);

// LoadSentenceSplitter of the field data.sentences of the configuration
// `source`, which starts each message.
absl::StatusOr<SentenceSplitter> LoadSentencesOfConfig(
    const std::string& sentences, const std::string& source);

// One of the benchmarks, whose data are official files of JSON records. Written
// with types of its own: see tasks/task/benchmark.h.
class RecordTask : public EncoderTask {
 public:
  // Open gives for training on `held_out.patterns` the records that are not
  // held out, and for evaluations without patterns those that are. A fraction
  // is only for tasks with a Reader.
  explicit RecordTask(HoldOutOptions held_out = {})
      : held_out_(std::move(held_out)) {}

  // The examples of one record, given its JSON text. Most records give one
  // example. `where` starts each message.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const = 0;

  // The same of a record that is only predicted for: its answers are not looked
  // at, whatever they are.
  virtual absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const = 0;

  // The same of a record given as the struct of its task.
  //   kInvalidArgument  it is of another type, or MakeExamples refuses it
  virtual absl::StatusOr<Examples> MakeExamplesOf(
      const std::any& record, const std::string& where) const = 0;

  // Checks a record: returns the error that MakeExamples (for predictions
  // MakeExamplesToPredict), or a training on the examples, would find in it, as
  // far as it can be told without a tokenizer.
  virtual absl::StatusOr<CheckedRecord> CheckRecord(const std::string& record,
                                                    const std::string& where,
                                                    RecordUse use) const = 0;

  // The prediction for one record from all of its examples. `logits[i]` are the
  // tensors [1, ...] of examples[i], on the CPU.
  virtual RecordPrediction PredictRecord(
      const Examples& examples,
      absl::Span<const std::vector<torch::Tensor>> logits) const = 0;
  // The prediction file of records, as TaskPredictions::FileContents gives it.
  // Throws c10::Error if a prediction is of another task.
  virtual std::string FileOf(
      absl::Span<const RecordPrediction> predictions) const = 0;

  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const final;

  bool holds_out() const final { return held_out_.fraction > 0; }

  // Returns, of data that are in memory, a line about the held out records, and
  // DescribeRecords; and warnings by WhyLeftOut, each with the number of the
  // training records and the place of the first.
  absl::StatusOr<Notices> DescribeData(const ExampleSource& train,
                                       const ExampleSource& dev) const final;

 protected:
  // Facts and warnings about the data before a run.
  virtual Notices DescribeRecords(
      const std::vector<FileRecord>& /*train*/,
      const std::vector<FileRecord>& /*dev*/) const {
    return {};
  }
  // Returns true if WhyLeftOut is to look at all training records.
  virtual bool TellsLeftOut() const { return false; }
  // The reason why training leaves a record out; empty: none that shows before
  // its examples are made, or the record has a mistake.
  virtual std::string WhyLeftOut(const std::string& /*record*/) const {
    return "";
  }
  // Reads a file that has no JSON records; null: this task's have.
  virtual FileReader Reader() const { return nullptr; }

  // The stratum of a record, by which records are held out (FindHeldOut).
  virtual std::string StratumOf(const std::string& /*record*/,
                                const std::string& /*where*/) const {
    return "";
  }

 private:
  std::vector<std::string> WarningsOfLeftOut(
      const OfficialRecords& train) const;
  // Returns the held out records of the training data, or the others if
  // `held_out` is false.
  absl::StatusOr<std::vector<FileRecord>> Divide(
      std::vector<FileRecord> records, bool held_out) const;

  const HoldOutOptions held_out_;
};

// The options of B for which `rule` is true: "classify.delimiter".
template <typename B>
std::vector<std::string> OptionsWithRule(bool FieldRule::*rule) {
  return FieldsWithRule<typename B::Options>(B().info().name, rule);
}

// The object of the name of B in a configuration, as messages call it.
template <typename B>
std::string OptionsSource(const RunConfig& config) {
  return absl::StrCat(config.source, ": ", B().info().name);
}

// ReadTaskOptions, and checks that lengths, model and vocabulary have what the
// benchmark needs. Without a tokenizer (null) nothing is asked of the
// vocabulary: a task can be described before there is one.
template <typename B>
absl::StatusOr<typename B::Options> ReadCheckedTaskOptions(
    const RunConfig& config, const Tokenizer* tokenizer) {
  const B benchmark;
  const std::string source = OptionsSource<B>(config);
  ETC_ASSIGN_OR_RETURN(
      typename B::Options options,
      ReadTaskOptions<B>(config.task_options, source, InputOptionsOf(config)));
  ETC_RETURN_IF_ERROR(
      CheckTables(config.model, benchmark.Tables(options.input),
                  tokenizer == nullptr ? 0 : tokenizer->vocab_size(), source));
  if (tokenizer != nullptr) {
    const absl::Status status = benchmark.UseVocabulary(*tokenizer, &options);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": ", status.message()));
    }
  }
  // Behind the vocabulary, which has a say in the number of special pieces.
  ETC_RETURN_IF_ERROR(
      CheckLengths(options.input, benchmark.Lengths(options), source));
  return options;
}

// The stratum by which a record is held out; empty for a record with an error,
// which is reported elsewhere.
template <typename B>
std::string StratumOfRecord(const B& benchmark, const std::string& record,
                            const std::string& where) {
  if (!benchmark.info().holds_out_records) {
    return "";
  }
  const auto parsed = benchmark.ParseRecord(record, where);
  return parsed.ok() ? benchmark.Stratum(*parsed) : std::string();
}

// Row `b` of a contiguous float32 tensor [B, ...].
inline LogitRow RowOf(const torch::Tensor& tensor, int64_t b) {
  const torch::Tensor row = tensor[b];
  return LogitRow(row.data_ptr<float>(), static_cast<size_t>(row.numel()));
}

// The predictions of a benchmark: decodes batches, and scores what it decoded
// with the metric that `score` uses for files. If a record is predicted from
// several examples, they are gathered over batches, and the logits of records
// that are not complete are kept.
template <typename B>
class BenchmarkPredictions : public TaskPredictions {
 public:
  // `benchmark` must outlive it.
  explicit BenchmarkPredictions(const B& benchmark) : benchmark_(benchmark) {
    answers_.rules = benchmark.rules();
  }

  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override {
    const BenchmarkBatch<typename B::Example> typed(batch);
    const auto tensors = MapMembers<torch::Tensor>(
        LogitsOfTensors<B::template Logits>(logits),
        [&batch](const torch::Tensor& tensor) {
          TORCH_CHECK(tensor.size(0) == batch.size(), "expected logits of ",
                      batch.size(), " examples, found ", tensor.size(0));
          return tensor.to(torch::kFloat32).contiguous();
        });
    for (int64_t b = 0; b < batch.size(); ++b) {
      Take({.example = typed.examples[static_cast<size_t>(b)],
            .logits =
                MapMembers<LogitRow>(tensors, [b](const torch::Tensor& tensor) {
                  return RowOf(tensor, b);
                })});
    }
  }

  Metrics Score() const override {
    if (answers_.gold.empty()) {
      return {};
    }
    if (num_unanswered() == 0) {
      return MetricsOf(answers_);
    }
    typename B::Answers scored = {.gold = answers_.gold,
                                  .rules = answers_.rules};
    for (size_t i = 0; i < has_answer_.size(); ++i) {
      if (has_answer_[i]) {
        scored.predictions.push_back(answers_.predictions[i]);
      }
    }
    return MetricsOf(scored);
  }

  int64_t num_unanswered() const override {
    return static_cast<int64_t>(answers_.predictions.size() -
                                answers_.gold.size());
  }

  std::string Remark() const override { return benchmark_.Remark(answers_); }

  std::string FileContents() const override {
    return benchmark_.FileContents(answers_);
  }

  std::vector<PredictionFile> MoreFiles() const override {
    return benchmark_.MoreFiles(answers_);
  }

  const typename B::Answers& answers() const { return answers_; }

 private:
  using Output = typename B::Output;
  using Copy = ExampleLogits<typename B::Example, B::template Logits>;

  Metrics MetricsOf(const typename B::Answers& answers) const {
    Metrics metrics = benchmark_.Score(answers).metrics;
    const std::string main = benchmark_.main_metric();
    TORCH_CHECK(FindMetric(metrics, main).has_value(), benchmark_.info().name,
                ": Score should give the main metric \"", main,
                "\", but does not");
    return metrics;
  }

  void Take(const Output& output) {
    const int64_t num_examples = benchmark_.NumExamples(*output.example);
    if (num_examples == 1) {
      Keep(*output.example, {&output, 1});
      return;
    }
    const std::string& id = output.example->record_id;
    std::vector<Copy>& copies = incomplete_[id];
    copies.push_back({.example = output.example,
                      .logits = MapMembers<std::vector<float>>(
                          output.logits, [](LogitRow row) {
                            return std::vector<float>(row.begin(), row.end());
                          })});
    if (static_cast<int64_t>(copies.size()) == num_examples) {
      std::vector<Output> outputs;
      for (const Copy& copy : copies) {
        outputs.push_back({.example = copy.example,
                           .logits = MapMembers<LogitRow>(
                               copy.logits, [](const std::vector<float>& row) {
                                 return LogitRow(row);
                               })});
      }
      Keep(*copies.front().example, outputs);
      incomplete_.erase(id);
    }
  }

  // Keeps the prediction from `outputs`, of all examples of a record;
  // `example` is the first of them.
  void Keep(const typename B::Example& example, typename B::Outputs outputs) {
    answers_.predictions.emplace_back(
        example.record_id, NamingPlace(
                               [&] {
                                 return absl::StrCat(benchmark_.info().name,
                                                     ": record ",
                                                     example.record_id);
                               },
                               [&] { return benchmark_.Decode(outputs); }));
    answers_.truncated.push_back(benchmark_.Truncated(example));
    has_answer_.push_back(example.has_answer);
    if (example.has_answer) {
      answers_.gold.emplace_back(example.record_id, benchmark_.GoldOf(example));
    }
  }

  const B& benchmark_;
  typename B::Answers answers_;
  std::vector<bool> has_answer_;  // by prediction
  // By record id.
  std::map<std::string, std::vector<Copy>> incomplete_;
};

// The layers of a benchmark around the encoder.
template <typename B>
using MakeHeadFunction = typename B::HeadPtr (*)(
    const EtcConfig& model, const typename B::Options& options);

// The Task of a benchmark: record -> examples -> predictions -> scores.
template <typename B>
class BenchmarkTask : public RecordTask {
 public:
  BenchmarkTask(typename B::Options options, EtcConfig model,
                std::shared_ptr<const Tokenizer> tokenizer,
                MakeHeadFunction<B> make_head, HoldOutOptions held_out = {})
      : RecordTask(std::move(held_out)),
        tokenizer_(std::move(tokenizer)),
        benchmark_(std::move(options), tokenizer_.get()),
        model_(std::move(model)),
        make_head_(make_head) {}

  absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const override {
    return Named(where, [&] {
      return ExamplesOfRead(benchmark_.ParseRecord(record, where), where);
    });
  }

  absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const override {
    return Named(where, [&] {
      return ExamplesOfRead(benchmark_.ParseRecordWithoutAnswers(record, where),
                            where);
    });
  }

  absl::StatusOr<Examples> MakeExamplesOf(
      const std::any& record, const std::string& where) const override {
    const auto* given = std::any_cast<typename B::Record>(&record);
    if (given == nullptr) {
      return InvalidArgument(where, " should be a record of ",
                             benchmark_.info().name,
                             ", but is a struct of another type");
    }
    if (!HasUtf8Texts(*given)) {
      return InvalidArgument(where, " should be UTF-8, but is not");
    }
    typename B::Record typed = *given;
    if (typed.id.empty() &&
        benchmark_.IdKindOf(typed) == Example::IdKind::kNumber) {
      typed.id = NumberOfPlace(where);
    }
    return Named(where, [&] { return ExamplesOf(std::move(typed), where); });
  }

  RecordPrediction PredictRecord(
      const Examples& examples,
      absl::Span<const std::vector<torch::Tensor>> logits) const override {
    BenchmarkPredictions<B> predictions(benchmark_);
    for (size_t i = 0; i < examples.size(); ++i) {
      Batch one;
      one.examples = {examples[i]};
      predictions.Add(one, logits[i]);
    }
    const auto& answers = predictions.answers();
    TORCH_CHECK(answers.predictions.size() == 1, "expected all ",
                "examples of one record, but they gave ",
                answers.predictions.size(), " predictions");
    const auto& [id, value] = answers.predictions.front();
    RecordPrediction prediction = {.id = id,
                                   .json = benchmark_.PredictionJson(id, value),
                                   .truncated = answers.truncated.front(),
                                   .value = value};
    AddTruncated(prediction.truncated, &prediction.json);
    return prediction;
  }

  std::string FileOf(
      absl::Span<const RecordPrediction> predictions) const override {
    typename B::Answers answers = {.rules = benchmark_.rules()};
    for (const RecordPrediction& prediction : predictions) {
      const auto* value = prediction.As<typename B::Prediction>();
      TORCH_CHECK(value != nullptr, "the prediction for ", prediction.id,
                  " is not one of ", benchmark_.info().name);
      answers.predictions.emplace_back(prediction.id, *value);
      answers.truncated.push_back(prediction.truncated);
    }
    return benchmark_.FileContents(answers);
  }

  absl::StatusOr<CheckedRecord> CheckRecord(const std::string& record,
                                            const std::string& where,
                                            RecordUse use) const override {
    return Named(where, [&] { return Checked(record, where, use); });
  }

  bool epochs_count_records() const override {
    return benchmark_.info().epochs_count_records;
  }

  std::vector<std::string> Warnings() const override {
    return benchmark_.Warnings();
  }

  int32_t unknown_id() const override {
    return tokenizer_ == nullptr ? -1 : FindSpecialIds(*tokenizer_).unknown;
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return make_head_(model_, benchmark_.options());
  }

  std::vector<std::string> OutputSettings() const override {
    return OptionsWithRule<B>(&FieldRule::decides_outputs);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<BenchmarkPredictions<B>>(benchmark_);
  }

  std::string main_metric() const override { return benchmark_.main_metric(); }

  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return benchmark_.GlobalTokenNames();
  }

  std::string Describe(const Example& example) const override {
    return benchmark_.Describe(ExampleAs<typename B::Example>(example));
  }

 protected:
  FileReader Reader() const override {
    if (!benchmark_.info().has_own_files) {
      return nullptr;
    }
    return [this](const std::string& path, const RecordLimits& limits) {
      return benchmark_.ReadFile(path, limits);
    };
  }

  Notices DescribeRecords(const std::vector<FileRecord>& train,
                          const std::vector<FileRecord>& dev) const override {
    return benchmark_.DescribeRecords(train, dev);
  }

  bool TellsLeftOut() const override {
    return benchmark_.info().tells_left_out;
  }

  std::string WhyLeftOut(const std::string& record) const override {
    const auto parsed = benchmark_.ParseRecord(record, /*where=*/"");
    return parsed.ok() && benchmark_.TrainingError(*parsed).empty()
               ? benchmark_.WhyLeftOut(*parsed)
               : "";
  }

  std::string StratumOf(const std::string& record,
                        const std::string& where) const override {
    return StratumOfRecord(benchmark_, record, where);
  }

 private:
  // Runs `action` on the record at `where`, which exceptions then name.
  template <typename Action>
  std::invoke_result_t<Action> Named(const std::string& where,
                                     const Action& action) const {
    return NamingPlace(
        [&] { return absl::StrCat(where, ": ", benchmark_.info().name); },
        action);
  }

  absl::StatusOr<CheckedRecord> Checked(const std::string& record,
                                        const std::string& where,
                                        RecordUse use) const {
    ETC_ASSIGN_OR_RETURN(
        typename B::Record parsed,
        use == RecordUse::kPrediction
            ? benchmark_.ParseRecordWithoutAnswers(record, where)
            : benchmark_.ParseRecord(record, where));
    ETC_RETURN_IF_ERROR(benchmark_.CheckRecord(parsed, where));
    if (use == RecordUse::kTraining) {
      const std::string error = benchmark_.TrainingError(parsed);
      if (!error.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(where, error));
      }
    }
    CheckedRecord checked = {.id_kind = benchmark_.IdKindOf(parsed),
                             .has_answer = benchmark_.HasGold(parsed)};
    if (use == RecordUse::kTraining && !checked.has_answer) {
      return NoAnswer(where, parsed.id);
    }
    checked.id = std::move(parsed.id);
    return checked;
  }

  // The examples of a record of a file, which have an answer if it has gold.
  // Throws c10::Error if MakeExamples says otherwise.
  absl::StatusOr<Examples> ExamplesOfRead(
      absl::StatusOr<typename B::Record> record,
      const std::string& where) const {
    ETC_RETURN_IF_ERROR(record.status());
    const bool has_gold = benchmark_.HasGold(*record);
    ETC_ASSIGN_OR_RETURN(Examples examples,
                         ExamplesOf(*std::move(record), where));
    for (const auto& example : examples) {
      TORCH_CHECK(example->has_answer == has_gold,
                  "has_answer of an example should be ",
                  has_gold ? "true" : "false",
                  ", as GoldOf says of the record, but is not");
    }
    return examples;
  }

  // Throws c10::Error if NumExamples is not the number of the examples, or one
  // is null.
  absl::StatusOr<Examples> ExamplesOf(typename B::Record record,
                                      const std::string& where) const {
    const auto id_kind = benchmark_.IdKindOf(record);
    ETC_ASSIGN_OR_RETURN(const auto examples,
                         benchmark_.MakeExamples(std::move(record), where));
    for (const auto& example : examples) {
      TORCH_CHECK(example != nullptr, "MakeExamples gives a null example");
      const int64_t count = benchmark_.NumExamples(*example);
      TORCH_CHECK(count == static_cast<int64_t>(examples.size()),
                  "NumExamples should be ", examples.size(),
                  ", as many as MakeExamples gives, but is ", count);
      example->id_kind = id_kind;
      for (const TruncatedPart& part : benchmark_.Truncated(*example)) {
        example->is_truncated = true;
        if (part.count > example->lost_text.count) {
          example->lost_text = {.count = part.count, .unit = part.unit};
        }
      }
    }
    return Examples(examples.begin(), examples.end());
  }

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const B benchmark_;
  const EtcConfig model_;
  const MakeHeadFunction<B> make_head_;
};

// The task of benchmark B as a configuration has it.
//   kInvalidArgument  what ReadCheckedTaskOptions says, or data.sentences names
//                     nothing
template <typename B>
absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    MakeHeadFunction<B> make_head, const RunConfig& config,
    std::shared_ptr<const Tokenizer> tokenizer) {
  SentenceSplitter split_sentences = SplitSentences;
  if (B().info().splits_sentences) {
    ETC_ASSIGN_OR_RETURN(
        split_sentences,
        LoadSentencesOfConfig(config.data.sentences, config.source));
  }
  ETC_ASSIGN_OR_RETURN(typename B::Options options,
                       ReadCheckedTaskOptions<B>(config, tokenizer.get()));
  options.input.split_sentences = std::move(split_sentences);
  return std::make_unique<BenchmarkTask<B>>(std::move(options), config.model,
                                            std::move(tokenizer), make_head,
                                            HoldOutOptionsOf(config.data));
}

// Finds out which records of data.train are held out, where some are, and notes
// it in data.dev_records, which checkpoints keep.
//   kFailedPrecondition  the configuration says others
template <typename B>
absl::Status NoteHeldOut(const B& benchmark, RunConfig* config) {
  const HoldOutOptions hold_out = HoldOutOptionsOf(config->data);
  if (hold_out.fraction == 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      benchmark.ReadFiles(hold_out.patterns, RecordLimitsOf(config->data)));
  ETC_ASSIGN_OR_RETURN(
      const std::vector<bool> is_held_out,
      FindHeldOut(
          records,
          [&benchmark](const std::string& record, const std::string& where) {
            return StratumOfRecord(benchmark, record, where);
          },
          hold_out));
  config->data.dev_records = DescribeHeldOut(records, is_held_out);
  config->json["data"]["dev_records"] = config->data.dev_records;
  return absl::OkStatus();
}

// Completes a configuration for training by what the data say. A mistake in the
// options is found here, before a vocabulary is loaded.
template <typename B>
absl::Status CompleteConfig(RunConfig* config) {
  ETC_ASSIGN_OR_RETURN(
      typename B::Options options,
      ReadTaskOptions<B>(config->task_options, OptionsSource<B>(*config)));
  const B benchmark(std::move(options));
  nlohmann::json completed = config->task_options;
  ETC_RETURN_IF_ERROR(benchmark.CompleteOptions(config->data, &completed));
  if (completed != config->task_options) {
    config->task_options = completed;
    config->json[benchmark.info().name] = std::move(completed);
  }
  return benchmark.info().holds_out_records ? NoteHeldOut(benchmark, config)
                                            : absl::OkStatus();
}

// The benchmark that reads gold and predictions; arguments and errors as of
// TaskEntry::score.
template <typename B>
absl::StatusOr<std::shared_ptr<const B>> BenchmarkOfFiles(
    const nlohmann::json& json, const std::string& source,
    const GoldReading& reading) {
  const BenchmarkInfo info = B().info();
  typename B::Options options;
  if (!json.is_null()) {
    ETC_ASSIGN_OR_RETURN(
        options,
        ReadTaskOptions<B>(json, absl::StrCat(source, ": ", info.name)));
  }
  if (info.has_gold_by_sentence) {
    ETC_ASSIGN_OR_RETURN(options.input.split_sentences,
                         LoadSentencesOfConfig(reading.sentences, source));
  }
  return std::make_shared<const B>(std::move(options));
}

template <typename B>
absl::StatusOr<TaskScores> ScoreFilesOfTask(const ScoredFiles& files,
                                            ScoringRules rules,
                                            const nlohmann::json& json,
                                            const std::string& source,
                                            const GoldReading& reading) {
  ETC_ASSIGN_OR_RETURN(const std::shared_ptr<const B> benchmark,
                       BenchmarkOfFiles<B>(json, source, reading));
  TaskScores scores = {.main_metric = benchmark->main_metric()};
  ETC_ASSIGN_OR_RETURN(scores.metrics,
                       ScoreFiles(*benchmark, files, rules, reading.limits,
                                  &scores.unanswered, &scores.remark));
  return scores;
}

template <typename B>
absl::StatusOr<JudgedRecords> JudgeFilesOfTask(const ScoredFiles& files,
                                               const nlohmann::json& json,
                                               const std::string& source,
                                               const GoldReading& reading) {
  ETC_ASSIGN_OR_RETURN(const std::shared_ptr<const B> benchmark,
                       BenchmarkOfFiles<B>(json, source, reading));
  std::vector<std::string> gold = {files.gold};
  gold.insert(gold.end(), reading.more_files.begin(), reading.more_files.end());
  return JudgeFiles<B>(
      benchmark, {.gold = std::move(gold), .predictions = files.predictions},
      reading.limits);
}

// The entry of benchmark B in the registry, with the function that makes its
// head.
template <typename B>
TaskEntry BenchmarkEntry(MakeHeadFunction<B> make_head) {
  const BenchmarkInfo info = B().info();
  return {.name = info.name,
          .description = info.description,
          .fields = DescribeTable<typename B::Options>(info.name),
          .reading_options = OptionsWithRule<B>(&FieldRule::reads_files),
          .decoding_options = OptionsWithRule<B>(&FieldRule::decodes),
          .make =
              [make_head](const RunConfig& config,
                          std::shared_ptr<const Tokenizer> tokenizer) {
                return MakeTask<B>(make_head, config, std::move(tokenizer));
              },
          .complete = CompleteConfig<B>,
          .splits_sentences = info.splits_sentences,
          .holds_out_records = info.holds_out_records,
          .serves_bert = info.serves_bert,
          .make_head = [make_head](const RunConfig& config)
              -> absl::StatusOr<std::shared_ptr<TaskHead>> {
            ETC_ASSIGN_OR_RETURN(
                const typename B::Options options,
                ReadCheckedTaskOptions<B>(config, /*tokenizer=*/nullptr));
            return make_head(config.model, options);
          },
          .score = ScoreFilesOfTask<B>,
          .judge = JudgeFilesOfTask<B>};
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_BENCHMARK_TASK_H_
