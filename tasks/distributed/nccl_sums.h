#ifndef ETC_TASKS_DISTRIBUTED_NCCL_SUMS_H_
#define ETC_TASKS_DISTRIBUTED_NCCL_SUMS_H_

#include <torch/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "absl/status/statusor.h"
#include "tasks/distributed/process_place.h"

namespace etc {

// All-reduces sums over the ranks of a run on their CUDA devices, each rank
// with a device of its own, by LibTorch's c10d over NCCL.
class NcclSums {
 public:
  virtual ~NcclSums() = default;

  // Begins to all-reduce a tensor, in place. Returns a function that waits for
  // the end, and throws if that does not come within the timeout.
  virtual std::function<void()> Begin(const torch::Tensor& tensor) = 0;
};

// Connects all ranks that share `store`, at the first sum.
//   kFailedPrecondition  this program was built without NCCL, or there is no
//                        CUDA device
absl::StatusOr<std::unique_ptr<NcclSums>> MakeNcclSums(
    const ProcessPlace& place, c10::intrusive_ptr<c10d::Store> store,
    std::chrono::milliseconds timeout);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_NCCL_SUMS_H_
