#ifndef ETC_TESTS_TASKS_TRAIN_TOY_TASK_H_
#define ETC_TESTS_TASKS_TRAIN_TOY_TASK_H_

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <any>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/json_reader.h"
#include "base/random.h"
#include "base/shuffle.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/benchmark_task.h"

namespace etc {

// A benchmark small enough to train on in a test: does token 7 occur? A record
// is {"id": "3", "tokens": [2, 7, 9]}, and may say "has_answer": false,
// "is_truncated": true and "examples": 3, of which it then has so many.
struct ToyExample : public Example {
  int64_t label = 0;
};

class ToyHead : public OutputHead {
 public:
  explicit ToyHead(int64_t hidden_size)
      : output_(register_module("output", torch::nn::Linear(hidden_size, 2))) {}

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    torch::Tensor logits =  // [B, 2]
        output_->forward(encoded.global_output.select(1, 0));
    for (int64_t i = 0; i < batch.size(); ++i) {
      if (batch.examples[static_cast<size_t>(i)]->record_id ==
          nan_logits_record) {
        logits = logits.index_fill(0, torch::tensor(i).to(logits.device()),
                                   std::numeric_limits<float>::quiet_NaN());
      }
    }
    return {repeats_in_evaluation && !is_training() ? logits.repeat({2, 1})
                                                    : logits};
  }

  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) override {
    std::vector<int64_t> labels;
    torch::Tensor factors = torch::ones({batch.size()});
    for (const auto& example : batch.examples) {
      if (example->record_id == nan_record) {
        factors[static_cast<int64_t>(labels.size())] =
            std::numeric_limits<float>::quiet_NaN();
      }
      labels.push_back(static_cast<const ToyExample&>(*example).label);
    }
    const torch::Device device = logits[0].device();
    return factors.to(device) *
           torch::nn::functional::cross_entropy(
               logits[0], torch::tensor(labels, torch::kLong).to(device),
               torch::nn::functional::CrossEntropyFuncOptions().reduction(
                   torch::kNone));
  }

  // The loss of this record is not a number.
  std::string nan_record;
  // The logits of this one are not.
  std::string nan_logits_record;
  // True to give logits with rows that have no label in evaluation mode.
  bool repeats_in_evaluation = false;

 private:
  torch::nn::Linear output_;
};

class ToyPredictions : public TaskPredictions {
 public:
  void Add(const Batch& batch,
           const std::vector<torch::Tensor>& logits) override {
    const torch::Tensor answers = logits[0].argmax(1);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto& example = static_cast<const ToyExample&>(
          *batch.examples[static_cast<size_t>(i)]);
      const auto answer = answers[i].item<int64_t>();
      answered_ += example.has_answer ? 1 : 0;
      correct_ += example.has_answer && answer == example.label ? 1 : 0;
      answers_[example.record_id] = answer;
      logits_.push_back(logits[0][i]);
    }
  }

  Metrics Score() const override {
    if (answered_ == 0) {
      return {};
    }
    return {{"accuracy",
             static_cast<double>(correct_) / static_cast<double>(answered_)},
            {"correct", static_cast<double>(correct_)}};
  }

  std::string FileContents() const override { return answers_.dump() + "\n"; }

  // [examples, 2], in the order of the records.
  torch::Tensor logits() const { return torch::stack(logits_); }

 private:
  int64_t answered_ = 0;
  int64_t correct_ = 0;
  nlohmann::ordered_json answers_ = nlohmann::ordered_json::object();
  std::vector<torch::Tensor> logits_;
};

