#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_

#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/query_pass.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

struct KeyGradientArguments {
  BackwardArguments backward;
  int block;
};

// A tile of keys of one block and head, and the part of a thread in it: of its
// warp's sixteen keys, in PairOrder, two adjacent ones, of each eight queries
// two.
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
    return warp_row + Thread() % 32 / 4 * 2 + r;
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

// Rows of by_id of the queries of a step.
ETC_DEVICE void LoadById(const BackwardArguments& arguments,
                         const KeyTile& tile, int first, float* to) {
  const Softmax& softmax = arguments.softmax;
  const float* const from =
      arguments.by_id +
      (static_cast<int64_t>(tile.head_of_batch) * softmax.queries + first) *
          softmax.ids;
  const int count = Least(kStep, softmax.queries - first) * softmax.ids;
  for (int i = Thread(); i < count; i += kThreads) {
    to[i] = from[i];
  }
}

// Everything about the queries of a step that its pairs need.
template <int kColumns, int P>
ETC_DEVICE void LoadQueries(const BackwardArguments& arguments,
                            const KeyTile& tile, const KeyBlock& block, int b,
                            int first, uint64_t head_seed,
                            const QueryStep<kColumns, P>& memory) {
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

// As FinishScores, of keys and queries.
template <int kColumns, int P>
ETC_DEVICE void FinishKeyScores(const Softmax& softmax, const KeyTile& tile,
                                const KeyBlock& block, int first_query,
                                const QueryStep<kColumns, P>& queries,
                                float (&scores)[kStep / 8][4]) {
  const bool has_ids = softmax.ids > 0 && block.rule != RelativeRule::kNone;
  const int half = tile.warp_row / 32;
  const int first_bit = tile.Row(0) % 32;
  uint32_t special[kStep / 8][2];
  uint32_t any = 0;
  uint32_t all = 3u;
  int far = -1;
  if (has_ids) {
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        special[n][i] =
            queries.special[half * kStep + tile.Column(n, i)] >> first_bit & 3u;
        any |= special[n][i];
        all &= special[n][i];
      }
    }
    const int first_key = tile.first + tile.warp_row;
    far = FarOfAll(
        block.rule,
        {first_query, first_query + kStep - 1, first_key, first_key + 15},
        softmax.max_distance, any, all, 3u);
  }
  const int delta = tile.first + tile.Row(0) - first_query - tile.column;
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      float score = scores[n][i];
      if (has_ids) {
        int id_far = far;
        const int id = far >= 0 ? IdOfFar(far, softmax.max_distance)
                                : IdOf(block.rule,
                                       (special[n][i % 2] >> (i / 2) & 1u) != 0,
                                       delta + i / 2 - 8 * n - i % 2,
                                       softmax.max_distance, &id_far);
        score += queries.by_id[tile.Column(n, i % 2) * softmax.ids + id];
      }
      scores[n][i] = score * softmax.score_scale;
    }
  }
}

// As LoadScores: of the thread's two keys for each of its queries.
ETC_DEVICE void LoadKeyScores(const float* first,
                              const uint32_t (&visible)[kStep / 8][2],
                              bool sees_all, const ScorePlaces& places,
                              float (&scores)[kStep / 8][4]) {
  Clear(scores);
  if (first == nullptr) {
    return;
  }
  const bool is_aligned = places.IsAligned(first, 2);
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float* const both = first + (8 * n + i) * places.query_stride;
      if (is_aligned && (sees_all || visible[n][i] == 3u)) {
        const Floats2 two = *reinterpret_cast<const Floats2*>(both);
        scores[n][i] = two.values[0];
        scores[n][i + 2] = two.values[1];
        continue;
      }
      if ((visible[n][i] & 1u) != 0) {
        scores[n][i] = both[0];
      }
      if ((visible[n][i] & 2u) != 0) {
        scores[n][i + 2] = both[1];
      }
    }
  }
}

