#ifndef ETC_TASKS_DATA_DEAL_H_
#define ETC_TASKS_DATA_DEAL_H_

#include <cstdint>
#include <vector>

#include "tasks/data/example_outline.h"

namespace etc {

// Selects the micro-batches of an update that rank `rank` of `processes`
// computes: all ranks have about the same cost, and each at least one if there
// are enough. As far as that allows, a rank gets those whose examples it has
// made (MakerOf). The cost of a micro-batch is that of its padded tokens; a
// global token, which sees all others, counts as four.
std::vector<bool> DealMicroBatches(
    const std::vector<ExampleOutlines>& micro_batches, int64_t processes,
    int64_t rank);

}  // namespace etc

#endif  // ETC_TASKS_DATA_DEAL_H_
