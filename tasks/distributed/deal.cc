#include "tasks/distributed/deal.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace etc {
namespace {

int64_t CostOf(const Examples& examples) {
  constexpr int64_t kGlobal = 4;
  int64_t longest = 0;
  int64_t globals = 0;
  for (const auto& example : examples) {
    longest = std::max(longest, example->long_length());
    globals = std::max(globals, example->global_length());
  }
  return static_cast<int64_t>(examples.size()) * (longest + kGlobal * globals);
}

}  // namespace

// The most expensive first, each to the process that has least to do so far.
std::vector<bool> DealMicroBatches(const std::vector<Examples>& micro_batches,
                                   int64_t processes, int64_t rank) {
  std::vector<int64_t> costs;
  costs.reserve(micro_batches.size());
  for (const Examples& examples : micro_batches) {
    // One that costs nothing is still a turn.
    costs.push_back(std::max<int64_t>(CostOf(examples), 1));
  }
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });
  std::vector<int64_t> loads(static_cast<size_t>(processes));
  std::vector<bool> is_here(costs.size());
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += costs[i];
    is_here[i] = least - loads.begin() == rank;
  }
  return is_here;
}

}  // namespace etc
