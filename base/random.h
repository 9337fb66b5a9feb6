#ifndef ETC_BASE_RANDOM_H_
#define ETC_BASE_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace etc {

// Random numbers without state: each is a function of a seed and of its
// purpose. So they are the same on every machine, in any order and on any
// number of threads, and a run that resumes needs nothing but the seed.

// A bijection of 64-bit numbers in which each bit of the input changes each bit
// of the output with probability near 1/2 (the finalizer of SplitMix64, Steele,
// Lea and Flood 2014). 0 stays 0.
constexpr uint64_t FinalizeBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The number that SplitMix64 draws in state `x`, uniform in [0, 2^64).
constexpr uint64_t Mix64(uint64_t x) {
  return FinalizeBits(x + 0x9e3779b97f4a7c15u);
}

// A number, uniform in [0, 2^64), that follows from all of `parts` and their
// order, as a hash does: nearby parts give unrelated numbers. With the first
// part a seed or key and the rest counters it is a counter-based generator.
constexpr uint64_t CombineSeeds(std::initializer_list<uint64_t> parts) {
  uint64_t seed = 0;
  for (const uint64_t part : parts) {
    seed = Mix64(seed + FinalizeBits(part));
  }
  return seed;
}

// A number in [0, 1), uniform if `bits` are.
constexpr double UnitInterval(uint64_t bits) {
  constexpr int kMantissaBits = 53;
  return static_cast<double>(bits >> (64 - kMantissaBits)) * 0x1p-53;
}

}  // namespace etc

namespace etc::kernels {

// Dropout of attention weights is a function of (seed, head, query, block, key)
// and of nothing else, so that forward and backward passes, any tiling and any
// number of threads agree. Two 32-bit words for each query come from a 64-bit
// mix; a 32-bit mix over them and the key decides.

// The seed of one head from that of the operation.
constexpr uint64_t DropoutHeadSeed(uint64_t seed, int64_t batch, int64_t head) {
  return Mix64(Mix64(seed ^ Mix64(static_cast<uint64_t>(batch))) +
               static_cast<uint64_t>(head));
}

// The random state of one query's row of one block (0 own keys, 1 others).
struct DropoutRow {
  uint32_t first;
  uint32_t second;
};

constexpr DropoutRow MakeDropoutRow(uint64_t head_seed, int64_t query,
                                    int block) {
  const uint64_t mixed =
      Mix64(head_seed + Mix64(2 * static_cast<uint64_t>(query) +
                              static_cast<uint64_t>(block)));
  return {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)};
}

// Multipliers of the 32-bit mix (lowbias32, C. Wellons' hash prospector).
inline constexpr uint32_t kDropoutMultiplier1 = 0x7feb352du;
inline constexpr uint32_t kDropoutMultiplier2 = 0x846ca68bu;

// A number that is uniform in [0, 2^32) for each key.
constexpr uint32_t DropoutNumber(DropoutRow row, uint32_t key) {
  uint32_t x = key ^ row.first;
  x = (x ^ (x >> 16)) * kDropoutMultiplier1;
  x = ((x ^ (x >> 15)) + row.second) * kDropoutMultiplier2;
  return x ^ (x >> 16);
}

// Weights are dropped whose number is below this.
inline uint32_t DropoutThreshold(double probability) {
  return static_cast<uint32_t>(
      std::llround(std::fmin(probability, 1.0 - 0x1p-32) * 4294967296.0));
}

// The factor of the weight: 0 if dropped, else 1 / (1 - probability).
inline float DropoutFactor(DropoutRow row, uint32_t key, double probability) {
  return DropoutNumber(row, key) < DropoutThreshold(probability)
             ? 0.0f
             : static_cast<float>(1.0 / (1.0 - probability));
}

}  // namespace etc::kernels

#endif  // ETC_BASE_RANDOM_H_
