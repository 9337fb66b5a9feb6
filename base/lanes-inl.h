// Vectors of floats, and runs of a row that begin and end anywhere, taken
// vector by vector. Compiled once for each SIMD target: see foreach_target.h of
// Highway.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#if defined(ETC_BASE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_BASE_LANES_INL_H_
#undef ETC_BASE_LANES_INL_H_
#else
#define ETC_BASE_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;

HWY_INLINE int64_t Lanes() {
  return static_cast<int64_t>(hn::Lanes(FloatTag()));
}

// A vector of a row, all lanes of which count.
struct AllLanes {
  HWY_INLINE FloatVector Load(const float* from) const {
    return hn::LoadU(FloatTag(), from);
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
    hn::StoreU(vector, FloatTag(), to);
  }
  // Takes the lanes that count from the first vector, the rest from the second.
  HWY_INLINE FloatVector Choose(FloatVector vector, FloatVector) const {
    return vector;
  }
};

HWY_INLINE auto MaskOf(uint32_t bits) {
  // LoadMaskBits may read eight bytes.
  const uint8_t bytes[8] = {
      static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8),
      static_cast<uint8_t>(bits >> 16), static_cast<uint8_t>(bits >> 24)};
  return hn::LoadMaskBits(FloatTag(), bytes);
}

// A vector of which the lanes whose bit is set count; no others are touched,
// and loads have zeros there.
struct SomeLanes {
  uint32_t bits;

  HWY_INLINE FloatVector Load(const float* from) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    const FloatTag tag;
    HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())] = {};
    for (int64_t i = 0; i < Lanes(); ++i) {
      if ((bits >> i & 1) != 0) {
        lanes[i] = from[i];
      }
    }
    return hn::Load(tag, lanes);
#else
    return hn::MaskedLoad(MaskOf(bits), FloatTag(), from);
#endif
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())];
    hn::Store(vector, FloatTag(), lanes);
    for (int64_t i = 0; i < Lanes(); ++i) {
      if ((bits >> i & 1) != 0) {
        to[i] = lanes[i];
      }
    }
#else
    hn::BlendedStore(vector, MaskOf(bits), FloatTag(), to);
#endif
  }
  HWY_INLINE FloatVector Choose(FloatVector vector, FloatVector other) const {
    return hn::IfThenElse(MaskOf(bits), vector, other);
  }
};

// Bits of all lanes of a vector. No target's has more than 32.
HWY_INLINE uint32_t AllBits() {
  return static_cast<uint32_t>((uint64_t{1} << Lanes()) - 1);
}

// Lanes [begin, end) of a vector; `end` may be behind it.
HWY_INLINE SomeLanes LanesBetween(int64_t begin, int64_t end) {
  const int64_t behind = std::max<int64_t>(Lanes() - end, 0);
  return {AllBits() >> behind & AllBits() << begin};
}

// Calls function(i, lanes) for each vector, at element i of a row, that holds
// any of the elements [begin, end).
template <typename Function>
HWY_INLINE void ForEachVector(int64_t begin, int64_t end,
                              const Function& function) {
  const int64_t lanes = Lanes();
  int64_t i = begin / lanes * lanes;
  if (begin >= end) {
    return;
  }
  if (i < begin) {
    function(i, LanesBetween(begin - i, end - i));
    i += lanes;
  }
  for (; i + lanes <= end; i += lanes) {
    function(i, AllLanes());
  }
  if (i < end) {
    function(i, LanesBetween(0, end - i));
  }
}

// The elements [begin, end) of a row: all of them, if `words` is null, else
// those whose bit is set. That of element i is bit n % 32 of word n / 32, where
// n = first + i; the word behind the last one may be read.
struct SomeElements {
  int64_t begin;
  int64_t end;
  const uint32_t* words = nullptr;
  int64_t first = 0;

  // Returns the bits of the elements [i, i + 32).
  HWY_INLINE uint32_t BitsFrom(int64_t i) const {
    const auto n = static_cast<uint64_t>(first + i);
    const uint32_t* const word = words + n / 32;
    const uint64_t both = word[0] | static_cast<uint64_t>(word[1]) << 32;
    return static_cast<uint32_t>(both >> (n % 32));
  }
};

// The same for some elements, and calls none(i) for vectors between `begin` and
// `end` that hold none of them.
template <typename Function, typename None>
HWY_INLINE void ForEachVector(const SomeElements& elements,
                              const Function& function, const None& none) {
  if (elements.words == nullptr || elements.begin >= elements.end) {
    return ForEachVector(elements.begin, elements.end, function);
  }
  const int64_t lanes = Lanes();
  for (int64_t i = elements.begin / lanes * lanes; i < elements.end;
       i += lanes) {
    const uint32_t bits =
        elements.BitsFrom(i) &
        LanesBetween(std::max<int64_t>(elements.begin - i, 0), elements.end - i)
            .bits;
    if (bits == AllBits()) {
      function(i, AllLanes());
    } else if (bits != 0) {
      function(i, SomeLanes{bits});
    } else {
      none(i);
    }
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
