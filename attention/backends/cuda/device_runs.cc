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

using kernels::cuda::BlockOffsets;
using kernels::cuda::SetOffsets;

constexpr size_t kOffsetIntegers = sizeof(BlockOffsets) / sizeof(int32_t);

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

SetOffsets AppendSets(const RunSetTable& sets, Integers* integers) {
  static_assert(sizeof(KeyRun) == 2 * sizeof(int32_t));
  std::vector<KeyRun> hulls;
  bool is_single = true;
  for (size_t i = 0; i < sets.first.size(); ++i) {
    const auto first = static_cast<size_t>(sets.first[i]);
    const auto last = static_cast<size_t>(sets.last[i]);
    hulls.push_back(first == last ? KeyRun{0, 0}
                                  : KeyRun{sets.runs[first].begin,
                                           sets.runs[last - 1].end});
    is_single = is_single && last - first <= 1;
  }
  const auto append = [&](const auto& values) {
    return integers->Append(
        values.data(), values.size() * sizeof(values[0]) / sizeof(int32_t));
  };
  return {.hulls = append(hulls),
          .first = append(sets.first),
          .last = append(sets.last),
          .runs = append(sets.runs),
          .is_single = is_single ? 1 : 0};
}

BlockOffsets AppendBlock(const BlockRuns& block, Integers* integers) {
  return {.visible = AppendSets(block.visible, integers),
          .special = AppendSets(block.special, integers),
          .has_special = block.special.first.empty() ? 0 : 1,
          .rule = static_cast<int32_t>(block.rule)};
}

torch::Tensor Pack(const std::vector<SoftmaxRuns>& runs) {
  Integers integers(2 * kOffsetIntegers * runs.size());
  std::vector<BlockOffsets> offsets;
  for (const SoftmaxRuns& example : runs) {
    offsets.push_back(AppendBlock(example.own, &integers));
    offsets.push_back(AppendBlock(example.other, &integers));
  }
  std::vector<int32_t>& all = integers.all();
  if (!offsets.empty()) {
    std::memcpy(all.data(), offsets.data(),
                offsets.size() * sizeof(BlockOffsets));
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
