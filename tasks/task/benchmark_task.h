#ifndef ETC_TASKS_TASK_BENCHMARK_TASK_H_
#define ETC_TASKS_TASK_BENCHMARK_TASK_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/data/hold_out.h"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/official_json.h"
#include "tasks/task/score_files.h"
#include "tasks/task/scoring.h"
#include "tasks/task/task.h"
#include "tasks/task/task_entry.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// That a record lacks the answer that training needs; `where` is its place.
absl::Status NoAnswer(absl::string_view where, absl::string_view id);

// One of the benchmarks, whose data are official files of JSON records. Written
// with types of its own: see tasks/task/benchmark.h.
class RecordTask : public Task {
 public:
  // The examples of one record, given its JSON text. Most records give one
  // example. `where` starts each message.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const = 0;

  // The same of a record that is only predicted for: its answers are not looked
  // at, whatever they are.
  virtual absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const {
    return MakeExamples(record, where);
  }

  // Returns the error that MakeExamples, or a training on the examples, would
  // find in a record, as far as it can be told without a tokenizer.
  virtual absl::Status CheckRecord(const std::string& /*record*/,
                                   const std::string& /*where*/,
                                   RecordUse /*use*/) const {
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const final;

  // From now on, Open gives for training on `options.patterns` the records that
  // are not held out, and for evaluations without patterns those that are. Only
  // for tasks with a Reader.
  void HoldOut(HoldOutOptions options) { held_out_ = std::move(options); }
  bool holds_out() const final { return held_out_.fraction > 0; }

  // A line about the held out records, and DescribeRecords, of data that are in
  // memory.
  absl::StatusOr<std::vector<std::string>> DescribeData(
      const ExampleSource& train, const ExampleSource& dev) const final;

 protected:
  // Lines about the data before a run.
  virtual std::vector<std::string> DescribeRecords(
      const std::vector<FileRecord>& /*train*/,
      const std::vector<FileRecord>& /*dev*/) const {
    return {};
  }
  // Reads a file that has no JSON records; null: this task's have.
  virtual FileReader Reader() const { return nullptr; }

  // The stratum of a record, by which records are held out (ChooseHeldOut).
  virtual std::string StratumOf(const std::string& /*record*/,
                                const std::string& /*where*/) const {
    return "";
  }

 private:
  // Returns the held out records of the training data, or the others if
  // `held_out` is false.
  absl::StatusOr<std::vector<FileRecord>> Divide(
      std::vector<FileRecord> records, bool held_out) const;

  HoldOutOptions held_out_;
};

// The options of task D from the object of its name, with what `settings` adds.
// Absent fields keep their default. `source` names the object and starts each
// message ("finetune.json: wikihop").
//   kInvalidArgument  a field that does not exist, a wrong type or value
template <TaskDefinition D>
absl::StatusOr<typename D::Options> ReadTaskOptions(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings = {}) {
  typename D::Options options;
  options.input = InputOptionsOf(settings);
  if constexpr (requires { options.split_sentences; }) {
    options.split_sentences = settings.split_sentences;
  }
  JsonObjectReader reader(json, source);
  if constexpr (requires { options.official_compatibility; }) {
    reader.Optional("official_compatibility", &options.official_compatibility);
  }
  D::ReadOptions(reader, &options);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return options;
}

// ReadTaskOptions, and whether lengths, model and vocabulary have what the task
// needs. Without a tokenizer (null) nothing is asked of the vocabulary: a task
// can be described before there is one.
template <TaskDefinition D>
absl::StatusOr<typename D::Options> ReadCheckedTaskOptions(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings, const Tokenizer* tokenizer) {
  ETC_ASSIGN_OR_RETURN(typename D::Options options,
                       ReadTaskOptions<D>(json, source, settings));
  if constexpr (requires { D::Lengths(options); }) {
    ETC_RETURN_IF_ERROR(
        CheckLengths(options.input, D::Lengths(options), source));
  }
  ETC_RETURN_IF_ERROR(
      CheckTables(settings.model, TablesOf<D>(options.input),
                  tokenizer == nullptr ? 0 : tokenizer->vocab_size(), source));
  if constexpr (requires { D::UseVocabulary(*tokenizer, &options); }) {
    const absl::Status status = tokenizer == nullptr
                                    ? absl::OkStatus()
                                    : D::UseVocabulary(*tokenizer, &options);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": ", status.message()));
    }
  }
  return options;
}

// True if data.dev_fraction can hold out records of D.
template <TaskDefinition D>
constexpr bool HoldsOutRecords() {
  return requires(const typename D::Record& record) { D::Stratum(record); };
}

