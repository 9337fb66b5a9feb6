#ifndef ETC_TASKS_TASK_BENCHMARK_HEAD_H_
#define ETC_TASKS_TASK_BENCHMARK_HEAD_H_

#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etc/config.h"
#include "etc/model.h"
#include "etc/step_cost.h"
#include "tasks/data/batch.h"
#include "tasks/data/example.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/task.h"

namespace etc {

// An example as what it is. Throws c10::Error if it is one of another task.
template <typename E>
const E& ExampleAs(const Example& example) {
  const auto* typed = dynamic_cast<const E*>(&example);
  TORCH_CHECK(typed != nullptr, "example ", example.record_id,
              " is one of another task");
  return *typed;
}

// A batch of the examples of one task.
template <typename E>
struct BenchmarkBatch {
  // Implicit, so that a Batch can be given to the functions of a head. Throws
  // c10::Error if an example is one of another task.
  BenchmarkBatch(const Batch& batch) : input(batch.input) {
    for (const std::shared_ptr<const Example>& example : batch.examples) {
      examples.emplace_back(example, &ExampleAs<E>(*example));
    }
  }

  int64_t size() const { return static_cast<int64_t>(examples.size()); }
  const E& example(int64_t b) const {
    return *examples[static_cast<size_t>(b)];
  }

  // `of` each example, a number or an enum: [B]. A member, or a function.
  template <typename Of>
  std::vector<int64_t> Each(Of of) const {
    std::vector<int64_t> values;
    for (const std::shared_ptr<const E>& example : examples) {
      values.push_back(static_cast<int64_t>(std::invoke(of, *example)));
    }
    return values;
  }

  // The input of the Batch, which must outlive this.
  const EtcInput& input;
  std::vector<std::shared_ptr<const E>> examples;
};

// Tokens of each example whose outputs a head reads. The encoder's last layer
// computes no others. kText: the long tokens, of BERT, which has none, the
// global ones.
enum class ReadTokens { kAll, kText, kGlobal, kFirstGlobal };

// Rows of these tokens in a batch, and their number in each example of a shape.
// Outputs of a part of a stream, as of kFirstGlobal, are [rows, H].
OutputRows RowsFor(ReadTokens tokens, const Batch& batch);
OutputCounts CountsFor(ReadTokens tokens, const StepShape& shape);

// Added by a task to the embeddings of tokens, before their LayerNorm; each may
// be undefined.
struct EmbeddingAdders {
  torch::Tensor long_adder;    // [B, L, H]
  torch::Tensor global_adder;  // [B, G, H]
};

// A head that reads the encoder's output for the batch, and gives each example
// a loss of its own. The loss of an update is their sum, divided by its Totals
// + 1e-5 (doc/wikihop.md 6).
class OutputHead : public TaskHead {
 public:
  EtcInput EncoderInput(const Batch& batch) final;
  // The outputs of the tokens that it reads.
  HeadCost CostOf(const StepShape& update) const final;
  // Throws c10::Error in the first pass of training if the logits depend on a
  // tensor that is to get a gradient and is no parameter of the head or the
  // encoder, such as the weight of a layer that is not registered, or have no
  // gradient although the encoder's output has.
  std::vector<torch::Tensor> Run(EtcModel encoder, const Batch& batch) final;
  // One number, that of the examples. A head with a loss per token overrides it
  // by theirs.
  LossTotals Totals(const Examples& examples) const override;
  // Throws c10::Error if there is not one loss for each example, or losses
  // other than 0 have no gradient although logits have.
  torch::Tensor Loss(const std::vector<torch::Tensor>& logits,
                     const Batch& batch, const LossTotals& totals) final;

  // Further input of the encoder besides tokens: none, for most tasks.
  virtual EmbeddingAdders Adders(const Batch& /*batch*/) { return {}; }
  virtual ReadTokens Reads() const { return ReadTokens::kAll; }
  // The task's logits from the encoder's output, of the tokens that it reads.
  virtual std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                             const Batch& batch) = 0;
  // One loss for each example: [B].
  virtual torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                               const Batch& batch) = 0;

 private:
  bool has_checked_graph_ = false;
};

// Logits as a list of tensors, and back.
template <template <typename> class Logits>
std::vector<torch::Tensor> TensorsOf(const Logits<torch::Tensor>& logits) {
  std::vector<torch::Tensor> tensors;
  ForEachMember(
      logits, [&](const torch::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}
template <template <typename> class Logits>
Logits<torch::Tensor> LogitsOfTensors(
    const std::vector<torch::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == NumLogits<Logits>(), "expected ",
              NumLogits<Logits>(), " tensors of logits, found ",
              tensors.size());
  Logits<torch::Tensor> logits;
  size_t next = 0;
  ForEachMember(logits,
                [&](torch::Tensor& member) { member = tensors[next++]; });
  return logits;
}

// An OutputHead that reads examples of type E and gives Logits. Derive a class
// with LogitsOf and LossesOf, and where they differ Adders, Reads and Totals.
template <typename E, template <typename> class Logits>
class BenchmarkHead : public OutputHead {
 public:
  using TaskBatch = BenchmarkBatch<E>;
  using Tensors = Logits<torch::Tensor>;

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) final {
    return TensorsOf(LogitsOf(encoded, batch));
  }
  // Throws c10::Error if an example has no answer.
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& batch) final {
    for (const std::shared_ptr<const Example>& example : batch.examples) {
      TORCH_CHECK(example->has_answer, "record ", example->record_id,
                  " has no answer, so it has no loss");
    }
    return LossesOf(LogitsOfTensors<Logits>(logits), batch);
  }

  // The logits of a batch. In evaluation mode (is_training) LossesOf is given
  // them, too: before weights are saved they have to give a finite loss.
  virtual Tensors LogitsOf(const EtcOutput& encoded,
                           const TaskBatch& batch) = 0;
  // One loss for each example: [B], from the logits of either mode. All
  // examples have an answer. Runs on one thread, since rounding in large sums
  // depends on their number: a product with a vocabulary belongs in LogitsOf.
  virtual torch::Tensor LossesOf(const Tensors& logits,
                                 const TaskBatch& batch) = 0;
};

// The standard deviation of the truncated normal that heads of the official
// code draw their weights from, whatever the encoder's.
inline constexpr double kHeadInitializerRange = 0.02;
// Added to the variance by the official code's LayerNorms.
inline constexpr double kHeadLayerNormEpsilon = 1e-12;

// Cross entropy of each row: [N].
//
//   logits:   [N, classes]
//   targets:  [N] int64, on any device
torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const torch::Tensor& targets);
torch::Tensor CrossEntropies(const torch::Tensor& logits,
                             const std::vector<int64_t>& targets);

// A linear layer as heads of the official code begin, which reads outputs of
// the encoder, registered in `head`.
torch::nn::Linear RegisterHeadLinear(const std::string& name,
                                     const EtcConfig& encoder, int64_t outputs,
                                     torch::nn::Module* head);

}  // namespace etc

#endif  // ETC_TASKS_TASK_BENCHMARK_HEAD_H_
