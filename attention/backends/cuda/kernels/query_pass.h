#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_PASS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_PASS_H_

#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

// The common parts of the passes over tiles of queries.

inline constexpr float kLog2OfE = 1.4426950408889634f;

// A tile of queries of one head, and the part of a thread in it: two rows of
// its warp's sixteen, and of each sixteen keys of a step, in QuadOrder, four.
struct QueryTile {
  ETC_DEVICE QueryTile(const Softmax& softmax, int number_of_splits)
      : tile(BlockX() / number_of_splits),
        split(BlockX() % number_of_splits),
        splits(number_of_splits),
        batch(BlockY() / softmax.heads),
        head(BlockY() % softmax.heads),
        head_of_batch(BlockY()),
        first(kTile * tile),
        warp_row(Thread() / 32 * 16),
        first_key(4 * (Thread() % 4)) {}

  // Row r = 0, 1 in the tile, and as a query.
  ETC_DEVICE int Row(int r) const {
    return warp_row + Thread() % 32 / 4 + 8 * r;
  }
  ETC_DEVICE int Query(int r) const { return first + Row(r); }
  // Column of element i (0 or 1) of fragment n of products with values.
  ETC_DEVICE int Column(int n, int i) const {
    return 8 * n + 2 * (Thread() % 4) + i;
  }
  // Index in [batch, heads, queries].
  ETC_DEVICE int64_t Index(const Softmax& softmax, int r) const {
    return static_cast<int64_t>(head_of_batch) * softmax.queries + Query(r);
  }

  int tile;
  int split;
  int splits;
  int batch;
  int head;
  int head_of_batch;
  int first;
  int warp_row;
  int first_key;  // among those of a step
};

// The key of element i (0 or 1) of fragment n, from a thread's first one.
ETC_DEVICE int KeyOf(int n, int i) { return n / 2 * 16 + n % 2 * 2 + i; }

// Bit of a thread's key KeyOf(n, i), of bits that are shifted to its first key.
ETC_DEVICE bool HasBit(uint32_t shifted, int n, int i) {
  return (shifted >> KeyOf(n, i) & 1u) != 0;
}

// Bits of the four adjacent keys of fragments n and n + 1.
ETC_DEVICE bool HasFour(uint32_t shifted, int n) {
  return (shifted >> KeyOf(n, 0) & 0xfu) == 0xfu;
}

// The sets of a thread's two rows in one block of keys.
struct RowSetsOfThread {
  ETC_DEVICE RowSetsOfThread(const KeyBlock& keys, const QueryTile& tile)
      : block(keys),
        visible{RangeOf(keys, tile.Query(0)), RangeOf(keys, tile.Query(1))},
        special{SpecialRangeOf(keys, tile.Query(0)),
                SpecialRangeOf(keys, tile.Query(1))} {}

  // Bits of the 32 keys from `key` on.
  ETC_DEVICE uint32_t Visible(const QueryTile& tile, int r, int key) const {
    return Bits(block.visible, visible[r], tile.Query(r), key);
  }
  ETC_DEVICE uint32_t Special(const QueryTile& tile, int r, int key) const {
    return Bits(block.special, special[r], tile.Query(r), key);
  }
  static ETC_DEVICE uint32_t Bits(const RowSets& sets, const KeyRange& range,
                                  int query, int key) {
    const uint32_t of_range = BitsOfRange(range, key);
    return sets.is_single || of_range == 0
               ? of_range
               : of_range & BitsOfRuns(sets, query, key);
  }

  KeyBlock block;
  KeyRange visible[2];
  KeyRange special[2];
};

// The bits of a thread's two rows for the keys of a step, shifted to its first
// key, and what all pairs of its warp have in common.
struct RowBits {
  RowBits() = default;
  ETC_DEVICE RowBits(const Softmax& softmax, const QueryTile& tile,
                     const RowSetsOfThread& sets, int key) {
    visible[0] = sets.Visible(tile, 0, key);
    visible[1] = sets.Visible(tile, 1, key);
    sees_any = WarpAny((visible[0] | visible[1]) != 0);
    sees_all = !WarpAny((visible[0] & visible[1]) != ~0u);
    visible[0] >>= tile.first_key;
    visible[1] >>= tile.first_key;
    const RelativeRule rule = sets.block.rule;
    has_ids = softmax.ids > 0 && rule != RelativeRule::kNone;
    far = -1;
    if (has_ids && sees_any) {
      special[0] = sets.Special(tile, 0, key);
      special[1] = sets.Special(tile, 1, key);
      const int first = tile.first + tile.warp_row;
      far = FarOfAll(rule, {first, first + 15, key, key + kStep - 1},
                     softmax.max_distance, special[0] | special[1],
                     special[0] & special[1], ~0u);
      special[0] >>= tile.first_key;
      special[1] >>= tile.first_key;
    }
  }