// Returns the stratum by which a record is held out; empty for a record with an
// error, which is reported elsewhere.
template <TaskDefinition D>
std::string StratumOfRecord(const std::string& record, const std::string& where,
                            const typename D::Options& options) {
  if constexpr (HoldsOutRecords<D>()) {
    const absl::StatusOr<typename D::Record> parsed =
        ParseRecord<D>(record, where, options);
    return parsed.ok() ? D::Stratum(*parsed) : std::string();
  } else {
    return "";
  }
}

// Finds out which records of data.train are held out, where some are, and notes
// it in data.dev_records, which checkpoints keep.
//   kFailedPrecondition  the configuration says others
template <TaskDefinition D>
absl::Status NoteHeldOut(const typename D::Options& options,
                         FinetuneConfig* config) {
  const HoldOutOptions hold_out = HoldOutOptionsOf(config->data);
  if (hold_out.fraction == 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      ReadAllFiles(
          hold_out.patterns,
          [&](const std::string& path, const RecordLimits& limits) {
            return D::ReadFile(path, options, limits);
          },
          /*listener=*/nullptr, RecordLimitsOf(config->data)));
  std::vector<std::string> strata;
  strata.reserve(records.size());
  for (const FileRecord& record : records) {
    strata.push_back(StratumOfRecord<D>(record.json, record.where, options));
  }
  const std::vector<bool> is_held_out = ChooseHeldOut(strata, hold_out);
  ETC_RETURN_IF_ERROR(CheckHeldOut(records, is_held_out, hold_out));
  config->data.dev_records = DescribeHeldOut(records, is_held_out);
  config->json["data"]["dev_records"] = config->data.dev_records;
  return absl::OkStatus();
}

// Returns the function that completes a configuration for training: it calls
// D::CompleteOptions, if there is one, and notes the held out records. Null if
// there is nothing to complete.
template <TaskDefinition D>
std::function<absl::Status(FinetuneConfig*)> CompletionOf() {
  constexpr bool kCompletes =
      requires(FinetuneConfig config, typename D::Options options) {
    D::CompleteOptions(options, config.data, &config.task_options);
  };
  if constexpr (kCompletes || HoldsOutRecords<D>()) {
    return [](FinetuneConfig* config) -> absl::Status {
      ETC_ASSIGN_OR_RETURN(
          const typename D::Options options,
          ReadTaskOptions<D>(config->task_options,
                             absl::StrCat(config->source, ": ", D::kName)));
      if constexpr (kCompletes) {
        ETC_RETURN_IF_ERROR(
            D::CompleteOptions(options, config->data, &config->task_options));
        config->json[D::kName] = config->task_options;
      }
      if constexpr (HoldsOutRecords<D>()) {
        ETC_RETURN_IF_ERROR(NoteHeldOut<D>(options, config));
      }
      return absl::OkStatus();
    };
  } else {
    return nullptr;
  }
}

// Row `b` of a contiguous float32 tensor [B, ...].
inline LogitRow RowOf(const torch::Tensor& tensor, int64_t b) {
  const torch::Tensor row = tensor[b];
  return LogitRow(row.data_ptr<float>(), static_cast<size_t>(row.numel()));
}

