#ifndef ETC_TESTS_TASKS_TRAIN_TOY_MASKING_H_
#define ETC_TESTS_TASKS_TRAIN_TOY_MASKING_H_

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tasks/data/evaluation_loader.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/task_model.h"

namespace etc {

// A masked language model small enough to train in a test, which shares nothing
// with the benchmarks: no Task, no EtcModel, no configuration. Sentences count
// up from a random token, modulo kToyTokens; one token, another one in each
// epoch, is masked and has to be told.

inline constexpr int64_t kToyTokens = 12;
inline constexpr int32_t kToyMask = kToyTokens;

struct MaskedExample : public Example {
  int64_t position = 0;  // of the masked token, at least 1
  int64_t token = 0;     // the one that was there
};

// `size` sentences of 6 to 8 tokens.
class MaskedSentences : public ExampleSource {
 public:
  explicit MaskedSentences(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  bool depends_on_key() const override { return true; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    auto example = std::make_shared<MaskedExample>();
    example->record_id = absl::StrCat(request.record);
    const int64_t length = 6 + request.record % 3;
    for (int64_t i = 0; i < length; ++i) {
      example->long_token_ids.push_back(
          static_cast<int32_t>((request.record * 5 + i) % kToyTokens));
    }
    example->position =
        1 + static_cast<int64_t>(CombineSeeds({request.key, 0}) %
                                 static_cast<uint64_t>(length - 1));
    int32_t& masked =
        example->long_token_ids[static_cast<size_t>(example->position)];
    example->token = std::exchange(masked, kToyMask);
    example->long_type_ids.assign(static_cast<size_t>(length), 0);
    example->pattern =
        UnrestrictedPattern(length, /*global_length=*/0, /*local_radius=*/1,
                            /*relative_pos_max_distance=*/0);
    return Examples{std::move(example)};
  }

 private:
  const int64_t size_;
};

// Tells the masked token from the one before it.
class MaskedModel final : public TrainableModel {
 public:
  NamedTensors NamedParameters() const override {
    NamedTensors parameters;
    for (const auto& parameter : modules_->named_parameters()) {
      parameters.emplace(parameter.key(), parameter.value());
    }
    return parameters;
  }

  std::vector<torch::Tensor> Forward(const Batch& batch) override {
    std::vector<int64_t> previous;
    for (const auto& example : batch.examples) {
      previous.push_back(Of(*example).position - 1);
    }
    const torch::Tensor tokens =  // [B]
        batch.input.token_ids
            .gather(1, torch::tensor(previous, torch::kLong).unsqueeze(1))
            .squeeze(1);
    const torch::Tensor hidden = torch::dropout(
        embedding_->forward(tokens), /*p=*/0.1, modules_->is_training());
    return {output_->forward(hidden)};  // [B, kToyTokens]
  }

  LossTotals Totals(const Examples& examples) const override {
    return {static_cast<double>(examples.size())};
  }
  torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                     const Batch& batch, const LossTotals& totals) override {
    std::vector<int64_t> tokens;
    for (const auto& example : batch.examples) {
      tokens.push_back(Of(*example).token);
    }
    return torch::nn::functional::cross_entropy(
               logits[0], torch::tensor(tokens, torch::kLong),
               torch::nn::functional::CrossEntropyFuncOptions().reduction(
                   torch::kSum)) /
           totals[0];
  }

  bool is_training() const override { return modules_->is_training(); }
  void SetTraining(bool training) override { modules_->train(training); }

 private:
  static const MaskedExample& Of(const Example& example) {
    return static_cast<const MaskedExample&>(example);
  }

  static constexpr int64_t kHidden = 16;
  std::shared_ptr<torch::nn::Module> modules_ =
      std::make_shared<torch::nn::Module>("masked_model");
  torch::nn::Embedding embedding_ = modules_->register_module(
      "embedding", torch::nn::Embedding(kToyTokens + 1, kHidden));
  torch::nn::Linear output_ = modules_->register_module(
      "output", torch::nn::Linear(kHidden, kToyTokens));
};

// The model's part of a checkpoint is one file of weights.
inline ModelWithFiles MakeMaskedModel() {
  auto owned = std::make_unique<MaskedModel>();
  MaskedModel* const model = owned.get();
  return {
      .model = std::move(owned),
      .load_initial_weights =
          [] { return Notices{.messages = {"masked model: random weights"}}; },
      .save =
          [model](const std::string& directory) {
            return WriteTensors(directory + "/model.safetensors",
                                model->NamedParameters(), {});
          },
      .load = [model](const std::string& directory) -> absl::Status {
        ETC_ASSIGN_OR_RETURN(
            const TensorReader reader,
            TensorReader::Open(directory + "/model.safetensors"));
        return LoadTensors(reader, model->NamedParameters(), NameMatch::kBoth)
            .status();
      }};
}

// The share of masked tokens that the model tells, without predictions.
inline absl::StatusOr<Evaluation> EvaluateMasked(TrainableModel* model,
                                                 const ExampleSource& source) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  EvaluationLoader loader(&source, {.batch_size = 5});
  Evaluation evaluation;
  int64_t correct = 0;
  while (true) {
    ETC_ASSIGN_OR_RETURN(EvaluationRound round, loader.Next());
    if (round.batches.empty()) {
      break;
    }
    const Batch batch = MakeBatch(std::move(round.batches.front()));
    const torch::Tensor tokens = model->Forward(batch)[0].argmax(1);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto& example = static_cast<const MaskedExample&>(
          *batch.examples[static_cast<size_t>(i)]);
      correct += tokens[i].item<int64_t>() == example.token ? 1 : 0;
    }
    evaluation.num_examples += batch.size();
  }
  evaluation.metrics = {
      {"accuracy", static_cast<double>(correct) /
                       static_cast<double>(evaluation.num_examples)}};
  return evaluation;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRAIN_TOY_MASKING_H_
