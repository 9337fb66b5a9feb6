#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/bfloat16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "base/bfloat16-inl.h"
#include "base/bfloat16.h"
#include "base/onednn_loader.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::kernels::HWY_NAMESPACE {
namespace {

void RoundToBfloat16Impl(int64_t count, const float* HWY_RESTRICT from,
                         uint16_t* HWY_RESTRICT to) {
  const int64_t lanes = Lanes();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    StoreBfloat16(hn::LoadU(FloatTag(), from + i), lanes, to + i);
  }
  if (i < count) {
    StoreBfloat16(LanesBetween(0, count - i).Load(from + i), count - i, to + i);
  }
}

void RoundAndAddRowsImpl(const RoundedRows& data) {
  const FloatTag tag;
  const int64_t lanes = Lanes();
  for (int64_t r = 0; r < data.rows; ++r) {
    const float* const HWY_RESTRICT from = data.from + r * data.from_stride;
    uint16_t* const HWY_RESTRICT to = data.to + r * data.to_stride;
    float* const HWY_RESTRICT sums = data.sums;
    int64_t c = 0;
    for (; c + lanes <= data.columns; c += lanes) {
      const FloatVector values = hn::LoadU(tag, from + c);
      StoreBfloat16(values, lanes, to + c);
      hn::StoreU(hn::Add(hn::LoadU(tag, sums + c), values), tag, sums + c);
    }
    if (c < data.columns) {
      RoundToBfloat16Impl(data.columns - c, from + c, to + c);
      for (; c < data.columns; ++c) {
        sums[c] += from[c];
      }
    }
  }
}

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(RoundToBfloat16Impl);
HWY_EXPORT(RoundAndAddRowsImpl);

void RoundToBfloat16(int64_t count, const float* from, uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(RoundToBfloat16Impl)(count, from, to);
}

void RoundAndAddRows(const RoundedRows& data) {
  HWY_DYNAMIC_DISPATCH(RoundAndAddRowsImpl)(data);
}

Bfloat16Products Bfloat16ProductsOfThisCpu() {
  const auto& onednn = LoadedOnednn();
  return onednn.ok() ? (*onednn)->bfloat16_products() : Bfloat16Products::kNone;
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
