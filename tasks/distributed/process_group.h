#ifndef ETC_TASKS_DISTRIBUTED_PROCESS_GROUP_H_
#define ETC_TASKS_DISTRIBUTED_PROCESS_GROUP_H_

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tasks/data/example_source.h"
#include "tasks/distributed/process_place.h"

namespace etc {

// The ranks of a run, joined by LibTorch's c10d over Gloo. Collective
// operations must be called by all ranks in the same order.
//
// c10d knows no authentication: anyone who reaches the ports of a group can
// take part in it. Its store listens on the address of ProcessPlace alone, and
// Gloo on the one by which a process reaches it.
//
// Each operation fails on all remaining ranks if one has ended or does not
// answer, with kUnavailable and a message that names it; the group cannot be
// used any more.
class ProcessGroup {
 public:
  // Waits until all ranks have joined. `timeout` applies to that, and to each
  // wait after it. Ignores SIGPIPE from then on, unless it has a handler.
  //   kUnavailable      the address cannot be reached, or some have not come
  //   kInvalidArgument  the port is taken, or the address is not of this
  //                     machine (process 0)
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(
      const ProcessPlace& place, absl::Duration timeout);

  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return place_.rank; }
  // Rank among the processes of this machine, from 0.
  int64_t local_rank() const { return place_.local_rank; }
  int64_t size() const { return place_.world_size; }
  // True for rank 0, which writes files and messages for all.
  bool is_first() const { return place_.rank == 0; }

  // Makes Sum() all-reduce tensors of CUDA devices on the devices from now on,
  // by NCCL, instead of in the memory of the CPU. Each rank has a device of its
  // own.
  //   kFailedPrecondition  this program was built without NCCL
  absl::Status UseNccl();

  // All-reduces each tensor to the sum over the ranks, in place and to the same
  // bits on all of them. Floating, of one dtype and on one device, of the same
  // shapes everywhere, contiguous.
  absl::Status Sum(const std::vector<torch::Tensor>& tensors);
  // Starts the same asynchronously, for one bucket of Sum's at a time:
  // FinishSums waits for all that were begun and returns the first error. Until
  // then nobody may touch the tensors.
  void BeginSum(const std::vector<torch::Tensor>& tensors);
  absl::Status FinishSums();

  // Broadcasts the tensors of rank `root`.
  absl::Status Broadcast(const std::vector<torch::Tensor>& tensors,
                         int64_t root = 0);

  // All-gathers bytes, by rank.
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& bytes);

  // Returns OK if `mine` is on all ranks; else the error of the lowest rank
  // that has one, which names it unless it is this one.
  absl::Status Agree(const absl::Status& mine);

  // Agree, and returns the logical AND of `go_on` over the ranks.
  absl::StatusOr<bool> AgreeToGoOn(const absl::Status& mine, bool go_on);

  // Must be called where a rank ends with an error that the others do not know
  // of yet: they report it when they miss this one.
  void Leave(const absl::Status& why);

  // Bytes that this rank has given to all-reduces so far, and seconds that it
  // has waited for the others in all functions.
  int64_t bytes_summed() const { return bytes_summed_; }
  double seconds_waited() const { return seconds_waited_; }

 private:
  struct Backend;
  class Waiting;

  ProcessGroup(const ProcessPlace& place, absl::Duration timeout);
  absl::Status Connect();
  // `address` is that of rank 0, `own` the one by which this rank reaches it.
  absl::Status OpenStore(const std::string& address);
  absl::Status ConnectToAll(const std::string& own);
  std::chrono::milliseconds LongestWait() const;
  // Waits for the first bucket under way, and copies its sums to the tensors.
  void FinishBucket();
  // Closes the connections and returns, now and from all later operations,
  // kUnavailable with the name of the missing rank. `error` is that of the
  // operation that failed.
  absl::Status ShutDown(const std::string& error);

  const ProcessPlace place_;
  const absl::Duration timeout_;
  std::unique_ptr<Backend> backend_;
  std::string sum_error_;
  absl::Status missing_;  // what all operations return, once one has failed
  int64_t bytes_summed_ = 0;
  double seconds_waited_ = 0;
};

// Ignores SIGPIPE from now on, unless it has a handler: c10d and Gloo write to
// sockets whose other end may have died.
void IgnoreBrokenPipes();

// Returns the data sets' view of `group`, which may be null.
DataGroup DataGroupOf(ProcessGroup* group);

// Runs `action` on rank 0 and broadcasts its status. Without a `group` (null)
// just runs it.
absl::Status OnRankZero(ProcessGroup* group,
                        const std::function<absl::Status()>& action);

// Returns false on all ranks if `status` is kCancelled on any; other errors are
// returned on all. `group` may be null.
absl::StatusOr<bool> GoesOn(ProcessGroup* group, const absl::Status& status);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_PROCESS_GROUP_H_
