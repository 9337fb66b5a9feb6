#ifndef ETC_BASE_DROPOUT_SEEDS_H_
#define ETC_BASE_DROPOUT_SEEDS_H_

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace etc {

// The seed of one dropout operation: a number drawn from LibTorch's CPU
// generator, or in the scope of ReplayDropoutSeeds the next one of those.
uint64_t DrawDropoutSeed();

// A source of this thread's seeds; the innermost one is used.
class DropoutSeedSource {
 public:
  DropoutSeedSource(const DropoutSeedSource&) = delete;
  DropoutSeedSource& operator=(const DropoutSeedSource&) = delete;

 protected:
  DropoutSeedSource();
  virtual ~DropoutSeedSource();

  // Draws a seed from the enclosing source, or from LibTorch's CPU generator if
  // there is none.
  uint64_t DrawOutside() const;

 private:
  friend uint64_t DrawDropoutSeed();
  virtual uint64_t Draw() = 0;

  DropoutSeedSource* const outer_;
};

// Appends to `seeds`, while it lives, the seeds that this thread draws.
class RecordDropoutSeeds final : DropoutSeedSource {
 public:
  explicit RecordDropoutSeeds(std::vector<uint64_t>* seeds) : seeds_(seeds) {}

 private:
  uint64_t Draw() override;

  std::vector<uint64_t>* const seeds_;
};

// Makes this thread draw `seeds`, in order, while it lives, and none from a
// generator: a computation during which they were recorded can be repeated
// exactly, whatever other threads draw meanwhile. Drawing more throws
// c10::Error.
class ReplayDropoutSeeds final : DropoutSeedSource {
 public:
  explicit ReplayDropoutSeeds(const std::vector<uint64_t>& seeds)
      : seeds_(seeds) {}

 private:
  uint64_t Draw() override;

  const std::vector<uint64_t>& seeds_;
  size_t next_ = 0;
};

// `values`, of which each element is 0 with `probability`, in [0, 1), else
// multiplied by 1 / (1 - probability): torch::dropout on any device and in any
// dtype, by a generator of its own with the seed DrawDropoutSeed(). Nothing is
// drawn if the probability is 0. Differentiable, twice.
torch::Tensor SeededDropout(const torch::Tensor& values, double probability);

}  // namespace etc

#endif  // ETC_BASE_DROPOUT_SEEDS_H_