// The predictions of task D: decodes batches, and scores what it decoded with
// the metric that `score` uses for files. If a record is predicted from several
// examples, they are gathered over batches, and the logits of records that are
// not complete are kept.
template <TaskDefinition D>
class TypedPredictions : public TaskPredictions {
 public:
  TypedPredictions(typename D::Options options,
                   std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)), tokenizer_(std::move(tokenizer)) {
    if constexpr (requires { options_.official_compatibility; }) {
      if (options_.official_compatibility) {
        answers_.rules = ScoringRules::kOfficial;
      }
    }
  }

  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override {
    const TypedBatch<typename D::Example> typed(batch);
    const auto tensors = MapMembers<torch::Tensor>(
        LogitsOfTensors<D::template Logits>(logits),
        [&batch](const torch::Tensor& tensor) {
          TORCH_CHECK(tensor.size(0) == batch.size(), "expected logits of ",
                      batch.size(), " examples, found ", tensor.size(0));
          return tensor.to(torch::kFloat32).contiguous();
        });
    for (int64_t b = 0; b < batch.size(); ++b) {
      Take(typed.examples[static_cast<size_t>(b)],
           MapMembers<LogitRow>(tensors, [b](const torch::Tensor& tensor) {
             return RowOf(tensor, b);
           }));
    }
  }

  Metrics Score() const override {
    if (answers_.gold.empty()) {
      return {};
    }
    if (num_unanswered() == 0) {
      return ScoreOf<D>(answers_, options_).metrics;
    }
    typename D::Answers scored = {.gold = answers_.gold,
                                  .rules = answers_.rules};
    for (size_t i = 0; i < has_answer_.size(); ++i) {
      if (has_answer_[i]) {
        scored.predictions.push_back(answers_.predictions[i]);
      }
    }
    return ScoreOf<D>(scored, options_).metrics;
  }

  int64_t num_unanswered() const override {
    return static_cast<int64_t>(answers_.predictions.size() -
                                answers_.gold.size());
  }

  std::string FileContents() const override {
    return FileContentsOf<D>(answers_, options_);
  }

  std::vector<PredictionFile> MoreFiles() const override {
    if constexpr (requires { D::MoreFiles(answers_, options_); }) {
      return D::MoreFiles(answers_, options_);
    } else {
      return {};
    }
  }

 private:
  using ExamplePtr = std::shared_ptr<const typename D::Example>;
  using Row = typename D::template Logits<LogitRow>;
  using Copy = std::remove_const_t<typename D::Outputs::element_type>;

  typename D::Context Context() const {
    return {.options = options_, .tokenizer = *tokenizer_};
  }

  void Take(const ExamplePtr& example,
            const Row& logits) requires DecodesOne<D> {
    Keep(*example,
         D::Decode({.example = example, .logits = logits}, Context()));
  }

  void Take(const ExamplePtr& example,
            const Row& logits) requires DecodesSeveral<D> {
    std::vector<Copy>& copies = incomplete_[example->record_id];
    copies.push_back(
        {.example = example,
         .logits = MapMembers<std::vector<float>>(logits, [](LogitRow row) {
           return std::vector<float>(row.begin(), row.end());
         })});
    if (static_cast<int64_t>(copies.size()) == D::NumExamples(*example)) {
      const auto complete = incomplete_.extract(example->record_id);
      Keep(*example, D::Decode(complete.mapped(), Context()));
    }
  }

  void Keep(const typename D::Example& example,
            typename D::Prediction prediction) {
    answers_.predictions.emplace_back(example.record_id, std::move(prediction));
    has_answer_.push_back(example.has_answer);
    if (example.has_answer) {
      answers_.gold.emplace_back(example.record_id, D::GoldOf(example));
    }
  }

  const typename D::Options options_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  typename D::Answers answers_;
  std::vector<bool> has_answer_;  // by prediction
  // By record id.
  std::map<std::string, std::vector<Copy>> incomplete_;
};

// The Task that D defines (tasks/task/benchmark.h).
template <TaskDefinition D>
class TypedTask : public RecordTask {
 public:
  TypedTask(typename D::Options options, EtcConfig model,
            std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        model_(std::move(model)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(typename D::Record parsed,
                         ParseRecord<D>(record, where, options_));
    return AsExamples(D::MakeExamples(std::move(parsed), Context(where)));
  }

  absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(typename D::Record parsed,
                         ParseRecordWithoutAnswers<D>(record, where, options_));
    return AsExamples(D::MakeExamples(std::move(parsed), Context(where)));
  }

  absl::Status CheckRecord(const std::string& record, const std::string& where,
                           RecordUse use) const override {
    if constexpr (requires(const typename D::Record& parsed) {
                    D::CheckRecord(parsed, options_, where);
                  }) {
      ETC_ASSIGN_OR_RETURN(const typename D::Record parsed,
                           ParseRecord<D>(record, where, options_));
      ETC_RETURN_IF_ERROR(D::CheckRecord(parsed, options_, where));
      return use == RecordUse::kTraining ? CheckTrainingRecord(parsed, where)
                                         : absl::OkStatus();
    } else {
      return absl::OkStatus();
    }
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return D::MakeHead(model_, options_);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<TypedPredictions<D>>(options_, tokenizer_);
  }

  std::string main_metric() const override { return MainMetricOf<D>(options_); }

  std::string Describe(const Example& example) const override {
    return D::Describe(ExampleAs<typename D::Example>(example), Context());
  }

 protected:
  FileReader Reader() const override {
    if constexpr (requires(const RecordLimits& limits) {
                    D::ReadFile(std::string(), options_, limits);
                  }) {
      return [this](const std::string& path, const RecordLimits& limits) {
        return D::ReadFile(path, options_, limits);
      };
    } else {
      return nullptr;
    }
  }

