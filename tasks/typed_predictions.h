#ifndef ETC_TASKS_TYPED_PREDICTIONS_H_
#define ETC_TASKS_TYPED_PREDICTIONS_H_

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

// D::Window, or nothing for a task that has none.
template <typename D>
struct WindowOf {
  struct type {};
};
template <DecodesWindows D>
struct WindowOf<D> {
  using type = typename D::Window;
};

// The predictions of task D: decodes batches, and scores what it decoded with
// the metric that `score` uses for files. If a record is predicted from several
// examples, they are gathered over batches, and the logits of records that are
// not complete are kept.
template <TaskDefinition D>
class TypedPredictions : public TaskPredictions {
 public:
  TypedPredictions(typename D::Options options,
                   std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)), tokenizer_(std::move(tokenizer)) {}

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
    return gold_.empty() ? Metrics()
                         : D::Score(gold_, predictions_, Rules()).metrics;
  }

  std::string FileContents() const override {
    return D::FileContents(predictions_, gold_);
  }

 private:
  using ExamplePtr = std::shared_ptr<const typename D::Example>;
  using Row = typename D::template Logits<LogitRow>;

  void Take(const ExamplePtr& example,
            const Row& logits) requires DecodesExamples<D> {
    Keep(*example, D::Decode(*example, logits, options_, *tokenizer_));
  }

  void Take(const ExamplePtr& example,
            const Row& logits) requires DecodesWindows<D> {
    std::vector<typename D::Window>& windows = incomplete_[example->record_id];
    windows.push_back(
        {.example = example,
         .logits = MapMembers<std::vector<float>>(logits, [](LogitRow row) {
           return std::vector<float>(row.begin(), row.end());
         })});
    if (static_cast<int64_t>(windows.size()) == D::NumExamples(*example)) {
      const auto complete = incomplete_.extract(example->record_id);
      Keep(*example, D::Decode(complete.mapped(), options_, *tokenizer_));
    }
  }

  void Keep(const typename D::Example& example,
            typename D::Prediction prediction) {
    predictions_.emplace_back(example.record_id, std::move(prediction));
    if (example.has_answer) {
      gold_.emplace_back(example.record_id, D::GoldOf(example));
    }
  }

  ScoringRules Rules() const {
    if constexpr (requires { options_.official_compatibility; }) {
      if (options_.official_compatibility) {
        return ScoringRules::kOfficial;
      }
    }
    return ScoringRules::kDefault;
  }

  const typename D::Options options_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  ById<typename D::Prediction> predictions_;
  ById<typename D::Gold> gold_;
  // By record id.
  std::map<std::string, std::vector<typename WindowOf<D>::type>> incomplete_;
};

}  // namespace etc

#endif  // ETC_TASKS_TYPED_PREDICTIONS_H_