  uint32_t visible[2];
  uint32_t special[2];
  bool sees_any;  // of the warp: any pair, all pairs
  bool sees_all;
  bool has_ids;
  int far;  // FarOfAll
};

// Row r of the four adjacent keys of fragments n and n + 1.
ETC_DEVICE void LoadFour(const float* from, int r, int n,
                         float (&scores)[kStep / 8][4]) {
  const Floats4 four = *reinterpret_cast<const Floats4*>(from);
  ETC_UNROLL
  for (int i = 0; i < 4; ++i) {
    scores[n + i / 2][2 * r + i % 2] = four.values[i];
  }
}
ETC_DEVICE void StoreFour(const float (&scores)[kStep / 8][4], int r, int n,
                          float* to) {
  *reinterpret_cast<Floats4*>(to) =
      Floats4{{scores[n][2 * r], scores[n][2 * r + 1], scores[n + 1][2 * r],
               scores[n + 1][2 * r + 1]}};
}

// The scores of a thread's pairs that see each other, others 0; `first` is the
// place of its first query and key, null: all are 0.
ETC_DEVICE void LoadScores(const float* first, const RowBits& bits,
                           const ScorePlaces& places,
                           float (&scores)[kStep / 8][4]) {
  Clear(scores);
  if (first == nullptr) {
    return;
  }
  const bool is_aligned = places.IsAligned(first, 4);
  const int rows[2] = {0, 8 * places.query_stride};
  if (is_aligned && bits.sees_all) {
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      ETC_UNROLL
      for (int n = 0; n < kStep / 8; n += 2) {
        LoadFour(first + rows[r] + KeyOf(n, 0), r, n, scores);
      }
    }
    return;
  }
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float* const row = first + rows[r];
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; n += 2) {
      if (is_aligned && HasFour(bits.visible[r], n)) {
        LoadFour(row + KeyOf(n, 0), r, n, scores);
        continue;
      }
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (HasBit(bits.visible[r], n + i / 2, i % 2)) {
          scores[n + i / 2][2 * r + i % 2] = row[KeyOf(n + i / 2, i % 2)];
        }
      }
    }
  }
}
ETC_DEVICE void StoreScores(const float (&scores)[kStep / 8][4],
                            const RowBits& bits, const ScorePlaces& places,
                            float* first) {
  const bool is_aligned = places.IsAligned(first, 4);
  const int rows[2] = {0, 8 * places.query_stride};
  if (is_aligned && bits.sees_all) {
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      ETC_UNROLL
      for (int n = 0; n < kStep / 8; n += 2) {
        StoreFour(scores, r, n, first + rows[r] + KeyOf(n, 0));
      }
    }
    return;
  }
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    float* const row = first + rows[r];
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; n += 2) {
      if (is_aligned && HasFour(bits.visible[r], n)) {
        StoreFour(scores, r, n, row + KeyOf(n, 0));
        continue;
      }
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (HasBit(bits.visible[r], n + i / 2, i % 2)) {
          row[KeyOf(n + i / 2, i % 2)] = scores[n + i / 2][2 * r + i % 2];
        }
      }
    }
  }
}

// own = score_scale (q . k + by_id[id]), in place.
ETC_DEVICE void FinishScores(const Softmax& softmax, const QueryTile& tile,
                             RelativeRule rule, int key, const RowBits& bits,
                             const float* by_id,
                             float (&scores)[kStep / 8][4]) {
  const float* const rows[2] = {by_id + tile.Row(0) * softmax.ids,
                                by_id + tile.Row(1) * softmax.ids};
  const float scale = softmax.score_scale;
  if (!bits.has_ids || bits.far >= 0) {
    float of_row[2] = {0.0f, 0.0f};
    if (bits.has_ids) {
      const int id = IdOfFar(bits.far, softmax.max_distance);
      of_row[0] = rows[0][id];
      of_row[1] = rows[1][id];
    }
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = (scores[n][i] + of_row[i / 2]) * scale;
      }
    }
    return;
  }
  const int delta = key + tile.first_key - tile.Query(0);
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      int far;
      const int id = IdOf(rule, HasBit(bits.special[i / 2], n, i % 2),
                          delta + KeyOf(n, i % 2) - 8 * (i / 2),
                          softmax.max_distance, &far);
      scores[n][i] = (scores[n][i] + rows[i / 2][id]) * scale;
    }
  }
}

