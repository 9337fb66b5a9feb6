#ifndef ETC_BASE_MEMORY_LIMIT_H_
#define ETC_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace etc {

// The memory that the process may have, in bytes: that of the machine, or less
// where `ulimit -v` or `-d` or a control group says so (base/control_group.h,
// which `root` is of): that of a container, of a job of Slurm, of systemd. Of
// the addresses of `ulimit -v` those are subtracted that have no memory behind
// them at the first call, as most of a library's.
int64_t MemoryOfProcess(const std::string& root = "");

}  // namespace etc

#endif  // ETC_BASE_MEMORY_LIMIT_H_
