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
// its warp's sixteen, and of each eight keys two.
struct QueryTile {
  ETC_DEVICE QueryTile(const Softmax& softmax, int splits)
      : tile(BlockX() / splits),
        split(BlockX() % splits),
        batch(BlockY() / softmax.heads),
        head(BlockY() % softmax.heads),
        head_of_batch(BlockY()),
        first(kTile * tile),
        warp_row(Thread() / 32 * 16),
        column(2 * (Thread() % 4)) {}

  // Row r = 0, 1 in the tile, and as a query.
  ETC_DEVICE int Row(int r) const {
    return warp_row + Thread() % 32 / 4 + 8 * r;
  }
  ETC_DEVICE int Query(int r) const { return first + Row(r); }
  // Key number i (0 or 1) of eight number n, of a step.
  ETC_DEVICE int Column(int n, int i) const { return 8 * n + column + i; }
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
  int column;
};

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

// own = score_scale (q . k + by_id[id]), in place.
ETC_DEVICE void FinishScores(const Softmax& softmax, const QueryTile& tile,
                             const KeyBlock& block, int key,
                             const uint32_t (&special)[2], const float* by_id,
                             float (&scores)[kStep / 8][4]) {
  const bool has_ids = softmax.ids > 0 && block.rule != RelativeRule::kNone;
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2;
      const int column = tile.Column(n, i % 2);
      float score = scores[n][i];
      if (has_ids) {
        int far;
        const int id =
            IdOf(block.rule, (special[r] >> column & 1u) != 0,
                 key + column - tile.Query(r), softmax.max_distance, &far);
        score += by_id[tile.Row(r) * softmax.ids + id];
      }
      scores[n][i] = score * softmax.score_scale;
    }
  }
}

// Softmax and context of a tile of queries, a step of keys after the other
// (the online softmax of Milakov and Gimelshein 2018), and carried scores.
template <typename E, int kColumns>
ETC_KERNEL void ForwardKernel(ForwardArguments arguments) {
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
  for (int step = steps.begin; step < steps.end; ++step) {
    const int b = steps.Block(step);
    const int key = steps.Key(step);
    const KeyBlock block = KeyBlockOf(softmax, tile.batch, b);
    SyncThreads();  // all have read the step before
    LoadTile<kColumns, kStep>(RowsOf<E>(softmax.key[b], tile.batch, tile.head,
                                        softmax.keys[b], softmax.head_dim),
                              key, memory.key);
    if (has_context) {
      LoadTile<kColumns, kStep>(
          RowsOf<E>(softmax.value[b], tile.batch, tile.head, softmax.keys[b],
                    softmax.value_dim),
          key, memory.value);
    }
    LoadBits(block, tile.first, key, memory.visible, memory.special);
    SyncThreads();
    const uint32_t visible[2] = {memory.visible[tile.Row(0)],
                                 memory.visible[tile.Row(1)]};
    const uint32_t special[2] = {memory.special[tile.Row(0)],
                                 memory.special[tile.Row(1)]};
    if (!WarpAny((visible[0] | visible[1]) != 0)) {
      continue;
    }
    const auto sees = [&](int n, int i) {
      return (visible[i / 2] >> tile.Column(n, i % 2) & 1u) != 0;
    };
    const float* const previous_rows[2] = {
        ScoreRow(arguments.previous, softmax, tile.head_of_batch, tile.Query(0),
                 b),
        ScoreRow(arguments.previous, softmax, tile.head_of_batch, tile.Query(1),
                 b)};
    float previous[kEights][4];
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        previous[n][i] = previous_rows[0] != nullptr && sees(n, i)
                             ? previous_rows[i / 2][key + tile.Column(n, i % 2)]
                             : 0.0f;
      }
    }
    float scores[kEights][4];
    Clear(scores);
    MultiplyTransposed<kColumns, P, kTile, kStep>(memory.query, tile.warp_row,
                                                  memory.key, scores);
    FinishScores(softmax, tile, block, key, special, memory.by_id, scores);
    float* const carried_rows[2] = {
        ScoreRow(arguments.carried, softmax, tile.head_of_batch, tile.Query(0),
                 b),
        ScoreRow(arguments.carried, softmax, tile.head_of_batch, tile.Query(1),
                 b)};
    const float gate =
        softmax.gates[b] != nullptr ? softmax.gates[b][tile.head] : 1.0f;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float own = scores[n][i];
        const float total =
            arguments.subtract ? previous[n][i] - own : previous[n][i] + own;
        if (carried_rows[0] != nullptr && sees(n, i)) {
          carried_rows[i / 2][key + tile.Column(n, i % 2)] = total;
        }
        const float logit =
            softmax.gates[b] != nullptr ? own + gate * previous[n][i] : total;
        scores[n][i] = sees(n, i) ? logit : -INFINITY;
      }
    }
    if (!has_context) {
      continue;
    }
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      float most = largest[r];
      ETC_UNROLL
      for (int n = 0; n < kEights; ++n) {
        most = fmaxf(most, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
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
          scores[n][i] =
              has_dropout ? weight * WeightFactor(softmax, dropout,
                                                  key + tile.Column(n, i % 2))
                          : weight;
        }
      }
      sum[r] = sum[r] * shrink + of_step;
      ETC_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        context[n][2 * r] *= shrink;
        context[n][2 * r + 1] *= shrink;
      }
    }
    Multiply<kColumns, P, kStep>(scores, memory.value, context);
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

// Context and statistics from those of the splits, a warp for each query.
template <typename E>
ETC_KERNEL void JoinSplitsKernel(ForwardArguments arguments) {
  const Softmax& softmax = arguments.softmax;
  const int lane = Thread() % 32;
  const int query = BlockX() * (kThreads / 32) + Thread() / 32;
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