  std::vector<std::string> DescribeRecords(
      const std::vector<FileRecord>& train,
      const std::vector<FileRecord>& dev) const override {
    if constexpr (requires { D::DescribeRecords(train, dev, options_); }) {
      return D::DescribeRecords(train, dev, options_);
    } else {
      return {};
    }
  }

  std::string StratumOf(const std::string& record,
                        const std::string& where) const override {
    return StratumOfRecord<D>(record, where, options_);
  }

 private:
  absl::Status CheckTrainingRecord(const typename D::Record& record,
                                   const std::string& where) const {
    if constexpr (requires { D::TrainingError(record, options_); }) {
      const std::string error = D::TrainingError(record, options_);
      if (!error.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(where, error));
      }
    }
    return D::GoldOf(record).has_value() ? absl::OkStatus()
                                         : NoAnswer(where, record.id);
  }

  typename D::Context Context(const std::string& where = "") const {
    return {.options = options_, .tokenizer = *tokenizer_, .where = where};
  }

  const typename D::Options options_;
  const EtcConfig model_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
};

// Task D with the options in `json`, the object of its name.
//   kInvalidArgument  what ReadCheckedTaskOptions says
template <TaskDefinition D>
absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(
      typename D::Options options,
      ReadCheckedTaskOptions<D>(json, source, settings, tokenizer.get()));
  return std::make_unique<TypedTask<D>>(std::move(options), settings.model,
                                        std::move(tokenizer));
}

// True if D makes examples for models without long tokens; D::Tables(input)
// then says which tables such a model needs.
template <TaskDefinition D>
constexpr bool ServesBert() {
  return requires(const InputOptions& input) { D::Tables(input); };
}

// Whether D reads texts that are to be split into sentences.
template <TaskDefinition D>
constexpr bool SplitsSentences() {
  return requires(typename D::Options options) { options.split_sentences; };
}

template <TaskDefinition D>
absl::StatusOr<std::unique_ptr<Task>> MakeTaskOfConfig(
    const FinetuneConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  TaskSettings settings = TaskSettingsOf(config);
  if constexpr (SplitsSentences<D>()) {
    absl::StatusOr<SentenceSplitter> split =
        LoadSentenceSplitter(config.data.sentences);
    if (!split.ok()) {
      return absl::Status(split.status().code(),
                          absl::StrCat(config.source, ": data.sentences: ",
                                       split.status().message()));
    }
    settings.split_sentences = *std::move(split);
  }
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<RecordTask> task,
                       MakeTask<D>(config.task_options,
                                   absl::StrCat(config.source, ": ", D::kName),
                                   settings, std::move(tokenizer)));
  task->HoldOut(HoldOutOptionsOf(config.data));
  return task;
}

template <TaskDefinition D>
absl::StatusOr<std::shared_ptr<TaskHead>> MakeHeadOfConfig(
    const FinetuneConfig& config) {
  ETC_ASSIGN_OR_RETURN(
      const typename D::Options options,
      ReadCheckedTaskOptions<D>(config.task_options,
                                absl::StrCat(config.source, ": ", D::kName),
                                TaskSettingsOf(config), /*tokenizer=*/nullptr));
  return D::MakeHead(config.model, options);
}

template <TaskDefinition D>
absl::StatusOr<TaskScores> ScoreFilesOfTask(const ScoredFiles& files,
                                            ScoringRules rules,
                                            const nlohmann::json& json,
                                            const std::string& source,
                                            const RecordLimits& limits) {
  typename D::Options options;
  if (!json.is_null()) {
    ETC_ASSIGN_OR_RETURN(options, ReadTaskOptions<D>(json, source));
  }
  TaskScores scores = {.main_metric = MainMetricOf<D>(options)};
  ETC_ASSIGN_OR_RETURN(
      scores.metrics,
      ScoreFiles<D>(files, rules, options, limits, &scores.unanswered));
  return scores;
}

// The entry of task D in the registry.
template <TaskDefinition D>
TaskEntry TaskEntryOf() {
  TaskEntry entry = {.name = D::kName,
                     .description = D::kDescription,
                     .make = MakeTaskOfConfig<D>,
                     .complete = CompletionOf<D>(),
                     .splits_sentences = SplitsSentences<D>(),
                     .holds_out_records = HoldsOutRecords<D>(),
                     .serves_bert = ServesBert<D>(),
                     .make_head = MakeHeadOfConfig<D>,
                     .score = ScoreFilesOfTask<D>};
  if constexpr (requires { D::Overall; }) {
    entry.overall = D::Overall;
  }
  return entry;
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_BENCHMARK_TASK_H_
