#include "base/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace

int64_t MemoryOfProcess(const std::string& root) {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
  const int64_t machine =
      pages > 0 && page_bytes > 0 ? pages * page_bytes : kNoLimit;
  return std::min({machine, ResourceLimit(RLIMIT_AS),
                   ResourceLimit(RLIMIT_DATA),
                   ReadControlGroupLimits(root).memory.value_or(kNoLimit)});
}

}  // namespace etc
