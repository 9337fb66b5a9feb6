#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_

#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/forward.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

struct KeyGradientArguments {
  BackwardArguments backward;
  int block;
};

// A tile of keys of one block and head, and the part of a thread in it: of its
// warp's sixteen keys two, of each eight queries two.
struct KeyTile {
  ETC_DEVICE KeyTile(const Softmax& softmax, int splits)
      : split(BlockX() % splits),
        batch(BlockY() / softmax.heads),
        head(BlockY() % softmax.heads),
        head_of_batch(BlockY()),
        first(BlockX() / splits * kTile),
        warp_row(Thread() / 32 * 16),
        column(2 * (Thread() % 4)) {}

  // Key r = 0, 1 in the tile.
  ETC_DEVICE int Row(int r) const {
    return warp_row + Thread() % 32 / 4 + 8 * r;
  }
  // Query number i (0 or 1) of eight number n, of a step.
  ETC_DEVICE int Column(int n, int i) const { return 8 * n + column + i; }

  int split;
  int batch;
  int head;
  int head_of_batch;
  int first;
  int warp_row;
  int column;
};

// Everything about the queries of a step that its pairs need.
template <int kColumns, int P>
ETC_DEVICE void LoadQueries(const BackwardArguments& arguments,
                            const KeyTile& tile, const KeyBlock& block, int b,
                            int first, uint64_t head_seed,
                            const KeyPassMemory<kColumns, P>& memory) {
  const Softmax& softmax = arguments.softmax;
  const int row = Thread() % kStep;
  const int query = first + row;
  if (Thread() < 2 * kStep) {
    const int half = Thread() / kStep;
    memory.visible[Thread()] =
        VisibleBits(block, query, tile.first + 32 * half);
    memory.special[Thread()] =
        SpecialBits(block, query, tile.first + 32 * half);
  } else if (Thread() < 3 * kStep) {
    const int64_t index =
        static_cast<int64_t>(tile.head_of_batch) * softmax.queries + query;
    const bool is_query = query < softmax.queries;
    memory.row_max[row] = is_query ? arguments.row_max[index] : 0.0f;
    memory.row_inverse_sum[row] =
        is_query ? arguments.row_inverse_sum[index] : 0.0f;
    memory.context_dot[row] = is_query ? arguments.context_dot[index] : 0.0f;
  } else if (softmax.dropout_threshold > 0) {
    memory.dropout[row] = MakeDropoutRow(head_seed, query, b);
  }
}

