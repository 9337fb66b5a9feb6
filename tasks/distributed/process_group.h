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

// The processes of a run, joined by LibTorch's c10d over Gloo. What they do
// together, all of them do, in the same order.
//
// c10d knows no authentication: who reaches the ports of a group can take part
// in it. Its store listens on the address of ProcessPlace alone, and Gloo on
// that by which a process reaches it.
//
// Each function fails on all processes that are left if one of them has ended
// or does not answer, with kUnavailable and who that is; the group is then of
// no use any more.
class ProcessGroup {
 public:
  // Waits until all processes have come. `timeout` is for that, and for each
  // wait after it. SIGPIPE is ignored from then on, if nobody had taken it.
  //   kUnavailable      the address cannot be reached, or some have not come
  //   kInvalidArgument  the port is taken, or the address is not of this
  //                     machine (process 0)
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(
      const ProcessPlace& place, absl::Duration timeout);

  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return place_.rank; }
  // Among the processes of this machine, from 0.
  int64_t local_rank() const { return place_.local_rank; }
  int64_t size() const { return place_.world_size; }
  // The one that writes and speaks for all.
  bool is_first() const { return place_.rank == 0; }

  // From now on sums tensors of CUDA devices on the devices, by NCCL, instead
  // of in the memory of the CPU. Each process has a device of its own.
  //   kFailedPrecondition  this program was built without NCCL
  absl::Status UseNccl();

  // Sums each tensor over the processes, in place and to the same bits on all
  // of them. Floating, of one dtype and on one device, of the same shapes
  // everywhere, contiguous.
  absl::Status Sum(const std::vector<torch::Tensor>& tensors);
  // The same while other work goes on, for one bucket of Sum's at a time: what
  // goes wrong is said by FinishSums, which waits for all that were begun.
  // Until then nobody may touch the tensors.
  void BeginSum(const std::vector<torch::Tensor>& tensors);
  absl::Status FinishSums();

  // Replaces tensors by those of process `root`.
  absl::Status Broadcast(const std::vector<torch::Tensor>& tensors,
                         int64_t root = 0);

  // Everybody's bytes, by rank.
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& bytes);

  // OK if `mine` is on all processes; else the error of the first that has one,
  // which names it unless it is this one.
  absl::Status Agree(const absl::Status& mine);

  // Agree, and whether all want to go on: false if one does not.
  absl::StatusOr<bool> AgreeToGoOn(const absl::Status& mine, bool go_on);

  // To be called where a process ends with an error that the others do not know
  // of yet: they will say it when they miss this one.
  void Leave(const absl::Status& why);

  // Bytes that this process has given to sums so far, and seconds that it has
  // waited for the others in all functions.
  int64_t bytes_summed() const { return bytes_summed_; }
  double seconds_waited() const { return seconds_waited_; }

 private:
  struct Backend;
  class Waiting;

  ProcessGroup(const ProcessPlace& place, absl::Duration timeout);
  absl::Status Connect();
  // `address` is that of process 0, `own` that by which this one reaches it.
  absl::Status OpenStore(const std::string& address);
  absl::Status ConnectToAll(const std::string& own);
  std::chrono::milliseconds LongestWait() const;
  // Waits for the first bucket under way, and copies its sums to the tensors.
  void FinishBucket();
  // `error` is of an operation that failed: who is missing, from here on.
  absl::Status WhoIsMissing(const std::string& error);

  const ProcessPlace place_;
  const absl::Duration timeout_;
  std::unique_ptr<Backend> backend_;
  std::string sum_error_;
  absl::Status missing_;  // what all operations return, once one has failed
  int64_t bytes_summed_ = 0;
  double seconds_waited_ = 0;
};

// From now on SIGPIPE does not end this process, if nobody had taken it: c10d
// and Gloo write to sockets whose other end may have died.
void IgnoreBrokenPipes();

// What data sets are to know of `group`, which may be null.
DataGroup DataGroupOf(ProcessGroup* group);

// What `action`, of the first process alone, comes to, in all of them. `group`
// is null where there is one process.
absl::Status InFirstProcess(ProcessGroup* group,
                            const std::function<absl::Status()>& action);

// Whether to go on, in all processes: not where `status` is kCancelled. Other
// errors are returned by all. `group` may be null.
absl::StatusOr<bool> GoesOn(ProcessGroup* group, const absl::Status& status);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_PROCESS_GROUP_H_
