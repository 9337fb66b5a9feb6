#ifndef ETC_TASKS_DISTRIBUTED_DEAL_H_
#define ETC_TASKS_DISTRIBUTED_DEAL_H_

#include <cstdint>
#include <vector>

#include "tasks/data/example_source.h"

namespace etc {

// Which micro-batches of an update process `rank` of `processes` computes: all
// have about the same to do, and each at least one if there are enough. The
// cost of a micro-batch is that of its padded tokens; a global token, which
// sees all others, counts as four.
std::vector<bool> DealMicroBatches(const std::vector<Examples>& micro_batches,
                                   int64_t processes, int64_t rank);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_DEAL_H_
