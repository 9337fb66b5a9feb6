#ifndef ETC_TASKS_TRAIN_OPTIMIZER_SHARDS_H_
#define ETC_TASKS_TRAIN_OPTIMIZER_SHARDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/checkpoint.h"
#include "tasks/distributed/process_group.h"

namespace etc {

// Shards the optimizer's state over the ranks of a run: each keeps the state of
// its parameters and updates them (Rajbhandari et al. 2020, ZeRO, stage 1).
// Shards are whole tensors, dealt by their size, so that updates by norms
// (LAMB) do not change.
class OptimizerShards {
 public:
  // `group` must outlive this.
  OptimizerShards(const NamedTensors& parameters, ProcessGroup* group);

  // The parameters of this rank.
  const NamedTensors& own() const { return own_; }

  // Must be called after an update of own() on each rank. Broadcasts the
  // parameters of every rank, and combines the ranks' `*norm` of changes into
  // that of all.
  absl::Status ShareUpdate(double* norm);

  // Gathers the optimizer's state on rank 0; returns nothing on the others.
  // `own` is that of this rank (Optimizer::State).
  absl::StatusOr<NamedTensors> GatherState(const NamedTensors& own);

  // Returns true if an entry of the optimizer's state ("m.<parameter>") is of a
  // parameter of this rank.
  bool IsOwn(const std::string& entry) const;

 private:
  ProcessGroup* const group_;
  std::vector<NamedTensors> of_process_;
  NamedTensors own_;
};

// Broadcasts the tensors of rank 0 that `keeps` selects, one after the other;
// replaces the `*tensors` of the other ranks.
absl::Status ShareNamedTensors(
    const std::function<bool(const std::string& name)>& keeps,
    ProcessGroup* group, NamedTensors* tensors);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_OPTIMIZER_SHARDS_H_
