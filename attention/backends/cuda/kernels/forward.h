#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_FORWARD_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_FORWARD_H_

#include <cmath>
#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/query_pass.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

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
    ComputeById<E, kColumns>(softmax, tile, memory.query, memory.Step(0).key,
                             memory.by_id);
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
    const RowSetsOfThread sets(KeyBlockOf(softmax, tile.batch, b), tile);
    const ScorePlaces places(softmax, tile.head_of_batch, b);
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
    };
    const auto compute = [&](int step, int buffer) {
      const int key = steps.Key(b, step);
      const RowBits bits(softmax, tile, sets, key);
      if (!bits.sees_any) {
        return;
      }
      const KeyStep<kColumns, P> keys = memory.Step(buffer);
      const auto sees = [&](int n, int i) {
        return HasBit(bits.visible[i / 2], n, i % 2);
      };
      const int first_key = key + tile.first_key;
      float* const carried_scores =
          places.Of(arguments.carried.rows[b], tile.Query(0), first_key);
      float previous[kEights][4];
      LoadScores(
          places.Of(arguments.previous.rows[b], tile.Query(0), first_key), bits,
          places, previous);
      float scores[kEights][4];
      Clear(scores);
      MultiplyTransposed<kColumns, P, kTile, kStep>(memory.query, tile.warp_row,
                                                    keys.key, scores);
      FinishScores(softmax, tile, sets.block.rule, key, bits, memory.by_id,
                   scores);
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