// Multiplies numbers of row r by the factors of dropout.
ETC_DEVICE void DropWeights(const Softmax& softmax, const QueryTile& tile,
                            int r, int block, int key,
                            float (&weights)[kStep / 8][4]) {
  const DropoutRow row =
      MakeDropoutRow(DropoutHeadSeed(softmax.dropout_seed, tile.batch,
                                     softmax.first_head + tile.head),
                     tile.Query(r), block);
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 2; ++i) {
      weights[n][2 * r + i] *=
          WeightFactor(softmax, row, key + tile.first_key + KeyOf(n, i));
    }
  }
}

// One block of keys, to a thread of a tile of queries.
template <typename E>
struct KeysOfTile {
  ETC_DEVICE KeysOfTile(const Softmax& softmax, const QueryTile& tile,
                        int block)
      : number(block),
        sets(KeyBlockOf(softmax, tile.batch, block), tile),
        places(softmax, tile.head_of_batch, block),
        key(RowsOf<E>(softmax.key[block], tile.batch, tile.head,
                      softmax.keys[block], softmax.head_dim)),
        value(RowsOf<E>(softmax.value[block], tile.batch, tile.head,
                        softmax.keys[block], softmax.value_dim)) {}

  int number;
  RowSetsOfThread sets;
  ScorePlaces places;
  HeadRows<E> key;
  HeadRows<E> value;
};

// Goes through the keys of both blocks that queries of a tile see, of those the
// ones of its split: loads keys and, if asked, values, and calls compute(keys,
// key, step) for the kStep keys from `key` on.
template <typename E, int kColumns, typename Compute>
ETC_DEVICE void ForEachKeyStep(
    const Softmax& softmax, const QueryTile& tile,
    const QueryPassMemory<kColumns, kParts<E>>& memory, bool has_values,
    const Compute& compute) {
  const KeySteps steps = StepsOf(softmax, tile.batch, tile.first, tile.split,
                                 tile.splits, memory.ranges);
  ETC_NO_UNROLL
  for (int block = 0; block < 2; ++block) {
    const KeysOfTile<E> keys(softmax, tile, block);
    ForEachStep<kParts<E>>(
        steps.Begin(block), steps.End(block),
        [&](int step, int buffer) {
          const auto to = memory.Step(buffer);
          const int key = steps.Key(block, step);
          LoadTile<kColumns, kStep, QuadOrder>(keys.key, key, to.key);
          if (has_values) {
            LoadTile<kColumns, kStep, QuadOrder>(keys.value, key, to.value);
          }
        },
        [&](int step, int buffer) {
          compute(keys, steps.Key(block, step), memory.Step(buffer));
        });
  }
}

// Splits of a row of one head, [splits, batch, heads, queries].
ETC_DEVICE int64_t SplitIndex(const Softmax& softmax, const QueryTile& tile,
                              int r) {
  const int64_t rows =
      static_cast<int64_t>(softmax.batch) * softmax.heads * softmax.queries;
  return tile.split * rows + tile.Index(softmax, r);
}

// Fills `tile_of_ids` with the rows of E of kStep ids after the other, and
// calls function(first) for those from id `first` on.
template <typename E, int kColumns, typename Function>
ETC_DEVICE void ForEachTileOfIds(const Softmax& softmax, const QueryTile& tile,
                                 uint16_t* tile_of_ids,
                                 const Function& function) {
  const HeadRows<E> embedding =
      RowsOf<E>(softmax.embedding, 0, tile.head, softmax.ids, softmax.head_dim);
  for (int first = 0; first < softmax.ids; first += kStep) {
    SyncThreads();
    LoadTile<kColumns, kStep>(embedding, first, tile_of_ids);
    WaitForCopies();
    SyncThreads();
    function(first);
  }
}

// by_id of the queries of a tile, [kTile][ids]: q . E[id] + bias[id], by the
// same products as those of keys, of which `tile_of_ids` holds some rows.
template <typename E, int kColumns>
ETC_DEVICE void ComputeById(const Softmax& softmax, const QueryTile& tile,
                            const uint16_t* query, uint16_t* tile_of_ids,
                            float* by_id) {
  constexpr int P = kParts<E>;
  ForEachTileOfIds<E, kColumns>(softmax, tile, tile_of_ids, [&](int first) {
    float sums[kStep / 8][4];
    Clear(sums);
    MultiplyTransposed<kColumns, P, kTile, kStep>(query, tile.warp_row,
                                                  tile_of_ids, sums);
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int id = first + tile.Column(n, i % 2);
        if (id < softmax.ids) {
          by_id[tile.Row(i / 2) * softmax.ids + id] =
              sums[n][i] + softmax.bias[id * softmax.heads + tile.head];
        }
      }
    }
  });
  SyncThreads();
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_PASS_H_
