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

}  // namespace
}  // namespace etc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::kernels {

HWY_EXPORT(RoundToBfloat16Impl);

void RoundToBfloat16(int64_t count, const float* from, uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(RoundToBfloat16Impl)(count, from, to);
}

Bfloat16Products Bfloat16ProductsOfThisCpu() {
  const auto& onednn = LoadedOnednn();
  return onednn.ok() ? (*onednn)->bfloat16_products() : Bfloat16Products::kNone;
}

}  // namespace etc::kernels
#endif  // HWY_ONCE
