#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "base/to_device.h"
#include "tasks/inputs/text_head.h"
#include "tasks/squad/task.h"
#include "tasks/task/benchmark_head.h"

namespace etc {
namespace {

// Starts and ends.
constexpr int64_t kNumEnds = 2;

// Logit of padding, which is then no end and has no part in the loss.
constexpr double kPaddingLogit = -1e9;

// Marks those of the text's T tokens that are padding: [B, 1, T] bool.
torch::Tensor IsPadding(const BenchmarkBatch<SquadExample>& batch,
                        int64_t tokens) {
  const bool is_bert = batch.input.token_ids.size(1) == 0;
  const torch::Tensor lengths =
      torch::tensor(batch.Each([is_bert](const SquadExample& example) {
        return is_bert ? example.global_length() : example.long_length();
      }),
                    torch::kInt64);
  return torch::arange(tokens, torch::kInt64).ge(lengths.view({-1, 1, 1}));
}

// See MakeSquadHead.
class SquadHead : public BenchmarkHead<SquadExample, SquadLogits> {
 public:
  explicit SquadHead(const EtcConfig& config)
      : ends_(RegisterHeadLinear("qa_outputs", config, kNumEnds, this)) {}

  ReadTokens Reads() const override { return ReadTokens::kText; }

  Tensors LogitsOf(const EtcOutput& encoded, const TaskBatch& batch) override {
    const torch::Tensor ends =  // [B, 2, T]
        ApplyLinear(TextStates(encoded), ends_).transpose(1, 2);
    const torch::Tensor padding = IsPadding(batch, ends.size(-1));
    return {.ends = ends.masked_fill(ToDevice(padding, ends.device()),
                                     kPaddingLogit)};
  }

  torch::Tensor LossesOf(const Tensors& logits,
                         const TaskBatch& batch) override {
    ETC_CHECK_SHAPE(logits.ends,
                    {batch.size(), kNumEnds, logits.ends.size(-1)});
    std::vector<int64_t> targets;  // [B * 2]
    targets.reserve(batch.examples.size() * kNumEnds);
    for (const auto& example : batch.examples) {
      targets.push_back(example->answer.first);
      targets.push_back(example->answer.last);
    }
    return CrossEntropies(logits.ends.flatten(0, 1), targets)
        .view({batch.size(), kNumEnds})
        .mean(-1);
  }

 private:
  torch::nn::Linear ends_;
};

}  // namespace

Squad::HeadPtr MakeSquadHead(const EtcConfig& model,
                             const SquadOptions& /*options*/) {
  return std::make_shared<SquadHead>(model);
}

}  // namespace etc
