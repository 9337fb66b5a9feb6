// Runs of a row that begin and end anywhere, taken vector by vector of the row.
// Compiled once for each SIMD target: see foreach_target.h of Highway.

#include <algorithm>
#include <cstdint>

#include "attention/kernels/matrix-inl.h"
#include "hwy/highway.h"

#if defined(ETC_ATTENTION_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_ATTENTION_KERNELS_LANES_INL_H_
#undef ETC_ATTENTION_KERNELS_LANES_INL_H_
#else
#define ETC_ATTENTION_KERNELS_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {

// A vector of a row, all lanes of which count.
struct AllLanes {
  HWY_INLINE FloatVector Load(const float* from) const {
    return hn::LoadU(FloatTag(), from);
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
    hn::StoreU(vector, FloatTag(), to);
  }
  // What counts of one, the rest of the other.
  HWY_INLINE FloatVector Choose(FloatVector vector, FloatVector) const {
    return vector;
  }
};

// A vector of which lanes [begin, end) count; no others are touched.
struct SomeLanes {
  int64_t begin;
  int64_t end;

  HWY_INLINE auto Mask() const {
    const FloatTag tag;
    return hn::AndNot(hn::FirstN(tag, static_cast<size_t>(begin)),
                      hn::FirstN(tag, static_cast<size_t>(end)));
  }
  HWY_INLINE FloatVector Load(const float* from) const {
    const FloatTag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())] = {};
    for (int64_t i = begin; i < end; ++i) {
      lanes[i] = from[i];
    }
    return hn::Load(tag, lanes);
#else
    return hn::MaskedLoad(Mask(), tag, from);
#endif
  }
  HWY_INLINE void Store(FloatVector vector, float* to) const {
    const FloatTag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())];
    hn::Store(vector, tag, lanes);
    for (int64_t i = begin; i < end; ++i) {
      to[i] = lanes[i];
    }
#else
    hn::BlendedStore(vector, Mask(), tag, to);
#endif
  }
  HWY_INLINE FloatVector Choose(FloatVector vector, FloatVector other) const {
    return hn::IfThenElse(Mask(), vector, other);
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
