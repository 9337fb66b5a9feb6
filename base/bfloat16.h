#ifndef ETC_BASE_BFLOAT16_H_
#define ETC_BASE_BFLOAT16_H_

#include <cstdint>

namespace etc::kernels {

// Rounds to bfloat16, the upper 16 bits of a float: to the nearest, ties to
// even; NaN stays NaN. Nothing is checked; buffers must not overlap.
void RoundToBfloat16(int64_t count, const float* from, uint16_t* to);

// The same of rows [rows][columns], each contiguous and so many elements from
// the next; adds them to `sums`, [columns], too.
struct RoundedRows {
  int64_t rows, columns;
  const float* from;
  int64_t from_stride;
  uint16_t* to;
  int64_t to_stride;
  float* sums;
};
void RoundAndAddRows(const RoundedRows& data);

// Support for bfloat16 matrix products on this CPU.
enum class Bfloat16Products {
  kNone,  // not there: oneDNN makes them of AVX-512
  kSlow,  // emulated: slower than those of float32
  kFast,  // AVX512-BF16 or AMX: native; with the former alone twice as fast as
          // those of float32 on Zen 4, slower on some Xeons
};

// Asks oneDNN, which asks the CPU; the environment variable DNNL_MAX_CPU_ISA
// can withhold instructions. kNone without oneDNN.
Bfloat16Products Bfloat16ProductsOfThisCpu();

}  // namespace etc::kernels

#endif  // ETC_BASE_BFLOAT16_H_
