#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_FORWARD_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_FORWARD_H_

#include <cmath>
#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

inline constexpr float kLog2OfE = 1.4426950408889634f;

// A tile of queries of one head, and the part of a thread in it: two rows of
// its warp's sixteen, and of each sixteen keys of a step, in QuadOrder, four.
struct QueryTile {
  ETC_DEVICE QueryTile(const Softmax& softmax, int splits)
      : tile(BlockX() / splits),
        split(BlockX() % splits),
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
  // Of [batch, heads, queries].
  ETC_DEVICE int64_t Index(const Softmax& softmax, int r) const {
    return static_cast<int64_t>(head_of_batch) * softmax.queries + Query(r);
  }

  int tile;
  int split;
  int batch;
  int head;
  int head_of_batch;
  int first;
  int warp_row;
  int first_key;  // among those of a step
};

// The key of element i (0 or 1) of fragment n, from a thread's first one.
ETC_DEVICE int KeyOf(int n, int i) { return n / 2 * 16 + n % 2 * 2 + i; }

// Rows of by_id of `rows` queries from `first` on.
ETC_DEVICE void LoadById(const Softmax& softmax, int head_of_batch, int first,
                         int rows, float* to) {
  const float* const from =
      softmax.by_id +
      (static_cast<int64_t>(head_of_batch) * softmax.queries + first) *
          softmax.ids;
  const int count = Least(rows, softmax.queries - first) * softmax.ids;
  for (int i = Thread(); i < count; i += kThreads) {
    to[i] = from[i];
  }
}

// Bits of the queries of a tile for the keys of a step, by 64 threads each.
ETC_DEVICE void LoadBits(const KeyBlock& block, int first_query, int key,
                         uint32_t* visible, uint32_t* special) {
  const int row = Thread() % kTile;
  if (Thread() < kTile) {
    visible[row] = VisibleBits(block, first_query + row, key);
  } else {
    special[row] = SpecialBits(block, first_query + row, key);
  }
}

// Bit of a thread's key KeyOf(n, i), of bits that are shifted to its first key.
ETC_DEVICE bool HasBit(uint32_t shifted, int n, int i) {
  return (shifted >> KeyOf(n, i) & 1u) != 0;
}

// Bits of the four adjacent keys of fragments n and n + 1.
ETC_DEVICE bool HasFour(uint32_t shifted, int n) {
  return (shifted >> KeyOf(n, 0) & 0xfu) == 0xfu;
}

// The sets of a thread's two rows for the keys of a step, shifted to its first
// key, and what all pairs of its warp have in common.
struct RowBits {
  template <int kColumns, int P>
  ETC_DEVICE RowBits(const Softmax& softmax, const QueryTile& tile,
                     const KeyBlock& block, int key,
                     const KeyStep<kColumns, P>& step) {
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      visible[r] = step.visible[tile.Row(r)] >> tile.first_key;
      special[r] = step.special[tile.Row(r)];
    }
    const int first = tile.first + tile.warp_row;
    has_ids = softmax.ids > 0 && block.rule != RelativeRule::kNone;
    far = has_ids
              ? FarOfAll(block.rule, {first, first + 15, key, key + kStep - 1},
                         softmax.max_distance, special[0] | special[1],
                         special[0] & special[1], ~0u)
              : -1;
    special[0] >>= tile.first_key;
    special[1] >>= tile.first_key;
  }

  uint32_t visible[2];
  uint32_t special[2];
  bool has_ids;
  int far;  // FarOfAll
};

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
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float* const row = first + r * 8 * places.query_stride;
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; n += 2) {
      if (is_aligned && HasFour(bits.visible[r], n)) {
        const Floats4 four =
            *reinterpret_cast<const Floats4*>(row + KeyOf(n, 0));
        ETC_UNROLL
        for (int i = 0; i < 4; ++i) {
          scores[n + i / 2][2 * r + i % 2] = four.values[i];
        }
      } else {
        ETC_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (HasBit(bits.visible[r], n + i / 2, i % 2)) {
            scores[n + i / 2][2 * r + i % 2] = row[KeyOf(n + i / 2, i % 2)];
          }
        }
      }
    }
  }
}
ETC_DEVICE void StoreScores(const float (&scores)[kStep / 8][4],
                            const RowBits& bits, const ScorePlaces& places,
                            float* first) {
  const bool is_aligned = places.IsAligned(first, 4);
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    float* const row = first + r * 8 * places.query_stride;
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; n += 2) {
      if (is_aligned && HasFour(bits.visible[r], n)) {
        *reinterpret_cast<Floats4*>(row + KeyOf(n, 0)) =
            Floats4{{scores[n][2 * r], scores[n][2 * r + 1],
                     scores[n + 1][2 * r], scores[n + 1][2 * r + 1]}};
      } else {
        ETC_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (HasBit(bits.visible[r], n + i / 2, i % 2)) {
            row[KeyOf(n + i / 2, i % 2)] = scores[n + i / 2][2 * r + i % 2];
          }
        }
      }
    }
  }
}

