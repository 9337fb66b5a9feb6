#include "base/dropout_seeds.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>

#include <limits>
#include <mutex>

namespace etc {
namespace {

thread_local DropoutSeedSource* current_source = nullptr;

uint64_t DrawFromGenerator() {
  return static_cast<uint64_t>(
      torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kInt64)
          .item<int64_t>());
}

// A generator of the device's kind that nobody else draws from.
at::Generator NewGenerator(const torch::Device& device, uint64_t seed) {
  at::Generator shared = at::globalContext().defaultGenerator(device);
  at::Generator own = [&] {
    const std::lock_guard<std::mutex> lock(shared.mutex());
    return shared.clone();
  }();
  own.set_current_seed(seed);
  return own;
}

}  // namespace

DropoutSeedSource::DropoutSeedSource() : outer_(current_source) {
  current_source = this;
}

DropoutSeedSource::~DropoutSeedSource() { current_source = outer_; }

uint64_t DropoutSeedSource::DrawOutside() const {
  return outer_ == nullptr ? DrawFromGenerator() : outer_->Draw();
}

uint64_t RecordDropoutSeeds::Draw() {
  seeds_->push_back(DrawOutside());
  return seeds_->back();
}

uint64_t ReplayDropoutSeeds::Draw() {
  TORCH_CHECK(next_ < seeds_.size(),
              "a recomputation draws more seeds of dropout than the ",
              seeds_.size(), " of the forward pass");
  return seeds_[next_++];
}

uint64_t DrawDropoutSeed() {
  return current_source == nullptr ? DrawFromGenerator()
                                   : current_source->Draw();
}

torch::Tensor SeededDropout(const torch::Tensor& values, double probability) {
  TORCH_CHECK(probability >= 0.0 && probability < 1.0,
              "dropout should be in [0, 1), but is ", probability);
  if (probability == 0.0) {
    return values;
  }
  const torch::Tensor dropped = [&] {
    const torch::NoGradGuard no_grad;
    return torch::empty_like(values, values.options().dtype(torch::kBool))
        .bernoulli_(probability,
                    NewGenerator(values.device(), DrawDropoutSeed()));
  }();
  return (values * (1.0 / (1.0 - probability))).masked_fill(dropped, 0.0);
}

}  // namespace etc
