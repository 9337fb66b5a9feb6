#ifndef ETC_TASKS_DATA_DATA_GROUP_H_
#define ETC_TASKS_DATA_DATA_GROUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// The processes that share a data set; what a data set knows of
// tasks/distributed/process_group.h.
struct DataGroup {
  int64_t rank = 0;
  int64_t size = 1;
  // Everybody's bytes, by rank: all processes call it, as often and in the same
  // order. Not called where there is one process.
  std::function<absl::StatusOr<std::vector<std::string>>(
      const std::string& bytes)>
      gather = nullptr;
};

// The process that makes the examples of a record for all to know their
// lengths: the same in each epoch, so that what it keeps of them
// (CachedSource) is of use again.
inline int64_t MakerOf(int64_t record, int64_t processes) {
  return record % processes;
}

}  // namespace etc

#endif  // ETC_TASKS_DATA_DATA_GROUP_H_
