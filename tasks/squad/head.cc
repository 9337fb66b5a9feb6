#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "base/apply_linear.h"
#include "base/check_shape.h"
#include "tasks/squad/task.h"
#include "tasks/text_head.h"
#include "tasks/typed_head.h"

namespace etc {
namespace {

// Starts and ends.
constexpr int64_t kNumEnds = 2;

// See Squad::MakeHead.
class SquadHead : public TypedHead<SquadExample, SquadLogits> {
 public:
  explicit SquadHead(const EtcConfig& config)
      : ends_(RegisterHeadLinear("qa_outputs", config, kNumEnds, this)) {}

  OutputRows Reads(const Batch& batch) override {
    const bool is_bert = batch.long_token_ids.size(1) == 0;
    return is_bert ? OutputRows() : OnlyLongTokens(batch);
  }
  HeadCost CostOf(const StepShape& update) const override {
    return update.long_length == 0 ? HeadCost()
                                   : HeadCost{.outputs = {.globals = 0}};
  }

  Tensors LogitsOf(const EtcOutput& encoded,
                   const TaskBatch& /*batch*/) override {
    return {.ends = ApplyLinear(TextStates(encoded), ends_).transpose(1, 2)};
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

Squad::HeadPtr Squad::MakeHead(const EtcConfig& model,
                               const Options& /*options*/) {
  return std::make_shared<SquadHead>(model);
}

}  // namespace etc
