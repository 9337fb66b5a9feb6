#ifndef ETC_TASKS_TYPED_PREDICTIONS_H_
#define ETC_TASKS_TYPED_PREDICTIONS_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tasks/logits.h"
#include "tasks/scoring.h"
#include "tasks/task.h"
#include "tasks/task_definition.h"
#include "tasks/text/tokenizer.h"
#include "tasks/typed_head.h"

namespace etc {

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

}  // namespace etc

#endif  // ETC_TASKS_TYPED_PREDICTIONS_H_