// own = score_scale (q . k + by_id[id]), in place.
ETC_DEVICE void FinishScores(const Softmax& softmax, const QueryTile& tile,
                             const KeyBlock& block, int key,
                             const RowBits& bits, const float* by_id,
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
      const int id = IdOf(block.rule, HasBit(bits.special[i / 2], n, i % 2),
                          delta + KeyOf(n, i % 2) - 8 * (i / 2),
                          softmax.max_distance, &far);
      scores[n][i] = (scores[n][i] + rows[i / 2][id]) * scale;
    }
  }
}

// Softmax and context of a tile of queries, a step of keys after the other
// (the online softmax of Milakov and Gimelshein 2018), and carried scores.
template <typename E, int kColumns>
ETC_KERNEL void ETC_BLOCKS(kColumns <= 64 ? 4 : 3)
    ForwardKernel(ForwardArguments arguments) {
  constexpr int P = kParts<E>;
  constexpr int kEights = kStep / 8;
  const Softmax& softmax = arguments.softmax;
  const int splits = arguments.splits.count;
  const QueryTile tile(softmax, splits);
  const QueryPassMemory<kColumns, P> memory(SharedMemory(), softmax.ids, false);
  LoadTile<kColumns, kTile>(RowsOf<E>(softmax.query, tile.batch, tile.head,
                                      softmax.queries, softmax.head_dim),
                            tile.first, memory.query);
  if (softmax.ids > 0) {
    LoadById(softmax, tile.head_of_batch, tile.first, kTile, memory.by_id);
  }
  const KeySteps steps = StepsOf(softmax, tile.batch, tile.first, tile.split,
                                 splits, memory.ranges);
  const bool has_context =
      arguments.context.data != nullptr || arguments.splits.sums != nullptr;
  const bool has_dropout = softmax.dropout_threshold > 0;
  const float exponent_scale = kLog2OfE / softmax.divisor;
  const uint64_t head_seed =
      DropoutHeadSeed(softmax.dropout_seed, tile.batch, tile.head);
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};
  float context[kColumns / 8][4];
  Clear(context);
  ETC_NO_UNROLL
  for (int b = 0; b < 2; ++b) {
    const KeyBlock block = KeyBlockOf(softmax, tile.batch, b);
    const HeadRows<E> key_rows =
        RowsOf<E>(softmax.key[b], tile.batch, tile.head, softmax.keys[b],
                  softmax.head_dim);
    const HeadRows<E> value_rows =
        RowsOf<E>(softmax.value[b], tile.batch, tile.head, softmax.keys[b],
                  softmax.value_dim);
    const auto load = [&](int step, int buffer) {
      const int key = steps.Key(b, step);
      const KeyStep<kColumns, P> to = memory.Step(buffer);
      LoadTile<kColumns, kStep, QuadOrder>(key_rows, key, to.key);
      if (has_context) {
        LoadTile<kColumns, kStep, QuadOrder>(value_rows, key, to.value);
      }
      LoadBits(block, tile.first, key, to.visible, to.special);
    };
    const auto compute = [&](int step, int buffer) {
      const int key = steps.Key(b, step);
      const KeyStep<kColumns, P> keys = memory.Step(buffer);
      const RowBits bits(softmax, tile, block, key, keys);
      if (!WarpAny((bits.visible[0] | bits.visible[1]) != 0)) {
        return;
      }
      const auto sees = [&](int n, int i) {
        return HasBit(bits.visible[i / 2], n, i % 2);
      };
      const ScorePlaces places(softmax, tile.head_of_batch, b);
      const int first_key = key + tile.first_key;
      const float* const previous_scores =
          places.Of(arguments.previous.rows[b], tile.Query(0), first_key);
      float* const carried_scores =
          places.Of(arguments.carried.rows[b], tile.Query(0), first_key);
      float previous[kEights][4];
      LoadScores(previous_scores, bits, places, previous);
      float scores[kEights][4];
      Clear(scores);
      MultiplyTransposed<kColumns, P, kTile, kStep>(memory.query, tile.warp_row,
                                                    keys.key, scores);
      FinishScores(softmax, tile, block, key, bits, memory.by_id, scores);
      if (carried_scores != nullptr) {
        const float sign = arguments.subtract ? -1.0f : 1.0f;
        float totals[kEights][4];
        ETC_UNROLL
        for (int n = 0; n < kEights; ++n) {
          ETC_UNROLL
          for (int i = 0; i < 4; ++i) {
            totals[n][i] = previous[n][i] + sign * scores[n][i];
          }
        }
        StoreScores(totals, bits, places, carried_scores);
      }
      if (!has_context) {
        return;
      }
      const float gate =
          softmax.gates[b] != nullptr ? softmax.gates[b][tile.head] : 1.0f;
      ETC_UNROLL
      for (int r = 0; r < 2; ++r) {
        float most = largest[r];
        ETC_UNROLL
        for (int n = 0; n < kEights; ++n) {
          ETC_UNROLL
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            scores[n][i] =
                sees(n, i) ? scores[n][i] + gate * previous[n][i] : -INFINITY;
            most = fmaxf(most, scores[n][i]);
          }
        }
        most = fmaxf(most, ShuffleXor(most, 1));
        most = fmaxf(most, ShuffleXor(most, 2));
        // A row that has seen nothing yet.
        const float base = most == -INFINITY ? 0.0f : most;
        const float shrink = Exp2((largest[r] - base) * exponent_scale);
        largest[r] = most;
        const DropoutRow dropout =
            has_dropout ? MakeDropoutRow(head_seed, tile.Query(r), b)
                        : DropoutRow{0, 0};
        float of_step = 0.0f;
        ETC_UNROLL
        for (int n = 0; n < kEights; ++n) {
          ETC_UNROLL
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            const float weight = Exp2((scores[n][i] - base) * exponent_scale);
            of_step += weight;
            scores[n][i] = weight;
            if (has_dropout) {
              scores[n][i] *=
                  WeightFactor(softmax, dropout, first_key + KeyOf(n, i % 2));
            }
          }
        }
        sum[r] = sum[r] * shrink + of_step;
        if (WarpAny(shrink != 1.0f)) {
          ETC_UNROLL
          for (int n = 0; n < kColumns / 8; ++n) {
            context[n][2 * r] *= shrink;
            context[n][2 * r + 1] *= shrink;
          }
        }
      }
      Multiply<kColumns, P, kStep>(scores, keys.value, context);
    };
    ForEachStep<P>(steps.Begin(b), steps.End(b), load, compute);
  }
  if (!has_context) {
    return;
  }
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float all = SumOfRow(sum[r]);
    const int query = tile.Query(r);
    if (query >= softmax.queries) {
      continue;
    }
    const int64_t index = tile.Index(softmax, r);
    if (splits > 1) {
      const int64_t rows =
          static_cast<int64_t>(softmax.batch) * softmax.heads * softmax.queries;
      const int64_t of_split = tile.split * rows + index;
      if (Thread() % 4 == 0) {
        arguments.split_max[of_split] = largest[r];
        arguments.split_sum[of_split] = all;
      }
      float* const to = arguments.splits.sums + of_split * softmax.value_dim;
      ETC_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        ETC_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (tile.Column(n, i) < softmax.value_dim) {
            to[tile.Column(n, i)] = context[n][2 * r + i];
          }
        }
      }
      continue;
    }
    const float inverse = all > 0.0f ? 1.0f / all : 0.0f;
    if (Thread() % 4 == 0) {
      arguments.row_max[index] = all > 0.0f ? largest[r] : 0.0f;
      arguments.row_inverse_sum[index] = inverse;
    }
    E* const to = RowsOf<E>(arguments.context, tile.batch, tile.head,
                            softmax.queries, softmax.value_dim)
                      .Row(query);
    ETC_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (tile.Column(n, i) < softmax.value_dim) {
          Store(to + tile.Column(n, i), context[n][2 * r + i] * inverse);
        }
      }
    }
  }
}

