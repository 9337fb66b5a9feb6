#ifndef ETC_TASKS_DISTRIBUTED_PROCESS_PLACE_H_
#define ETC_TASKS_DISTRIBUTED_PROCESS_PLACE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// Ranks of this process in a run of W, and the address at which they meet.
struct ProcessPlace {
  // Rank among all processes, in [0, world_size).
  int64_t rank = 0;
  int64_t world_size = 1;
  // Rank among those on this machine, from 0.
  int64_t local_rank = 0;
  // True if it is known that some of the processes are on other machines.
  bool has_other_machines = false;
  // Host name or address of the machine of rank 0, and a TCP port there, in
  // [1, 65535]. Empty and 0 if world_size is 1.
  std::string master_address;
  int64_t master_port = 0;
  // Number of times that the launcher has started the processes again.
  std::string restart;
  // Name of the launcher, for messages: "torchrun" (also for `realetc launch`,
  // which sets the same variables), "Open MPI", "Slurm"; empty: none.
  std::string launcher;
};

// The value of an environment variable, or nothing if it is not set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;

// The environment of this process.
Environment ProcessEnvironment();

// Reads the variables of the first launcher of these that has set its own:
//
//   torchrun, `realetc launch`   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
//   mpirun of Open MPI           OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK,
//                                _LOCAL_SIZE
//   srun of Slurm                SLURM_PROCID, SLURM_STEP_NUM_TASKS,
//                                SLURM_LOCALID, SLURM_STEP_NUM_NODES
//
// and of torchrun also TORCHELASTIC_USE_AGENT_STORE and
// TORCHELASTIC_RESTART_COUNT. Processes meet at MASTER_ADDR and MASTER_PORT; at
// the next port, where torchrun has a store of its own at that one, which a
// LibTorch of another version could not talk to.
// Open MPI and Slurm set neither; without them the address is 127.0.0.1 if Open
// MPI has all processes on this machine, or the first host of Slurm's step, and
// the port one from 20000 to 29999 that follows from the job. A batch script
// that Slurm runs is one process unless it calls srun. Without any of these
// there is one process.
//
//   kInvalidArgument  a variable is missing or has a wrong value; the message
//                     names it, its value and what was expected
absl::StatusOr<ProcessPlace> FindProcessPlace(const Environment& environment);

// The first host of a list as Slurm writes it:
//
//   node[003-007,9],other      node003
//   rack[1-2]node[04,05]-ib    rack1node04-ib
//
//   kInvalidArgument  brackets that do not match or are empty, or no host; the
//                     message says what is wrong with the list
absl::StatusOr<std::string> FirstSlurmHost(absl::string_view hosts);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_PROCESS_PLACE_H_
