#include "tasks/pretrain/examples/draws.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "base/random.h"

namespace etc {

KeyedDraws::KeyedDraws(std::initializer_list<uint64_t> key) {
  for (const uint64_t part : key) {
    state_ = Mix64(state_ + part);
  }
}

uint64_t KeyedDraws::Bits() {
  constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15u;
  const uint64_t bits = Mix64(state_);
  state_ += kIncrement;
  return bits;
}

double KeyedDraws::Uniform() { return UnitInterval(Bits()); }

int64_t KeyedDraws::Integer(int64_t first, int64_t last) {
  TORCH_CHECK(first <= last, "an integer should be drawn from at least one, ",
              "but from ", first, " to ", last, " there is none");
  const uint64_t count =
      static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
  const uint64_t offset =
      absl::Uint128High64(absl::uint128(Bits()) * absl::uint128(count));
  return static_cast<int64_t>(static_cast<uint64_t>(first) + offset);
}

std::vector<int32_t> KeyedDraws::Permutation(int32_t size) {
  std::vector<int32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (size_t last = order.size(); last-- > 1;) {
    std::swap(
        order[last],
        order[static_cast<size_t>(Below(static_cast<int64_t>(last) + 1))]);
  }
  return order;
}

}  // namespace etc
