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

// Lanes [begin, end).
HWY_INLINE auto MaskOfLanes(int64_t begin, int64_t end) {
  const FloatTag tag;
  return hn::AndNot(hn::FirstN(tag, static_cast<size_t>(begin)),
                    hn::FirstN(tag, static_cast<size_t>(end)));
}

// Elements [begin, end) of `from` in their lanes, zeros in others. Nothing else
// is touched; the same below.
HWY_INLINE FloatVector LoadLanes(const float* from, int64_t begin,
                                 int64_t end) {
  const FloatTag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())] = {};
  for (int64_t i = begin; i < end; ++i) {
    lanes[i] = from[i];
  }
  return hn::Load(tag, lanes);
#else
  return hn::MaskedLoad(MaskOfLanes(begin, end), tag, from);
#endif
}

HWY_INLINE void StoreLanes(FloatVector vector, int64_t begin, int64_t end,
                           float* to) {
  const FloatTag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())];
  hn::Store(vector, tag, lanes);
  for (int64_t i = begin; i < end; ++i) {
    to[i] = lanes[i];
  }
#else
  hn::BlendedStore(vector, MaskOfLanes(begin, end), tag, to);
#endif
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

// A vector of which lanes [begin, end) count; no others are touched, and loads
// have zeros there.
struct SomeLanes {
  int64_t begin;
  int64_t end;

  HWY_INLINE FloatVector Load(const float* from) const {
    return LoadLanes(from, begin, end);
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
    StoreLanes(vector, begin, end, to);
  }
  HWY_INLINE FloatVector Choose(FloatVector vector, FloatVector other) const {
    return hn::IfThenElse(MaskOfLanes(begin, end), vector, other);
  }
};

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
    function(i, SomeLanes{begin - i, std::min(end - i, lanes)});
    i += lanes;
  }
  for (; i + lanes <= end; i += lanes) {
    function(i, AllLanes());
  }
  if (i < end) {
    function(i, SomeLanes{0, end - i});
  }
}

}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