// Number of rows of a block of threads in which a warp has one.
inline constexpr int kWarpRows = kThreads / 32;

// Context and statistics from those of the splits, a warp for each query.
template <typename E>
ETC_KERNEL void JoinSplitsKernel(ForwardArguments arguments) {
  const Softmax& softmax = arguments.softmax;
  const int lane = Thread() % 32;
  const int query = BlockX() * kWarpRows + Thread() / 32;
  if (query >= softmax.queries) {
    return;
  }
  const int batch = BlockY() / softmax.heads;
  const int head = BlockY() % softmax.heads;
  const float exponent_scale = kLog2OfE / softmax.divisor;
  const int64_t rows =
      static_cast<int64_t>(softmax.batch) * softmax.heads * softmax.queries;
  const int64_t index =
      static_cast<int64_t>(BlockY()) * softmax.queries + query;
  float largest = -INFINITY;
  for (int s = 0; s < arguments.splits.count; ++s) {
    largest = fmaxf(largest, arguments.split_max[s * rows + index]);
  }
  const float base = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int s = 0; s < arguments.splits.count; ++s) {
    sum +=
        arguments.split_sum[s * rows + index] *
        Exp2((arguments.split_max[s * rows + index] - base) * exponent_scale);
  }
  const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
  if (lane == 0) {
    arguments.row_max[index] = base;
    arguments.row_inverse_sum[index] = inverse;
  }
  E* const to = RowsOf<E>(arguments.context, batch, head, softmax.queries,
                          softmax.value_dim)
                    .Row(query);
  for (int column = lane; column < softmax.value_dim; column += 32) {
    float total = 0.0f;
    for (int s = 0; s < arguments.splits.count; ++s) {
      total +=
          arguments.splits
              .sums[(s * rows + index) * softmax.value_dim + column] *
          Exp2((arguments.split_max[s * rows + index] - base) * exponent_scale);
    }
    Store(to + column, total * inverse);
  }
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_FORWARD_H_
