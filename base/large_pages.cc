#include "base/large_pages.h"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace etc {

at::Tensor WithLargePages(at::Tensor tensor) {
#ifdef __linux__
  if (!tensor.device().is_cpu()) {
    return tensor;
  }
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  const uintptr_t end = begin + tensor.nbytes();
  const uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t last = end / kLargePage * kLargePage;
  if (first < last) {
    // Advice: that it may be refused is no error.
    static_cast<void>(
        madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE));
  }
#endif
  return tensor;
}

}  // namespace etc
