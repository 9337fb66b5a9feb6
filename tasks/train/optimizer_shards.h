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

// Which process of a run keeps the optimizer's state of which parameters, and
// updates them (Rajbhandari et al. 2020, ZeRO, stage 1): whole tensors, dealt
// out by their size, so that updates by norms (LAMB) stay what they are.
class OptimizerShards {
 public:
  // `group` must outlive this.
  OptimizerShards(const NamedTensors& parameters, ProcessGroup* group);

  // The parameters of this process.
  const NamedTensors& own() const { return own_; }

  // After an update of own() in each process: gives all processes the
  // parameters of all, and makes `*norm` of the changes of own() that of all
  // changes.
  absl::Status ShareUpdate(double* norm);

  // What all processes have of the optimizer's state, in the first process; in
  // the others nothing. `own` is that of this one (Optimizer::State).
  absl::StatusOr<NamedTensors> GatherState(const NamedTensors& own);

  // Whether an entry of the optimizer's state ("m.<parameter>") is of a
  // parameter of this process.
  bool IsOwn(const std::string& entry) const;

 private:
  ProcessGroup* const group_;
  std::vector<NamedTensors> of_process_;
  NamedTensors own_;
};

// The first process's tensors, one after the other, in all processes, as far as
// `keeps` says; the others' `*tensors` are replaced.
absl::Status ShareNamedTensors(
    const std::function<bool(const std::string& name)>& keeps,
    ProcessGroup* group, NamedTensors* tensors);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_OPTIMIZER_SHARDS_H_
