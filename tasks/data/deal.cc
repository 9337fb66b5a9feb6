#include "tasks/data/deal.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "tasks/data/example_source.h"

namespace etc {
namespace {

int64_t CostOf(const ExampleOutlines& examples) {
  constexpr int64_t kGlobal = 4;
  int64_t longest = 0;
  int64_t globals = 0;
  for (const ExampleOutline& example : examples) {
    longest = std::max(longest, example.long_length);
    globals = std::max(globals, example.global_length);
  }
  // One that costs nothing is still a turn.
  return std::max<int64_t>(
      static_cast<int64_t>(examples.size()) * (longest + kGlobal * globals), 1);
}

// The process that has made most of the examples.
size_t MainMaker(const ExampleOutlines& examples, int64_t processes) {
  std::vector<int64_t> made(static_cast<size_t>(processes));
  for (const ExampleOutline& example : examples) {
    ++made[static_cast<size_t>(MakerOf(example.request.record, processes))];
  }
  return static_cast<size_t>(std::max_element(made.begin(), made.end()) -
                             made.begin());
}

}  // namespace

// The most expensive first: to the process that has made it, up to a fair
// share; then those that are left, each to the process that has least to do so
// far.
std::vector<bool> DealMicroBatches(
    const std::vector<ExampleOutlines>& micro_batches, int64_t processes,
    int64_t rank) {
  std::vector<int64_t> costs;
  costs.reserve(micro_batches.size());
  for (const ExampleOutlines& examples : micro_batches) {
    costs.push_back(CostOf(examples));
  }
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });
  std::vector<int64_t> loads(static_cast<size_t>(processes));
  std::vector<bool> is_here(costs.size());
  const auto give = [&](size_t i, size_t process) {
    loads[process] += costs[i];
    is_here[i] = static_cast<int64_t>(process) == rank;
  };
  std::vector<size_t> left;
  auto not_given = static_cast<int64_t>(order.size());
  for (const size_t i : order) {
    const size_t maker = MainMaker(micro_batches[i], processes);
    // Each rank that has no micro-batch yet gets one of those left.
    const int64_t without =
        std::count(loads.begin(), loads.end(), 0) - (loads[maker] == 0 ? 1 : 0);
    if ((loads[maker] + costs[i]) * processes <= total && not_given > without) {
      give(i, maker);
      --not_given;
    } else {
      left.push_back(i);
    }
  }
  for (const size_t i : left) {
    give(i, static_cast<size_t>(std::min_element(loads.begin(), loads.end()) -
                                loads.begin()));
  }
  return is_here;
}

}  // namespace etc
