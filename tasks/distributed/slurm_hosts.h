#ifndef ETC_TASKS_DISTRIBUTED_SLURM_HOSTS_H_
#define ETC_TASKS_DISTRIBUTED_SLURM_HOSTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// The first host of a list as Slurm writes it:
//
//   node[003-007,9],other      node003
//   rack[1-2]node[04,05]-ib    rack1node04-ib
//
//   kInvalidArgument  brackets that do not match or are empty, or no host; the
//                     message says what is wrong with the list
absl::StatusOr<std::string> FirstSlurmHost(absl::string_view hosts);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_SLURM_HOSTS_H_
