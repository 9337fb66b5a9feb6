#include "attention/backends/cpu/kernels/rounded_products.h"

#include <atomic>

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "base/amx.h"

#define ETC_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace etc::kernels {
namespace {

// The lanes below `count` of 16.
__mmask16 LanesBelow(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1u);
}

ETC_AVX512_BF16 inline __m512 LoadSome(const float* from, int64_t count,
                                       __m512 factor) {
  return _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(LanesBelow(count), from));
}

ETC_AVX512_BF16 void RoundRow(const float* from, int64_t count, int64_t padded,
                              float factor, uint16_t* to) {
  const __m512 scale = _mm512_set1_ps(factor);
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512 low = _mm512_mul_ps(scale, _mm512_loadu_ps(from + i));
    const __m512 high = _mm512_mul_ps(scale, _mm512_loadu_ps(from + i + 16));
    _mm512_storeu_si512(
        to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  for (; i < padded; i += 32) {
    const __m512 low = LoadSome(from + i, count - i, scale);
    const __m512 high = LoadSome(from + i + 16, count - i - 16, scale);
    _mm512_storeu_si512(
        to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

// 16 words, each of a lane of `even` and of `odd`.
ETC_AVX512_BF16 inline __m512i Pairs(__m512 even, __m512 odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11,
                                         26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(
      order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
}

ETC_AVX512_BF16 void RoundPairs(const float* even, const float* odd,
                                int64_t count, int64_t padded, float factor,
                                uint32_t* to) {
  if (even == nullptr && odd == nullptr) {
    std::fill_n(to, padded, 0u);
    return;
  }
  const __m512 scale = _mm512_set1_ps(factor);
  const int64_t evens = even == nullptr ? 0 : count;
  const int64_t odds = odd == nullptr ? 0 : count;
  even = even == nullptr ? odd : even;
  odd = odd == nullptr ? even : odd;
  for (int64_t i = 0; i < padded; i += 16) {
    _mm512_storeu_si512(to + i, Pairs(LoadSome(even + i, evens - i, scale),
                                      LoadSome(odd + i, odds - i, scale)));
  }
}

// Rows [0, kRows) of 16 kVectors columns. Each sum is taken in the order of the
// depth.
template <int kRows, int kVectors>
ETC_AVX512_BF16 void MultiplyBlock(const RoundedProduct& product) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = product.adds
                       ? _mm512_loadu_ps(product.c + r * product.c_stride +
                                         int64_t{16} * v)
                       : _mm512_setzero_ps();
    }
  }
  const uint32_t* b = product.b;
  for (int64_t k = 0; k < product.depth / 2; ++k) {
    __m512bh row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] =
          reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + int64_t{16} * v));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int pair;
      __builtin_memcpy(&pair, product.a + r * product.a_stride + 2 * k,
                       sizeof(pair));
      const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, row[v]);
      }
    }
    b += product.b_stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(product.c + r * product.c_stride + int64_t{16} * v,
                       sums[r][v]);
    }
  }
}

template <int kVectors>
void MultiplyRows(RoundedProduct product) {
  MultiplyBlock<6, kVectors>(product);
  product.a += 6 * product.a_stride;
  product.c += 6 * product.c_stride;
  MultiplyBlock<5, kVectors>(product);
  product.a += 5 * product.a_stride;
  product.c += 5 * product.c_stride;
  MultiplyBlock<5, kVectors>(product);
}

void MultiplyByAvx512(const RoundedProduct& product) {
  constexpr void (*kProducts[])(RoundedProduct) = {
      MultiplyRows<1>, MultiplyRows<2>, MultiplyRows<3>, MultiplyRows<4>};
  RoundedProduct rest = product;
  while (rest.columns > 0) {
    const int64_t vectors = std::min<int64_t>(rest.columns / 16, 4);
    kProducts[vectors - 1](rest);
    rest.columns -= 16 * vectors;
    rest.b += 16 * vectors;
    rest.c += 16 * vectors;
  }
}

