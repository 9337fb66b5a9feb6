#ifndef ETC_TASKS_TRAIN_GRADIENT_SUMS_H_
#define ETC_TASKS_TRAIN_GRADIENT_SUMS_H_

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "etc/weights/checkpoint.h"
#include "tasks/distributed/process_group.h"
#include "tasks/distributed/tensor_bytes.h"

namespace etc {

// All-reduces the gradients of an update over the ranks of a run, in buckets
// that are sent while the last backward pass still runs, as in Li et al. 2020
// (PyTorch Distributed), 3.2. Buckets are the same in all updates and on all
// ranks, in the order in which the encoder's layers come in a backward pass, so
// that sums do not depend on which were sent early.
//
// The previous update tells when a gradient is complete. A gradient that comes
// after its bucket was sent (of a part of the model that some batches do not
// use) is all-reduced by itself at the end.
class GradientSums {
 public:
  // `parameters` are the model's. `group` must outlive this. Buckets are those
  // of BucketsOf (tasks/distributed/tensor_bytes.h).
  GradientSums(const NamedTensors& parameters, ProcessGroup* group,
               size_t bucket_bytes = kBucketBytes);
  ~GradientSums();
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;

  // Announces the last backward pass of this rank in an update.
  void BeginLastPass();
  // Sends the buckets that are left. A collective operation: must be called
  // even if the pass did not come to its end.
  void SendRest();
  // Waits for the sums, which become the gradients; a parameter that has a
  // gradient on no rank keeps none. Sums `*number` over the ranks as well.
  absl::Status Finish(double* number);
  // Replaces Finish() for an update that is given up.
  absl::Status Drop();

  // Buckets that were sent early in the last pass of the last update, and all.
  size_t sent_early() const { return sent_early_; }
  size_t buckets() const { return buckets_.size(); }

 private:
  struct Parameter {
    torch::Tensor tensor;
    std::function<void()> remove_hook;
    size_t bucket = 0;
    // Number of contributions to its gradient in the last pass, and the largest
    // number in other updates; 0: it is not waited for.
    int64_t grew = 0;
    int64_t expected = 0;
    // The gradient, once its bucket is sent.
    torch::Tensor sum;
    bool had_gradient = false;
  };

  void GradientGrew(Parameter* parameter);
  // Sends buckets as long as the next one is complete.
  void SendComplete();
  void Send(size_t bucket);
  // Adds gradients that came after their bucket was sent. `late` marks the
  // parameters that have such on any rank.
  absl::Status AddLate(const std::vector<bool>& late);

  ProcessGroup* const group_;
  std::vector<std::unique_ptr<Parameter>> parameters_;  // in sending order
  std::vector<std::vector<Parameter*>> buckets_;
  std::vector<size_t> missing_;  // parameters of each bucket to wait for
  bool is_last_pass_ = false;
  size_t sent_ = 0;
  size_t sent_early_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_GRADIENT_SUMS_H_
