#include "base/shuffle.h"

#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace etc {
namespace {

// Uniform in [0, bound). std::uniform_int_distribution differs between
// standard libraries.
uint64_t DrawBelow(uint64_t bound, std::mt19937_64& generator) {
  // The largest multiple of `bound` is at `-bound % bound` from the end.
  const uint64_t excess = (0 - bound) % bound;
  uint64_t draw = generator();
  while (draw < excess) {
    draw = generator();
  }
  return draw % bound;
}

}  // namespace

std::vector<int64_t> RandomOrder(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 generator(seed);
  for (size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[DrawBelow(left, generator)]);
  }
  return order;
}

}  // namespace etc
