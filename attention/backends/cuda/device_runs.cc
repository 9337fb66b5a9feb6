#include "attention/backends/cuda/device_runs.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "attention/backends/cuda/kernels/arguments.h"
#include "base/to_device.h"

namespace etc {
namespace {

using kernels::cuda::RunOffsets;

constexpr size_t kOffsetIntegers = sizeof(RunOffsets) / sizeof(int32_t);

// Appends integers, and returns where they begin.
class Integers {
 public:
  explicit Integers(size_t reserved) : all_(reserved) {}

  int32_t Append(const void* values, size_t count) {
    const size_t begin = all_.size();
    TORCH_CHECK(begin + count <
                    static_cast<size_t>(std::numeric_limits<int32_t>::max()),
                "a pattern has more runs of keys than the CUDA kernels count");
    all_.resize(begin + count);
    if (count > 0) {
      std::memcpy(all_.data() + begin, values, count * sizeof(int32_t));
    }
    return static_cast<int32_t>(begin);
  }
  std::vector<int32_t>& all() { return all_; }

 private:
  std::vector<int32_t> all_;
};

RunOffsets AppendBlock(const BlockRuns& block, Integers* integers) {
  const auto append = [&](const std::vector<int32_t>& values) {
    return integers->Append(values.data(), values.size());
  };
  const auto append_runs = [&](const std::vector<KeyRun>& runs) {
    static_assert(sizeof(KeyRun) == 2 * sizeof(int32_t));
    return integers->Append(runs.data(), 2 * runs.size());
  };
  RunOffsets offsets = {};
  offsets.visible_first = append(block.visible.first);
  offsets.visible_last = append(block.visible.last);
  offsets.visible_runs = append_runs(block.visible.runs);
  offsets.special_first = -1;
  if (!block.special.first.empty()) {
    offsets.special_first = append(block.special.first);
    offsets.special_last = append(block.special.last);
    offsets.special_runs = append_runs(block.special.runs);
  }
  offsets.rule = static_cast<int32_t>(block.rule);
  return offsets;
}

torch::Tensor Pack(const std::vector<SoftmaxRuns>& runs) {
  Integers integers(2 * kOffsetIntegers * runs.size());
  std::vector<RunOffsets> offsets;
  for (const SoftmaxRuns& example : runs) {
    offsets.push_back(AppendBlock(example.own, &integers));
    offsets.push_back(AppendBlock(example.other, &integers));
  }
  std::vector<int32_t>& all = integers.all();
  if (!offsets.empty()) {
    std::memcpy(all.data(), offsets.data(),
                offsets.size() * sizeof(RunOffsets));
  }
  return torch::tensor(at::ArrayRef<int32_t>(all), torch::kInt32);
}

struct Copy {
  std::weak_ptr<const std::vector<SoftmaxRuns>> of;
  torch::Tensor integers;
};

}  // namespace

torch::Tensor RunsOnDevice(
    const std::shared_ptr<const std::vector<SoftmaxRuns>>& runs,
    const torch::Device& device) {
  using Key = std::pair<const void*, int>;
  // Never destroyed: the device may be gone before.
  static auto* const copies = new std::map<Key, Copy>();
  static auto* const mutex = new std::mutex();
  const Key key = {runs.get(), static_cast<int>(device.index())};
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto found = copies->find(key);
  if (found != copies->end() && !found->second.of.expired()) {
    return found->second.integers;
  }
  for (auto copy = copies->begin(); copy != copies->end();) {
    copy = copy->second.of.expired() ? copies->erase(copy) : std::next(copy);
  }
  const torch::Tensor integers = ToDevice(Pack(*runs), device);
  (*copies)[key] = {runs, integers};
  return integers;
}

}  // namespace etc
