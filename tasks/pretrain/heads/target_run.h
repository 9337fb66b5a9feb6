#ifndef ETC_TASKS_PRETRAIN_HEADS_TARGET_RUN_H_
#define ETC_TASKS_PRETRAIN_HEADS_TARGET_RUN_H_

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "etc/model.h"
#include "tasks/data/example_source.h"
#include "tasks/task/task.h"

namespace etc {

// The target run of CPC (doc/pretraining.md 9.1): the encoder's outputs for the
// hidden sentences of some PretrainExamples, each by itself, in their order:
// [N, H]; undefined if none is hidden. Differentiable in the encoder's
// parameters.
torch::Tensor RunTargets(EtcModel encoder, const Examples& examples,
                         const torch::Device& device);

// The targets of all micro-batches of an update, which are one another's
// negatives, so that the loss does not depend on the division of an update into
// micro-batches. Each run is made twice, the second time for its gradient, so
// that it is not in memory together with the run of a micro-batch.
class UpdateTargets final : public UpdateContext {
 public:
  // `*user` is this for as long as it lives, then null.
  UpdateTargets(EtcModel encoder, UpdateTargets** user);
  ~UpdateTargets() override;
  UpdateTargets(const UpdateTargets&) = delete;
  UpdateTargets& operator=(const UpdateTargets&) = delete;

  void Add(const Examples& examples, const torch::Device& device) override;
  void Skip() override;
  absl::Status Exchange(ProcessGroup* group) override;
  absl::Status SumGradients(ProcessGroup* group) override;
  void AddGradient(size_t micro_batch) override;

  // All targets, a leaf, [N, H], or undefined if there are none; and which of
  // them belong to a micro-batch.
  struct Slice {
    torch::Tensor targets;
    int64_t begin = 0;
    int64_t end = 0;
  };
  // Returns the slice of the next micro-batch of this rank, in their order.
  Slice Next();

 private:
  // Part of a micro-batch; `targets` are undefined where none is hidden.
  struct Part {
    Examples examples;
    torch::Tensor targets;
    bool is_here = true;  // no other process's
    int64_t begin = 0;
    int64_t end = 0;
  };

  // Sets `begin` and `end` of all parts from their numbers of targets.
  void Place(const std::vector<int64_t>& counts);

  EtcModel encoder_;
  UpdateTargets** const user_;
  std::vector<Part> parts_;
  size_t next_ = 0;
  torch::Tensor all_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_HEADS_TARGET_RUN_H_
