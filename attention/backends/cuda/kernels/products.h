#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PRODUCTS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PRODUCTS_H_

#include <cstddef>
#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"

namespace etc::kernels::cuda {

// Matrix products by the tensor cores' bfloat16, mma.m16n8k16. A float32 is the
// sum of three bfloat16 numbers, x0 + x1 + x2, whose 24 bits are its own; of
// the nine products of two such sums the six are taken that are not below
// float32's rounding.
//
// Fragments, of lane l of a warp, g = l / 4 and t = l % 4: element i of a tile
// of sums [16, 8] is at row g + 8 (i / 2) and column 2 t + i % 2.

ETC_DEVICE int Least(int a, int b) { return a < b ? a : b; }
ETC_DEVICE int Largest(int a, int b) { return a > b ? a : b; }

struct Bfloat16 {
  uint16_t bits;
};

template <typename E>
inline constexpr int kParts = 3;
template <>
inline constexpr int kParts<Bfloat16> = 1;

ETC_DEVICE float ToFloat(float x) { return x; }
ETC_DEVICE float ToFloat(Bfloat16 x) {
  return FloatOfBits(static_cast<uint32_t>(x.bits) << 16);
}
ETC_DEVICE void Store(float* to, float x) { *to = x; }
ETC_DEVICE void Store(Bfloat16* to, float x) {
  to->bits = static_cast<uint16_t>(PackBfloat16(x, 0.0f));
}

// Two numbers as their parts.
template <int P>
ETC_DEVICE void Split(float low, float high, uint32_t (&parts)[P]) {
  ETC_UNROLL
  for (int p = 0; p < P; ++p) {
    parts[p] = PackBfloat16(low, high);
    low -= FloatOfBits(parts[p] << 16);
    high -= FloatOfBits(parts[p] & 0xffff0000u);
  }
}

// A tile of rows of kColumns numbers in shared memory, part after part. Rows
// are 16 bytes longer than that, so that the eight of a matrix are in different
// banks.
template <int kColumns>
inline constexpr int kPitch = kColumns + 8;

template <int kColumns, int P>
constexpr size_t TileBytes(int rows) {
  return sizeof(uint16_t) * static_cast<size_t>(P * rows * kPitch<kColumns>);
}

// Rows of one head in the device's memory.
template <typename E>
struct HeadRows {
  ETC_DEVICE E* Row(int i) const {
    return data + static_cast<int64_t>(i) * stride;
  }
  // Returns true unless row `i` lies before the first or behind the last.
  ETC_DEVICE bool Has(int i) const {
    return static_cast<unsigned>(i) < static_cast<unsigned>(rows);
  }

  E* data;
  int stride;
  int rows;
  int columns;
  // Rows begin at multiples of 16 bytes and consist of whole ones.
  bool is_aligned;
};

template <typename E>
ETC_DEVICE HeadRows<E> RowsOf(const Rows& all, int batch, int head, int rows,
                              int columns) {
  E* const data =
      static_cast<E*>(all.data) + batch * all.batch + head * all.head;
  constexpr int64_t kOf16Bytes = 16 / sizeof(E);
  return {data, static_cast<int>(all.row), rows, columns,
          reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
              all.row % kOf16Bytes == 0 && columns % 8 == 0};
}

// Eight adjacent numbers of a row that is not aligned; zeros beyond its end.
template <typename E>
ETC_DEVICE_CALL void LoadEightByOne(const E* row, int column, int columns,
                                    float* values) {
  for (int i = 0; i < 8; ++i) {
    values[i] = column + i < columns ? ToFloat(row[column + i]) : 0.0f;
  }
}

// Eight adjacent numbers of a row, as parts; zeros beyond its end.
template <int P, typename E>
ETC_DEVICE void LoadEight(const HeadRows<E>& from, const E* row, int column,
                          Words4 (&parts)[P]) {
  float values[8];
  if (P == 3 && from.is_aligned) {
    ETC_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Words4 four = *reinterpret_cast<const Words4*>(
          reinterpret_cast<const float*>(row) + column + 4 * i);
      ETC_UNROLL
      for (int j = 0; j < 4; ++j) {
        values[4 * i + j] = FloatOfBits(four.words[j]);
      }
    }
  } else {
    LoadEightByOne(row, column, from.columns, values);
  }
  ETC_UNROLL
  for (int i = 0; i < 4; ++i) {
    uint32_t split[P];
    Split<P>(values[2 * i], values[2 * i + 1], split);
    ETC_UNROLL
    for (int p = 0; p < P; ++p) {
      parts[p].words[i] = split[p];
    }
  }
}