class ToyTask : public RecordTask {
 public:
  explicit ToyTask(const EtcConfig& model) : model_(model) {}

  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(record, where));
    auto example = std::make_shared<ToyExample>();
    std::vector<int64_t> tokens;
    int64_t num_examples = 1;
    JsonObjectReader reader(json, where);
    reader.Required("id", &example->record_id);
    reader.Required("tokens", &tokens);
    reader.Optional("has_answer", &example->has_answer);
    reader.Optional("is_truncated", &example->is_truncated);
    reader.Optional("examples", &num_examples);
    ETC_RETURN_IF_ERROR(reader.Finish());
    for (const int64_t token : tokens) {
      example->long_token_ids.push_back(static_cast<int32_t>(token));
      example->label = token == 7 ? 1 : example->label;
    }
    example->long_type_ids.assign(tokens.size(), 1);
    example->global_token_ids = {1, 2};
    example->global_type_ids = {0, 0};
    example->pattern = UnrestrictedPattern(static_cast<int64_t>(tokens.size()),
                                           2, model_.local_radius,
                                           model_.relative_pos_max_distance);
    return std::vector<std::shared_ptr<const Example>>(
        static_cast<size_t>(num_examples), example);
  }

  absl::StatusOr<CheckedRecord> CheckRecord(const std::string& record,
                                            const std::string& where,
                                            RecordUse /*use*/) const override {
    ETC_ASSIGN_OR_RETURN(const Examples examples,
                         ToyTask::MakeExamples(record, where));
    return CheckedRecord{.id = examples.front()->record_id,
                         .has_answer = examples.front()->has_answer};
  }

  absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const override {
    return MakeExamples(record, where);
  }
  // Training and evaluations need none of these.
  absl::StatusOr<Examples> MakeExamplesOf(
      const std::any& /*record*/, const std::string& /*where*/) const override {
    return Examples();
  }
  RecordPrediction PredictRecord(
      const Examples& /*examples*/,
      absl::Span<const std::vector<torch::Tensor>> /*logits*/) const override {
    return {};
  }
  std::string FileOf(
      absl::Span<const RecordPrediction> /*predictions*/) const override {
    return "";
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    auto head = std::make_shared<ToyHead>(model_.hidden_size);
    head->nan_record = nan_record;
    head->nan_logits_record = nan_logits_record;
    head->repeats_in_evaluation = repeats_in_evaluation;
    return head;
  }
  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<ToyPredictions>();
  }
  std::string main_metric() const override { return "accuracy"; }
  bool epochs_count_records() const override { return counts_records; }
  std::string Describe(const Example& example) const override {
    return example.record_id;
  }

  std::string nan_record;
  std::string nan_logits_record;
  bool repeats_in_evaluation = false;
  bool counts_records = false;

 private:
  EtcConfig model_;
};

// The lines of a file of `count` records of 3 to 9 tokens, half of them with
// token 7.
inline std::string ToyRecords(int64_t count, uint64_t seed) {
  std::string lines;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> draws =
        RandomOrder(15, CombineSeeds({seed, static_cast<uint64_t>(i)}));
    std::vector<int64_t> tokens;
    for (size_t k = 0; tokens.size() < static_cast<size_t>(3 + draws[0] % 7);
         ++k) {
      tokens.push_back(draws[k] == 7 ? 0 : draws[k]);
    }
    if (i % 2 == 0) {
      tokens[static_cast<size_t>(draws[1]) % tokens.size()] = 7;
    }
    lines += nlohmann::json{{"id", absl::StrCat(i)}, {"tokens", tokens}}.dump();
    lines += "\n";
  }
  return lines;
}

// A run of 12 updates on the files `train` and `dev`, with dropout.
inline nlohmann::json ToyConfigJson(const std::string& train,
                                    const std::string& dev,
                                    const std::string& output) {
  return {{"task", "toy"},
          {"model",
           {{"vocab_size", 16},
            {"segment_vocab_size", 2},
            {"hidden_size", 16},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 2},
            {"local_radius", 3},
            {"relative_pos_max_distance", 2},
            {"relative_vocab_size", 8},
            {"intermediate_size", 32},
            {"initializer_range", 0.1}}},
          {"residual_attention", "sum"},
          {"data", {{"train", {train}}, {"dev", {dev}}, {"bucket_batches", 2}}},
          {"train",
           {{"learning_rate", 0.01},
            {"batch_size", 8},
            {"micro_batch_size", 3},
            {"steps", 12},
            {"evaluate_every", 4},
            {"threads", 1}}},
          {"output", output}};
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRAIN_TOY_TASK_H_
