#ifndef ETC_TASKS_UPDATE_CONTEXT_H_
#define ETC_TASKS_UPDATE_CONTEXT_H_

#include <torch/types.h>

#include <cstddef>

#include "absl/status/status.h"
#include "tasks/data/example_source.h"
#include "tasks/distributed/process_group.h"

namespace etc {

// What the micro-batches of an update share, for losses in which examples of
// one meet those of another: no micro-batch alone has all of the gradient. It
// lives from before the first to behind the last of them.
class UpdateContext {
 public:
  virtual ~UpdateContext() = default;

  // Takes in a micro-batch. All are taken in, in their order, before the model
  // runs on the first.
  virtual void Add(const Examples& examples, const torch::Device& device) = 0;
  // Counts a micro-batch that is another process's, in its place.
  virtual void Skip() = 0;
  // Exchanges what was made of the micro-batches, after the last of them.
  virtual absl::Status Exchange(ProcessGroup* group) = 0;

  // After the backward passes of all, sums up what they have come to with
  // respect to what was exchanged.
  virtual absl::Status SumGradients(ProcessGroup* group) = 0;
  // Adds to the gradients of the parameters what goes through that which was
  // made of micro-batch 0, 1, ... of this process: after the backward passes of
  // all, with LibTorch's random numbers set as they were for its Add.
  virtual void AddGradient(size_t micro_batch) = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_UPDATE_CONTEXT_H_
