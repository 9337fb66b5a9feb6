#ifndef ETC_BASE_CONTROL_GROUP_H_
#define ETC_BASE_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace etc {

// Limits of the control groups of this process: the least of its own group
// (/proc/self/cgroup) and of every group above it, of version 1 and 2, so that
// those of Slurm, systemd and nested containers are seen. Nothing where none
// sets a limit, or where there are no control groups.
struct ControlGroupLimits {
  // Bytes: memory.max, memory.limit_in_bytes.
  std::optional<int64_t> memory;
  // CPU seconds per second: cpu.max, cpu.cfs_quota_us / cpu.cfs_period_us.
  std::optional<double> cpus;
};

// `root` is put before all paths, for tests; empty: the machine's own.
ControlGroupLimits ReadControlGroupLimits(const std::string& root = "");

}  // namespace etc

#endif  // ETC_BASE_CONTROL_GROUP_H_
