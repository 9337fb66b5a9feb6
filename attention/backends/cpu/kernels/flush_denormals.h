#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_FLUSH_DENORMALS_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_FLUSH_DENORMALS_H_

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace etc::kernels {

// While it lives, results of the thread's operations below the smallest normal
// float are zeros. Exponentials of scores 87 to 103 below the largest of their
// row are, in large sums over layers many; x86 takes more than a hundred cycles
// for each vector with one of them (attention then takes several times as
// long), and a sum of at least 1 does not change by them. Other CPUs are as
// fast with such numbers.
class FlushDenormals {
 public:
#if defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8000u); }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() {}
  ~FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE__)
 private:
  const unsigned before_;
#endif
};

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_FLUSH_DENORMALS_H_
