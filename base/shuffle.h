#ifndef ETC_BASE_SHUFFLE_H_
#define ETC_BASE_SHUFFLE_H_

#include <cstdint>
#include <vector>

namespace etc {

// 0, ..., size - 1 in an order that follows from `seed` alone, each order as
// likely as any other. The same on every machine.
std::vector<int64_t> RandomOrder(int64_t size, uint64_t seed);

}  // namespace etc

#endif  // ETC_BASE_SHUFFLE_H_
