// Packing turns both factors into what tiles load: rows of the first one, and
// pairs of rows of the second one in panels of 32 columns, which stay in the
// second-level cache (2 MB on every CPU with AMX) while the rows of a task pass
// by. Blocks of 32 x 32 elements have two tiles of each factor for four
// products.

#include "base/amx_product.h"

#include "base/amx.h"

#if defined(__x86_64__) && defined(__linux__)

// GCC 12 takes what its own header leaves undefined on purpose for a mistake
// (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>

#define ETC_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

namespace etc::kernels {
namespace {

constexpr int64_t kBlock = 32;  // rows, columns and depth of a block
static_assert(kBlock == kTileRows);

// Bytes of packed columns that a task reads again and again.
constexpr int64_t kPackedBytes = 1400 << 10;
// Terms of a block, whose rows then stay in the first-level cache (48 KB).
constexpr int64_t kDepthOfBlock = 256;
constexpr int64_t kMostColumns = 512;
// Terms of a part. A result that is written transposed costs more to add to.
constexpr int64_t kMostDepth = 1024;
constexpr int64_t kMostTransposedDepth = 3072;
constexpr int64_t kFewestRows = 256;
constexpr int64_t kTasksOfThread = 4;
// Terms that are transposed together.
constexpr int64_t kPackedDepth = 128;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The fewest equal parts, multiples of kBlock, of at most `most`.
int64_t EvenPart(int64_t size, int64_t most) {
  const int64_t parts = std::max<int64_t>(1, (size + most - 1) / most);
  return RoundUp((size + parts - 1) / parts, kBlock);
}

ETC_AVX512 inline __mmask32 FirstOf32(int64_t count) {
  return count >= 32 ? 0xffffffffu : (1u << std::max<int64_t>(count, 0)) - 1u;
}
// The first `count` of 32 elements, then zeros.
ETC_AVX512 inline __m512i Load(const uint16_t* from, int64_t count) {
  return _mm512_maskz_loadu_epi16(FirstOf32(count), from);
}

// Transposes 16 rows of 16 words.
ETC_AVX512 inline void Transpose(__m512i* rows) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    rows[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    rows[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    rows[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    rows[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    rows[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// Rows of `matrix` from (row, column) on, as far as it goes.
struct Window {
  const uint16_t* data;
  int64_t stride;
  int64_t rows;
  int64_t columns;
};

// Words of 32 pairs.
struct Pairs {
  __m512i first, second;
};
ETC_AVX512 inline Pairs Interleave(__m512i even, __m512i odd) {
  const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11,
                                         42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i behind = _mm512_add_epi16(order, _mm512_set1_epi16(16));
  return {.first = _mm512_permutex2var_epi16(even, order, odd),
          .second = _mm512_permutex2var_epi16(even, behind, odd)};
}

// Pairs of rows of from [depth][columns], in panels: [columns / 32][depth /
// 2][32].
ETC_AVX512 void PackPairs(const Window& from, int64_t depth, uint32_t* to) {
  for (int64_t k = 0; k < depth; k += 2) {
    const uint16_t* const even = from.data + k * from.stride;
    uint32_t* panel = to + k / 2 * kBlock;
    for (int64_t c = 0; c < from.columns; c += kBlock) {
      const int64_t count = from.columns - c;
      const Pairs pairs = Interleave(
          Load(even + c, k < from.rows ? count : 0),
          Load(even + from.stride + c, k + 1 < from.rows ? count : 0));
      _mm512_storeu_si512(panel, pairs.first);
      _mm512_storeu_si512(panel + 16, pairs.second);
      panel += depth / 2 * kBlock;
    }
  }
}

// The same of the transposed matrix: to [depth / 2][32] has pairs of columns of
// from [32][depth].
ETC_AVX512 void PackColumnPairs(const Window& from, int64_t depth,
                                uint32_t* to) {
  for (int64_t first = 0; first < kBlock; first += 16) {
    for (int64_t k = 0; k < depth; k += kBlock) {
      __m512i rows[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t r = first + i;
        rows[i] = Load(from.data + r * from.stride + k,
                       r < from.rows ? from.columns - k : 0);
      }
      Transpose(rows);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        _mm512_storeu_si512(to + (k / 2 + i) * kBlock + first, rows[i]);
      }
    }
  }
}

// to [32][depth] = from, zeros behind.
ETC_AVX512 void PackRows(const Window& from, int64_t depth, uint16_t* to) {
  for (int64_t r = 0; r < kBlock; ++r) {
    for (int64_t k = 0; k < depth; k += kBlock) {
      _mm512_storeu_si512(to + r * depth + k,
                          Load(from.data + r * from.stride + k,
                               r < from.rows ? from.columns - k : 0));
    }
  }
}

// to [columns][to_stride] = from [depth][columns], transposed, with zeros
// behind and up to the next multiple of 32 columns.
ETC_AVX512 void PackTransposed(const Window& from, int64_t depth, uint16_t* to,
                               int64_t to_stride) {
  for (int64_t c = 0; c < from.columns; c += kBlock) {
    for (int64_t k = 0; k < depth; k += kBlock) {
      __m512i low[16];
      __m512i high[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t row = k + 2 * i;
        const uint16_t* const even = from.data + row * from.stride + c;
        const Pairs pairs =
            Interleave(Load(even, row < from.rows ? from.columns - c : 0),
                       Load(even + from.stride,
                            row + 1 < from.rows ? from.columns - c : 0));
        low[i] = pairs.first;
        high[i] = pairs.second;
      }
      Transpose(low);
      Transpose(high);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        _mm512_storeu_si512(to + (c + i) * to_stride + k, low[i]);
        _mm512_storeu_si512(to + (c + 16 + i) * to_stride + k, high[i]);
      }
    }
  }
}

// Rows [row, rows) and columns [column, columns) of a matrix of rows.
Window WindowOf(const Bfloat16Matrix& matrix, int64_t row, int64_t column,
                int64_t rows, int64_t columns) {
  const int64_t stride = matrix.row_stride;
  return {.data = matrix.data + row * stride + column,
          .stride = stride,
          .rows = rows - row,
          .columns = columns - column};
}

// A matrix of columns, transposed.
Bfloat16Matrix Transposed(const Bfloat16Matrix& matrix) {
  return {.data = matrix.data,
          .row_stride = matrix.column_stride,
          .column_stride = matrix.row_stride};
}

bool HasRows(const Bfloat16Matrix& matrix) { return matrix.column_stride == 1; }

enum class Start { kZero, kBias, kSums };

// Blocks of 32 x 32 sums.
struct Block {
  const uint16_t* a;  // [32][depth]
  int64_t a_stride;
  const uint32_t* b;  // [depth / 2][32]
  int64_t depth;
  Start start;        // of the sums
  const float* bias;  // [32]
  float* sums;        // [32][32]
  int64_t stride;
};

// Words of b ahead of those that are multiplied, to prefetch: of the next
// products.
constexpr int64_t kAhead = kBlock / 2 * kBlock;

// The rows of a tile of b.
inline void PrefetchTile(const uint32_t* rows) {
  for (int64_t i = 0; i < kBlock / 2; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(rows + i * kBlock), _MM_HINT_T0);
  }
}

void MultiplyBlock(const Block& block) {
  float* const sums = block.sums;
  const int64_t stride = block.stride;
  const int64_t bytes = stride * 4;
  if (block.start == Start::kZero) {
    ClearTile<0>();
    ClearTile<1>();
    ClearTile<2>();
    ClearTile<3>();
  } else {
    const bool adds = block.start == Start::kSums;
    const float* const from = adds ? sums : block.bias;
    // One row again and again.
    const int64_t from_bytes = adds ? bytes : 0;
    const int64_t below = adds ? 16 * stride : 0;
    LoadTile<0>(from, from_bytes);
    LoadTile<1>(from + 16, from_bytes);
    LoadTile<2>(from + below, from_bytes);
    LoadTile<3>(from + below + 16, from_bytes);
  }
  const uint32_t* b = block.b;
  const uint16_t* const second = block.a + 16 * block.a_stride;
  const int64_t a_bytes = block.a_stride * 2;
  for (int64_t k = 0; k < block.depth; k += kBlock) {
    LoadTile<4>(block.a + k, a_bytes);
    LoadTile<6>(b, 4 * kBlock);
    PrefetchTile(b + kAhead);
    MultiplyTiles<0, 4, 6>();
    LoadTile<7>(b + 16, 4 * kBlock);
    PrefetchTile(b + kAhead + 16);
    MultiplyTiles<1, 4, 7>();
    LoadTile<5>(second + k, a_bytes);
    MultiplyTiles<2, 5, 6>();
    MultiplyTiles<3, 5, 7>();
    b += kBlock / 2 * kBlock;
  }
  StoreTile<0>(sums, bytes);
  StoreTile<1>(sums + 16, bytes);
  StoreTile<2>(sums + 16 * stride, bytes);
  StoreTile<3>(sums + 16 * stride + 16, bytes);
}

}  // namespace

// Rows [row, last_row) and columns [column, last_column) of the result, and
// terms [term, term + depth) of their sums.
struct AmxPlan::Part {
  int64_t row, last_row, column, last_column, term, depth;
};

struct AmxPlan::Workspace {
  uint32_t* panels;  // [columns / 32][depth / 2][32]
  uint16_t* rows;    // [32][depth]
  float* bias;       // [columns]
  float* sums;       // [32][columns]
};

AmxPlan::AmxPlan(const AmxProduct& product, int64_t threads)
    : product_(product) {
  // Columns of the first factor have to be transposed, those of the second one
  // nearly so; rows of neither.
  if (!HasRows(product.a) && product.bias == nullptr &&
      product.finish == nullptr && product.rows > product.columns) {
    is_transposed_ = true;
    product_.rows = product.columns;
    product_.columns = product.rows;
    product_.a = Transposed(product.b);
    product_.b = Transposed(product.a);
  }
  // Tiles are finished once: their sums are in one part.
  depth_of_part_ =
      EvenPart(product_.depth, product_.finish != nullptr ? product_.depth
                               : is_transposed_           ? kMostTransposedDepth
                                                          : kMostDepth);
  const int64_t most =
      std::clamp(kPackedBytes / (2 * depth_of_part_) / kBlock * kBlock, kBlock,
                 kMostColumns);
  columns_of_task_ = EvenPart(product_.columns, most);
  const int64_t across =
      (product_.columns + columns_of_task_ - 1) / columns_of_task_;
  const int64_t down =
      std::max<int64_t>(1, (kTasksOfThread * threads + across - 1) / across);
  rows_of_task_ =
      std::max(kFewestRows, RoundUp((product_.rows + down - 1) / down, kBlock));
}

bool AmxPlan::IsInPlace() const { return HasRows(product_.a); }

int64_t AmxPlan::PackedDepth() const { return RoundUp(product_.depth, kBlock); }

int64_t AmxPlan::packed_size() const {
  return IsInPlace() ? 0 : RoundUp(product_.rows, kBlock) * PackedDepth();
}

int64_t AmxPlan::packing_tasks() const {
  return IsInPlace() ? 0 : (PackedDepth() + kPackedDepth - 1) / kPackedDepth;
}

void AmxPlan::Pack(int64_t task, uint16_t* packed) const {
  const int64_t term = task * kPackedDepth;
  PackTransposed(
      WindowOf(Transposed(product_.a), term, 0, product_.depth, product_.rows),
      std::min(kPackedDepth, PackedDepth() - term), packed + term,
      PackedDepth());
}

int64_t AmxPlan::tasks() const {
  return ((product_.columns + columns_of_task_ - 1) / columns_of_task_) *
         ((product_.rows + rows_of_task_ - 1) / rows_of_task_);
}

int64_t AmxPlan::workspace_size() const {
  const int64_t depth = RoundUp(depth_of_part_, kBlock);
  return columns_of_task_ * depth / 2 + kBlock * depth / 2 + columns_of_task_ +
         kBlock * columns_of_task_;
}

void AmxPlan::Multiply(int64_t task, const uint16_t* packed,
                       float* workspace) const {
  const int64_t depth = RoundUp(depth_of_part_, kBlock);
  Workspace work = {};
  work.panels = reinterpret_cast<uint32_t*>(workspace);
  work.rows =
      reinterpret_cast<uint16_t*>(workspace + columns_of_task_ * depth / 2);
  work.bias = workspace + columns_of_task_ * depth / 2 + kBlock * depth / 2;
  work.sums = work.bias + columns_of_task_;
  const int64_t down = (product_.rows + rows_of_task_ - 1) / rows_of_task_;
  Part part = {.row = task % down * rows_of_task_,
               .last_row = 0,
               .column = task / down * columns_of_task_,
               .last_column = 0,
               .term = 0,
               .depth = 0};
  part.last_row = std::min(part.row + rows_of_task_, product_.rows);
  part.last_column = std::min(part.column + columns_of_task_, product_.columns);
  if (product_.bias != nullptr) {
    std::fill_n(work.bias, columns_of_task_, 0.0f);
    std::copy(product_.bias + part.column, product_.bias + part.last_column,
              work.bias);
  }
  BeginTiles();
  for (; part.term < product_.depth; part.term += depth_of_part_) {
    part.depth = std::min(depth_of_part_, product_.depth - part.term);
    MultiplyPart(part, packed, work);
  }
  EndTiles();
}

void AmxPlan::MultiplyPart(const Part& part, const uint16_t* packed,
                           const Workspace& work) const {
  PackPanels(part, work.panels);
  const int64_t depth = RoundUp(part.depth, kBlock);
  for (int64_t m = part.row; m < part.last_row; m += kBlock) {
    const uint16_t* a = packed + m * PackedDepth() + part.term;
    int64_t a_stride = PackedDepth();
    if (IsInPlace()) {
      a = product_.a.data + m * product_.a.row_stride + part.term;
      a_stride = product_.a.row_stride;
      if (m + kBlock > product_.rows || depth != part.depth) {
        PackRows(WindowOf(product_.a, m, part.term, part.last_row,
                          part.term + part.depth),
                 depth, work.rows);
        a = work.rows;
        a_stride = depth;
      }
    }
    MultiplyRows(part, m, a, a_stride, work);
  }
}

// Packs the columns of a part.
void AmxPlan::PackPanels(const Part& part, uint32_t* panels) const {
  const int64_t depth = RoundUp(part.depth, kBlock);
  const int64_t last_term = part.term + part.depth;
  if (HasRows(product_.b)) {
    PackPairs(WindowOf(product_.b, part.term, part.column, last_term,
                       part.last_column),
              depth, panels);
    return;
  }
  for (int64_t n = part.column; n < part.last_column; n += kBlock) {
    PackColumnPairs(WindowOf(Transposed(product_.b), n, part.term,
                             part.last_column, last_term),
                    depth, panels);
    panels += depth / 2 * kBlock;
  }
}

// Rows [row, row + 32) of a part, those of `a`.
void AmxPlan::MultiplyRows(const Part& part, int64_t row, const uint16_t* a,
                           int64_t a_stride, const Workspace& work) const {
  const int64_t depth = RoundUp(part.depth, kBlock);
  const int64_t step = EvenPart(depth, kDepthOfBlock);
  const bool adds = part.term > 0;
  const bool has_all_rows = !is_transposed_ && product_.finish == nullptr &&
                            row + kBlock <= part.last_row;
  const auto is_direct = [&](int64_t n) {
    return has_all_rows && n + kBlock <= part.last_column;
  };
  // Rows that begin in the same lines of the first-level cache do not stay
  // there.
  const bool is_copied = a_stride * 2 % 2048 == 0 && a != work.rows;
  for (int64_t k = 0; k < depth; k += step) {
    if (is_copied) {
      PackRows({.data = a + k,
                .stride = a_stride,
                .rows = kBlock,
                .columns = depth - k},
               step, work.rows);
    }
    for (int64_t n = part.column; n < part.last_column; n += kBlock) {
      const int64_t at = n - part.column;
      Block block = {.a = is_copied ? work.rows : a + k,
                     .a_stride = is_copied ? step : a_stride,
                     .b = work.panels + at * depth / 2 + k / 2 * kBlock,
                     .depth = std::min(step, depth - k),
                     .start = k > 0 ? Start::kSums
                              : product_.bias != nullptr && !adds
                                  ? Start::kBias
                                  : Start::kZero,
                     .bias = work.bias + at,
                     .sums = work.sums + at,
                     .stride = columns_of_task_};
      if (is_direct(n)) {
        block.start = adds ? Start::kSums : block.start;
        block.sums = product_.result + row * product_.columns + n;
        block.stride = product_.columns;
      }
      MultiplyBlock(block);
    }
  }
  if (product_.finish != nullptr) {
    return (*product_.finish)({.row = row,
                               .column = part.column,
                               .rows = std::min(kBlock, part.last_row - row),
                               .columns = part.last_column - part.column,
                               .sums = work.sums,
                               .stride = columns_of_task_});
  }
  if (is_transposed_) {
    return WriteTransposed(part, row, work.sums);
  }
  for (int64_t n = part.column; n < part.last_column; n += kBlock) {
    if (!is_direct(n)) {
      WriteSome(part, row, n, work.sums + n - part.column);
    }
  }
}

// Adds or writes the block at (row, column), as far as the part goes.
void AmxPlan::WriteSome(const Part& part, int64_t row, int64_t column,
                        const float* sums) const {
  const int64_t rows = std::min(kBlock, part.last_row - row);
  const int64_t columns = std::min(kBlock, part.last_column - column);
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = sums + r * columns_of_task_;
    float* const to = product_.result + (row + r) * product_.columns + column;
    for (int64_t c = 0; c < columns; ++c) {
      to[c] = part.term > 0 ? to[c] + from[c] : from[c];
    }
  }
}

// Adds or writes rows [row, row + 32) of a part, in `sums`, as columns.
ETC_AVX512 void AmxPlan::WriteTransposed(const Part& part, int64_t row,
                                         const float* sums) const {
  for (int64_t first = row; first < std::min(row + kBlock, part.last_row);
       first += 16) {
    const auto columns = static_cast<__mmask16>(
        FirstOf32(std::min<int64_t>(16, part.last_row - first)));
    for (int64_t n = part.column; n < part.last_column; n += 16) {
      __m512i block[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        block[i] = _mm512_loadu_si512(
            sums + (first - row + i) * columns_of_task_ + n - part.column);
      }
      Transpose(block);
      for (int64_t i = 0; i < std::min<int64_t>(16, part.last_column - n);
           ++i) {
        float* const to = product_.result + (n + i) * product_.rows + first;
        __m512 sum = _mm512_castsi512_ps(block[i]);
        if (part.term > 0) {
          sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(columns, to));
        }
        _mm512_mask_storeu_ps(to, columns, sum);
      }
    }
  }
}

}  // namespace etc::kernels

#endif