// The gradients that belong to keys, a step of queries after the other: those
// of keys and values. All is as in QueryGradientsKernel, transposed.
template <typename E, int kColumns>
ETC_KERNEL void ETC_BLOCKS(2) KeyGradientsKernel(KeyGradientArguments all) {
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
  LoadTile<kColumns, kTile, PairOrder>(
      RowsOf<E>(softmax.key[b], tile.batch, tile.head, keys, softmax.head_dim),
      tile.first, memory.key);
  LoadTile<kColumns, kTile, PairOrder>(
      RowsOf<E>(softmax.value[b], tile.batch, tile.head, keys,
                softmax.value_dim),
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
  const HeadRows<E> query_rows = RowsOf<E>(softmax.query, tile.batch, tile.head,
                                           softmax.queries, softmax.head_dim);
  const HeadRows<E> context_gradient_rows =
      RowsOf<E>(arguments.context_gradient, tile.batch, tile.head,
                softmax.queries, softmax.value_dim);
  const auto load = [&](int step, int buffer) {
    const int first = from + kStep * step;
    const QueryStep<kColumns, P> queries = memory.Step(buffer);
    LoadTile<kColumns, kStep>(query_rows, first, queries.query);
    LoadTile<kColumns, kStep>(context_gradient_rows, first,
                              queries.context_gradient);
    LoadQueries(arguments, tile, block, b, first, head_seed, queries);
    if (needs_own && has_ids) {
      LoadById(arguments, tile, first, queries.by_id);
    }
  };
  const ScorePlaces places(softmax, tile.head_of_batch, b);
  const int half = tile.warp_row / 32;
  // Of the thread's first key, among the 32 of its warp's half.
  const int first_bit = tile.Row(0) % 32;
  const auto compute = [&](int step, int buffer) {
    const int first = from + kStep * step;
    const QueryStep<kColumns, P> queries = memory.Step(buffer);
    // Bits 0 and 1: whether the thread's queries see its two keys.
    uint32_t visible[kEights][2];
    uint32_t any = 0;
    uint32_t all = 3u;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        visible[n][i] =
            queries.visible[half * kStep + tile.Column(n, i)] >> first_bit & 3u;
        any |= visible[n][i];
        all &= visible[n][i];
      }
    }
    if (!WarpAny(any != 0)) {
      return;
    }
    const bool sees_all = !WarpAny(all != 3u);
    const auto sees = [&](int n, int i) {
      return (visible[n][i % 2] >> (i / 2) & 1u) != 0;
    };
    float carried[kEights][4];
    const auto load_scores = [&](const ScoreBlocks& all, auto* to) {
      LoadKeyScores(
          places.Of(all.rows[b], first + tile.column, tile.first + tile.Row(0)),
          visible, sees_all, places, *to);
    };
    const int first_key = tile.first + tile.Row(0);
    float gradient[kEights][4];
    load_scores(arguments.carried, &carried);
    load_scores(arguments.carried_gradient, &gradient);
    float own[kEights][4];
    Clear(own);
    if (needs_own) {
      MultiplyTransposed<kColumns, P, kTile, kStep>(memory.key, tile.warp_row,
                                                    queries.query, own);
      FinishKeyScores(softmax, tile, block, first, queries, own);
    }
    float of_weights[kEights][4];
    Clear(of_weights);
    MultiplyTransposed<kColumns, P, kTile, kStep>(
        memory.value, tile.warp_row, queries.context_gradient, of_weights);
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
                ? Exp2((logit - queries.row_max[column]) * exponent_scale) *
                      queries.row_inverse_sum[column]
                : 0.0f;
        float kept = weight;
        if (has_dropout) {
          const float factor =
              WeightFactor(softmax, queries.dropout[column], first_key + i / 2);
          kept *= factor;
          of_weights[n][i] *= factor;
        }
        const float inner = weight *
                            (of_weights[n][i] - queries.context_dot[column]) *
                            inverse_divisor;
        of_weights[n][i] = kept;
        gradient[n][i] = (inner + gradient[n][i]) * softmax.score_scale;
      }
    }
    Multiply<kColumns, P, kStep>(of_weights, queries.context_gradient,
                                 value_gradient);
    Multiply<kColumns, P, kStep>(gradient, queries.query, key_gradient);
  };
  ForEachStep<P>(step_begin, step_end, load, compute);
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
