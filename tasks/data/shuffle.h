#ifndef ETC_TASKS_DATA_SHUFFLE_H_
#define ETC_TASKS_DATA_SHUFFLE_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace etc {

// One seed that follows from all of `parts` and their order, as a hash does:
// nearby parts give unrelated seeds. The same on every machine.
uint64_t CombineSeeds(std::initializer_list<uint64_t> parts);

// 0, ..., size - 1 in an order that follows from `seed` alone, each order as
// likely as any other. The same on every machine.
std::vector<int64_t> RandomOrder(int64_t size, uint64_t seed);

}  // namespace etc

#endif  // ETC_TASKS_DATA_SHUFFLE_H_