// Orders of the rows of a tile, which are the columns (or rows) of fragments:
// by them a thread has adjacent keys, whose scores are adjacent in memory.
//
// Row 8 n + 2 t + i of each 32 is number 16 (n / 2) + 4 t + 2 (n % 2) + i: lane
// t of four has twice four adjacent ones.
struct QuadOrder {
  static ETC_DEVICE int Of(int row) {
    const int n = row / 8;
    return n / 2 * 16 + row % 8 / 2 * 4 + n % 2 * 2 + row % 2;
  }
};
// Row g + 8 r of each 16 is number 2 g + r: a lane has two adjacent ones.
struct PairOrder {
  static ETC_DEVICE int Of(int row) {
    return row / 16 * 16 + row % 8 * 2 + row / 8 % 2;
  }
};
struct PlainOrder {
  static ETC_DEVICE int Of(int row) { return row; }
};

// Copies rows [begin, begin + kRows) into a tile, in an order, zeros where
// there are none. All threads of a block together; WaitForCopies and
// SyncThreads behind it.
template <int kColumns, int kRows, typename Order = PlainOrder, typename E>
ETC_DEVICE void LoadTile(const HeadRows<E>& from, int begin, uint16_t* tile) {
  constexpr int P = kParts<E>;
  constexpr int kEights = kColumns / 8;
  constexpr int kRowsAtOnce = kThreads / kEights;
  static_assert(kRows % kRowsAtOnce == 0);
  const int first_row = Thread() / kEights;
  const int column = Thread() % kEights * 8;
  const bool is_column = column < from.columns;
  if (P == 1 && from.is_aligned) {
    ETC_UNROLL
    for (int i = 0; i < kRows / kRowsAtOnce; ++i) {
      const int row = first_row + i * kRowsAtOnce;
      const int number = begin + Order::Of(row);
      CopyLater(tile + row * kPitch<kColumns> + column,
                from.Row(number) + column, is_column && from.Has(number));
    }
    return;
  }
  ETC_UNROLL
  for (int i = 0; i < kRows / kRowsAtOnce; ++i) {
    const int row = first_row + i * kRowsAtOnce;
    const int number = begin + Order::Of(row);
    Words4 parts[P];
    if (is_column && from.Has(number)) {
      LoadEight(from, from.Row(number), column, parts);
    } else {
      ETC_UNROLL
      for (int p = 0; p < P; ++p) {
        parts[p] = Words4{{0, 0, 0, 0}};
      }
    }
    ETC_UNROLL
    for (int p = 0; p < P; ++p) {
      *reinterpret_cast<Words4*>(tile + (p * kRows + row) * kPitch<kColumns> +
                                 column) = parts[p];
    }
  }
}

// Tiles of steps of a pass: of bfloat16 two, of which one is filled while the
// other is read. Parts of float32 are made from registers, and in one.
template <int P>
inline constexpr int kBuffers = P == 1 ? 2 : 1;

// Calls load(step, buffer), by which all threads fill a buffer in shared
// memory, and then compute(step, buffer) for the steps [begin, end).
template <int P, typename Load, typename Compute>
ETC_DEVICE void ForEachStep(int begin, int end, const Load& load,
                            const Compute& compute) {
  SyncThreads();  // others may be in their last step before
  if constexpr (kBuffers<P> == 1) {
    for (int step = begin; step < end; ++step) {
      load(step, 0);
      SyncThreads();
      compute(step, 0);
      SyncThreads();
    }
  } else {
    if (begin < end) {
      load(begin, 0);
    }
    for (int step = begin; step < end; ++step) {
      const int buffer = (step - begin) % 2;
      WaitForCopies();
      SyncThreads();
      if (step + 1 < end) {
        load(step + 1, 1 - buffer);
      }
      compute(step, buffer);
    }
  }
}

// c += a b of all parts, the small ones first.
template <int P>
ETC_DEVICE void MultiplyAddParts(float (&c)[4], const uint32_t (&a)[P][4],
                                 const uint32_t (&b)[P][2]) {
  ETC_UNROLL
  for (int sum = P - 1; sum >= 0; --sum) {
    ETC_UNROLL
    for (int p = 0; p <= sum; ++p) {
      MultiplyAddTile(c, a[p], b[sum - p]);
    }
  }
}

