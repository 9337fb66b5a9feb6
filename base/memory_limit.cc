#include "base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "base/control_group.h"

namespace etc {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t ResourceLimit(decltype(RLIMIT_AS) resource) {
  struct rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kNoLimit;
  }
  return static_cast<int64_t>(
      std::min<uint64_t>(limit.rlim_cur, static_cast<uint64_t>(kNoLimit)));
}

// Bytes of addresses that are mapped and have no memory: of libraries, stacks
// and what malloc keeps for each thread. 0 if /proc does not tell.
int64_t MappedWithoutMemory(int64_t page_bytes) {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) {
    return 0;
  }
  int64_t mapped = 0;
  int64_t resident = 0;
  const int fields =
      std::fscanf(file, "%" SCNd64 " %" SCNd64, &mapped, &resident);
  std::fclose(file);
  return fields == 2 ? (mapped - resident) * page_bytes : 0;
}

// The memory that fits into the addresses of `ulimit -v`.
int64_t MemoryOfAddresses(int64_t page_bytes) {
  const int64_t limit = ResourceLimit(RLIMIT_AS);
  if (limit == kNoLimit) {
    return kNoLimit;
  }
  // Once, so that all plans of a process are made for the same memory.
  static const int64_t unbacked = MappedWithoutMemory(page_bytes);
  return std::max<int64_t>(limit - unbacked, 0);
}

}  // namespace

int64_t MemoryOfProcess(const std::string& root) {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
  const int64_t machine =
      pages > 0 && page_bytes > 0 ? pages * page_bytes : kNoLimit;
  return std::min({machine, MemoryOfAddresses(page_bytes),
                   ResourceLimit(RLIMIT_DATA),
                   ReadControlGroupLimits(root).memory.value_or(kNoLimit)});
}

}  // namespace etc