// Tiles 0 to 3 hold c, 4 a and 5 to 7 b.
template <int kTiles>
void MultiplyTileColumns(const RoundedProduct& product) {
  const int64_t c_bytes = product.c_stride * 4;
  const auto for_each_c = [&](const auto& function) {
    function.template operator()<0>();
    if constexpr (kTiles > 1) {
      function.template operator()<1>();
    }
    if constexpr (kTiles > 2) {
      function.template operator()<2>();
    }
    if constexpr (kTiles > 3) {
      function.template operator()<3>();
    }
  };
  if (product.adds) {
    for_each_c([&]<int kTile>() {
      LoadTile<kTile>(product.c + int64_t{16} * kTile, c_bytes);
    });
  } else {
    for_each_c([]<int kTile>() { ClearTile<kTile>(); });
  }
  const uint16_t* a = product.a;
  const uint32_t* b = product.b;
  for (int64_t k = 0; k < product.depth; k += kRoundedDepth) {
    LoadTile<4>(a, product.a_stride * 2);
    for_each_c([&]<int kTile>() {
      LoadTile<5 + kTile % 3>(b + int64_t{16} * kTile, product.b_stride * 4);
      MultiplyTiles<kTile, 4, 5 + kTile % 3>();
    });
    a += kRoundedDepth;
    b += kRoundedDepth / 2 * product.b_stride;
  }
  for_each_c([&]<int kTile>() {
    StoreTile<kTile>(product.c + int64_t{16} * kTile, c_bytes);
  });
}

void MultiplyByAmx(const RoundedProduct& product) {
  constexpr void (*kProducts[])(const RoundedProduct&) = {
      MultiplyTileColumns<1>, MultiplyTileColumns<2>, MultiplyTileColumns<3>,
      MultiplyTileColumns<4>};
  RoundedProduct rest = product;
  while (rest.columns > 0) {
    const int64_t tiles = std::min<int64_t>(rest.columns / 16, 4);
    kProducts[tiles - 1](rest);
    rest.columns -= 16 * tiles;
    rest.b += 16 * tiles;
    rest.c += 16 * tiles;
  }
}

}  // namespace

const RoundedProducts* Avx512Products() {
  static constexpr RoundedProducts kProducts = {.name = "AVX512-BF16",
                                                .begin = [] {},
                                                .end = [] {},
                                                .multiply = MultiplyByAvx512,
                                                .round_row = RoundRow,
                                                .round_pairs = RoundPairs};
  static const bool supported = __builtin_cpu_supports("avx512bf16") != 0 &&
                                __builtin_cpu_supports("avx512bw") != 0 &&
                                __builtin_cpu_supports("avx512vl") != 0;
  return supported ? &kProducts : nullptr;
}

const RoundedProducts* AmxProducts() {
  static constexpr RoundedProducts kProducts = {.name = "AMX-BF16",
                                                .begin = BeginTiles,
                                                .end = EndTiles,
                                                .multiply = MultiplyByAmx,
                                                .round_row = RoundRow,
                                                .round_pairs = RoundPairs};
  return HasAmx() ? &kProducts : nullptr;
}

}  // namespace etc::kernels

#else

namespace etc::kernels {

const RoundedProducts* AmxProducts() { return nullptr; }
const RoundedProducts* Avx512Products() { return nullptr; }

}  // namespace etc::kernels

#endif

namespace etc::kernels {
namespace {

std::atomic<const RoundedProducts*> for_test = nullptr;

}  // namespace

const RoundedProducts* FastestRoundedProducts() {
  const RoundedProducts* const chosen = for_test.load();
  if (chosen != nullptr) {
    return chosen;
  }
  const RoundedProducts* const amx = AmxProducts();
  return amx != nullptr ? amx : Avx512Products();
}

void SetRoundedProductsForTest(const RoundedProducts* products) {
  for_test.store(products);
}

}  // namespace etc::kernels
