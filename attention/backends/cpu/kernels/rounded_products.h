#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_PRODUCTS_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_PRODUCTS_H_

#include <cstdint>

namespace etc::kernels {

// Products of matrices of bfloat16, summed in float32, by the instructions that
// a CPU has for them. Those of one set give the same bits for the same sums of
// products, wherever an element lies; another set rounds sums otherwise.

// Rows of a product, and multiples of its columns and depth.
inline constexpr int64_t kRoundedRows = 16;
inline constexpr int64_t kRoundedColumns = 16;
inline constexpr int64_t kRoundedDepth = 32;

// c = a b, or with `adds` c += a b. Strides are in elements, between rows.
struct RoundedProduct {
  int64_t columns;    // a multiple of kRoundedColumns
  int64_t depth;      // a multiple of kRoundedDepth
  const uint16_t* a;  // [kRoundedRows][depth]
  int64_t a_stride;
  // [depth / 2][columns]: rows 2k and 2k + 1 of b in pairs, the first of a pair
  // in its lower half.
  const uint32_t* b;
  int64_t b_stride;
  float* c;  // [kRoundedRows][columns]
  int64_t c_stride;
  bool adds;
};

// The functions of one set of instructions. Rounding is to the nearest, ties to
// even.
struct RoundedProducts {
  const char* name;
  // Around the products of a thread.
  void (*begin)();
  void (*end)();
  void (*multiply)(const RoundedProduct& product);
  // to[i] = factor * from[i] for i < count, then zeros up to `padded`, a
  // multiple of 32.
  void (*round_row)(const float* from, int64_t count, int64_t padded,
                    float factor, uint16_t* to);
  // The pairs of two rows: to[i] has factor * even[i] in its lower half; a null
  // row is zeros. `padded` is a multiple of 16.
  void (*round_pairs)(const float* even, const float* odd, int64_t count,
                      int64_t padded, float factor, uint32_t* to);
};

// Returns null where the CPU, or the system, does not support them.
const RoundedProducts* AmxProducts();     // AMX-BF16: tiles
const RoundedProducts* Avx512Products();  // AVX512-BF16

// The fastest of those supported, or null; `products` instead, once it was set
// (null: again the fastest).
const RoundedProducts* FastestRoundedProducts();
void SetRoundedProductsForTest(const RoundedProducts* products);

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_ROUNDED_PRODUCTS_H_