// The gradients that belong to keys, a step of queries after the other: those
// of keys and values. All is as in QueryGradientsKernel, transposed.
template <typename E, int kColumns>
ETC_KERNEL void KeyGradientsKernel(KeyGradientArguments all) {
  constexpr int P = kParts<E>;
  constexpr int kEights = kStep / 8;
  const BackwardArguments& arguments = all.backward;
  const Softmax& softmax = arguments.softmax;
  const int b = all.block;
  const int splits = arguments.key_splits.count;
  const KeyTile tile(softmax, splits);
  const KeyBlock block = KeyBlockOf(softmax, tile.batch, b);
  const KeyPassMemory<kColumns, P> memory(SharedMemory(), softmax.ids);
  const int keys = softmax.keys[b];
  LoadTile<kColumns, kTile>(
      RowsOf<E>(softmax.key[b], tile.batch, tile.head, keys, softmax.head_dim),
      tile.first, memory.key);
  LoadTile<kColumns, kTile>(RowsOf<E>(softmax.value[b], tile.batch, tile.head,
                                      keys, softmax.value_dim),
                            tile.first, memory.value);
  // Queries whose window has keys of the tile.
  const int from = block.before < 0 ? 0 : Largest(tile.first - block.after, 0);
  const int to = block.before < 0 ? softmax.queries
                                  : Least(tile.first + kTile + block.before,
                                          softmax.queries);
  const int steps = Largest(to - from + kStep - 1, 0) / kStep;
  const int step_begin = steps * tile.split / splits;
  const int step_end = steps * (tile.split + 1) / splits;
  const bool has_carried = arguments.carried.rows[b] != nullptr;
  const bool is_gated = softmax.gates[b] != nullptr;
  const bool needs_own = !has_carried || is_gated;
  const bool has_ids = softmax.ids > 0 && block.rule != RelativeRule::kNone;
  const bool has_dropout = softmax.dropout_threshold > 0;
  const float exponent_scale = kLog2OfE / softmax.divisor;
  const float inverse_divisor = 1.0f / softmax.divisor;
  const float gate = is_gated ? softmax.gates[b][tile.head] : 1.0f;
  const uint64_t head_seed =
      DropoutHeadSeed(softmax.dropout_seed, tile.batch, tile.head);
  float key_gradient[kColumns / 8][4];
  float value_gradient[kColumns / 8][4];
  Clear(key_gradient);
  Clear(value_gradient);
  for (int step = step_begin; step < step_end; ++step) {
    const int first = from + kStep * step;
    SyncThreads();
    LoadQueries(arguments, tile, block, b, first, head_seed, memory);
    LoadTile<kColumns, kStep>(RowsOf<E>(softmax.query, tile.batch, tile.head,
                                        softmax.queries, softmax.head_dim),
                              first, memory.query);
    LoadTile<kColumns, kStep>(
        RowsOf<E>(arguments.context_gradient, tile.batch, tile.head,
                  softmax.queries, softmax.value_dim),
        first, memory.context_gradient);
    if (needs_own && has_ids) {
      LoadById(softmax, tile.head_of_batch, first, kStep, memory.by_id);
    }
    SyncThreads();
    // Bits of the thread's queries for the warp's half of the keys: sixteen of
    // those 32 are the warp's.
    const int half = tile.warp_row / 32;
    const int first_bit = tile.warp_row % 32;
    uint32_t visible[kEights][2];
    uint32_t any = 0;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        visible[n][i] =
            memory.visible[half * kStep + tile.Column(n, i)] >> first_bit &
            0xffffu;
        any |= visible[n][i];
      }
    }
    if (!WarpAny(any != 0)) {
      continue;
    }
    const int lane_key = Thread() % 32 / 4;
    const auto sees = [&](int n, int i) {
      return (visible[n][i % 2] >> (lane_key + i / 2 * 8) & 1u) != 0;
    };
    float carried[kEights][4];
    float gradient[kEights][4];
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int query = first + tile.Column(n, i % 2);
        const int j = tile.first + tile.Row(i / 2);
        const float* const row =
            ScoreRow(arguments.carried, softmax, tile.head_of_batch, query, b);
        const float* const of_gradient = ScoreRow(
            arguments.carried_gradient, softmax, tile.head_of_batch, query, b);
        carried[n][i] = row != nullptr && sees(n, i) ? row[j] : 0.0f;
        gradient[n][i] =
            of_gradient != nullptr && sees(n, i) ? of_gradient[j] : 0.0f;
      }
    }
    float own[kEights][4];
    Clear(own);
    if (needs_own) {
      MultiplyTransposed<kColumns, P, kTile, kStep>(memory.key, tile.warp_row,
                                                    memory.query, own);
      ETC_UNROLL
      for (int n = 0; n < kEights; ++n) {
        ETC_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (has_ids) {
            const int column = tile.Column(n, i % 2);
            const int row = tile.Row(i / 2);
            const uint32_t special = memory.special[half * kStep + column];
            int far;
            const int id = IdOf(block.rule, (special >> row % 32 & 1u) != 0,
                                tile.first + row - first - column,
                                softmax.max_distance, &far);
            own[n][i] += memory.by_id[column * softmax.ids + id];
          }
          own[n][i] *= softmax.score_scale;
        }
      }
    }
    float of_weights[kEights][4];
    Clear(of_weights);
    MultiplyTransposed<kColumns, P, kTile, kStep>(
        memory.value, tile.warp_row, memory.context_gradient, of_weights);
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int column = tile.Column(n, i % 2);
        const float total = has_carried ? carried[n][i] : own[n][i];
        const float logit =
            is_gated ? own[n][i] + gate * (total - own[n][i]) : total;
        const float weight =
            sees(n, i)
                ? Exp2((logit - memory.row_max[column]) * exponent_scale) *
                      memory.row_inverse_sum[column]
                : 0.0f;
        const float factor = has_dropout
                                 ? WeightFactor(softmax, memory.dropout[column],
                                                tile.first + tile.Row(i / 2))
                                 : 1.0f;
        const float inner =
            weight * (factor * of_weights[n][i] - memory.context_dot[column]) *
            inverse_divisor;
        of_weights[n][i] = weight * factor;
        gradient[n][i] = (inner + gradient[n][i]) * softmax.score_scale;
      }
    }
    Multiply<kColumns, P, kStep>(of_weights, memory.context_gradient,
                                 value_gradient);
    Multiply<kColumns, P, kStep>(gradient, memory.query, key_gradient);
  }
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int key = tile.first + tile.Row(r);
    if (key >= keys) {
      continue;
    }
    const int64_t row =
        (static_cast<int64_t>(tile.split) * softmax.batch * softmax.heads +
         tile.head_of_batch) *
            keys +
        key;
    const auto store = [&](const Splits& parts, const Rows& to, int columns,
                           const float(&sums)[kColumns / 8][4]) {
      float* const of_split = splits > 1 ? parts.sums + row * columns : nullptr;
      E* const whole =
          splits > 1
              ? nullptr
              : RowsOf<E>(to, tile.batch, tile.head, keys, columns).Row(key);
      ETC_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        ETC_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int column = tile.Column(n, i);
          if (column >= columns) {
            continue;
          }
          if (splits > 1) {
            of_split[column] = sums[n][2 * r + i];
          } else {
            Store(whole + column, sums[n][2 * r + i]);
          }
        }
      }
    };
    store(arguments.key_splits, arguments.key_gradient, softmax.head_dim,
          key_gradient);
    store(arguments.value_splits, arguments.value_gradient, softmax.value_dim,
          value_gradient);
  }
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_
