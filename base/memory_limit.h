#ifndef ETC_BASE_MEMORY_LIMIT_H_
#define ETC_BASE_MEMORY_LIMIT_H_

#include <cstdint>

namespace etc {

// The memory that the process may have, in bytes: that of the machine, or less
// where `ulimit -v` or `-d` or the limit of a container says so.
int64_t MemoryOfProcess();

}  // namespace etc

#endif  // ETC_BASE_MEMORY_LIMIT_H_
