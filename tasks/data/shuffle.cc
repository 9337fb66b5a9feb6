#include "tasks/data/shuffle.h"

#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace etc {
namespace {

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in
// which each bit of the input changes about half of those of the output.
uint64_t Scramble(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

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

uint64_t CombineSeeds(std::initializer_list<uint64_t> parts) {
  uint64_t seed = 0;
  for (const uint64_t part : parts) {
    seed = Scramble(seed + 0x9e3779b97f4a7c15 + Scramble(part));
  }
  return seed;
}

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