// sums[16, 8 n] += rows [row, row + 16) of `left` times the rows of `right`
// transposed, of which there are kRightRows = 8 n.
template <int kColumns, int P, int kLeftRows, int kRightRows>
ETC_DEVICE void MultiplyTransposed(const uint16_t* left, int row,
                                   const uint16_t* right,
                                   float (&sums)[kRightRows / 8][4]) {
  constexpr int kRow = kPitch<kColumns>;
  const int lane = Thread() % 32;
  const uint16_t* const of_left =
      left + (row + lane % 16) * kRow + lane / 16 * 8;
  const uint16_t* const of_right =
      right + (lane % 8 + lane / 16 * 8) * kRow + lane / 8 % 2 * 8;
  ETC_UNROLL
  for (int k = 0; k < kColumns; k += 16) {
    uint32_t a[P][4];
    ETC_UNROLL
    for (int p = 0; p < P; ++p) {
      LoadMatrices(a[p], of_left + p * kLeftRows * kRow + k);
    }
    ETC_UNROLL
    for (int n = 0; n < kRightRows / 8; n += 2) {
      uint32_t b[2][P][2];
      ETC_UNROLL
      for (int p = 0; p < P; ++p) {
        uint32_t both[4];
        LoadMatrices(both, of_right + (p * kRightRows + 8 * n) * kRow + k);
        b[0][p][0] = both[0];
        b[0][p][1] = both[1];
        b[1][p][0] = both[2];
        b[1][p][1] = both[3];
      }
      MultiplyAddParts<P>(sums[n], a, b[0]);
      MultiplyAddParts<P>(sums[n + 1], a, b[1]);
    }
  }
}

// Fragments of two adjacent tiles b of all parts, which are `part_stride`
// numbers apart, of rows of k; `row` is the thread's.
template <int P>
ETC_DEVICE void LoadTransposedPairs(const uint16_t* row, int part_stride,
                                    uint32_t (&b)[2][P][2]) {
  ETC_UNROLL
  for (int p = 0; p < P; ++p) {
    uint32_t both[4];
    LoadMatricesTransposed(both, row + p * part_stride);
    b[0][p][0] = both[0];
    b[0][p][1] = both[1];
    b[1][p][0] = both[2];
    b[1][p][1] = both[3];
  }
}

// sums[16, kColumns] += values[16, kRightRows] times the rows of `right`.
template <int kColumns, int P, int kRightRows>
ETC_DEVICE void Multiply(const float (&values)[kRightRows / 8][4],
                         const uint16_t* right,
                         float (&sums)[kColumns / 8][4]) {
  constexpr int kRow = kPitch<kColumns>;
  const int lane = Thread() % 32;
  const uint16_t* const of_right =
      right + (lane % 8 + lane / 8 % 2 * 8) * kRow + lane / 16 * 8;
  ETC_UNROLL
  for (int k = 0; k < kRightRows; k += 16) {
    uint32_t a[P][4];
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float(&from)[4] = values[k / 8 + i / 2];
      uint32_t parts[P];
      Split<P>(from[i % 2 * 2], from[i % 2 * 2 + 1], parts);
      ETC_UNROLL
      for (int p = 0; p < P; ++p) {
        a[p][i] = parts[p];
      }
    }
    ETC_UNROLL
    for (int n = 0; n < kColumns / 8; n += 2) {
      uint32_t b[2][P][2];
      LoadTransposedPairs<P>(of_right + k * kRow + 8 * n, kRightRows * kRow, b);
      MultiplyAddParts<P>(sums[n], a, b[0]);
      MultiplyAddParts<P>(sums[n + 1], a, b[1]);
    }
  }
}

template <int N>
ETC_DEVICE void Clear(float (&sums)[N][4]) {
  ETC_UNROLL
  for (int n = 0; n < N; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      sums[n][i] = 0.0f;
    }
  }
}

struct alignas(8) Floats2 {
  float values[2];
};
struct alignas(16) Floats4 {
  float values[4];
};

// Writes row r of a thread's two, times a factor, to the row at `to`.
template <int kColumns, typename Value>
ETC_DEVICE void StoreRow(const float (&sums)[kColumns / 8][4], int r,
                         int columns, float factor, Value* to) {
  ETC_UNROLL
  for (int n = 0; n < kColumns / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int column = 8 * n + 2 * (Thread() % 4) + i;
      if (column < columns) {
        Store(to + column, sums[n][2 * r + i] * factor);
      }
    }
  }
}

// The sum of a value of the four lanes that share rows, in all of them.
ETC_DEVICE float SumOfRow(float x) {
  x += ShuffleXor(x, 1);
  return x + ShuffleXor(x, 2);
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_PRODUCTS_H_
