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
  // The bits of that query for the thread's two keys, of [2][kStep] for both
  // halves of the tile.
  ETC_DEVICE uint32_t Bits(const uint32_t* of_queries, int n, int i) const {
    return of_queries[warp_row / 32 * kStep + Column(n, i)] >> Row(0) % 32 & 3u;
  }

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
                            int first, const QueryStep<kColumns, P>& memory) {
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
    memory.dropout[row] =
        MakeDropoutRow(DropoutHeadSeed(softmax.dropout_seed, tile.batch,
                                       softmax.first_head + tile.head),
                       query, b);
  }
}

// As FinishScores, of keys and queries.
template <int kColumns, int P>
ETC_DEVICE void FinishKeyScores(const Softmax& softmax, const KeyTile& tile,
                                RelativeRule rule, int first_query,
                                const QueryStep<kColumns, P>& queries,
                                float (&scores)[kStep / 8][4]) {
  const bool has_ids = softmax.ids > 0 && rule != RelativeRule::kNone;
  uint32_t special[kStep / 8][2];
  uint32_t any = 0;
  uint32_t all = 3u;
  int far = -1;
  if (has_ids) {
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        special[n][i] = tile.Bits(queries.special, n, i);
        any |= special[n][i];
        all &= special[n][i];
      }
    }
    const int first_key = tile.first + tile.warp_row;
    far = FarOfAll(
        rule, {first_query, first_query + kStep - 1, first_key, first_key + 15},
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
        const int id =
            far >= 0 ? IdOfFar(far, softmax.max_distance)
                     : IdOf(rule, (special[n][i % 2] >> (i / 2) & 1u) != 0,
                            delta + i / 2 - 8 * n - i % 2, softmax.max_distance,
                            &id_far);
        score += queries.by_id[tile.Column(n, i % 2) * softmax.ids + id];
      }
      scores[n][i] = score * softmax.score_scale;
    }
  }
}

// Bits 0 and 1 of each of a thread's queries: it sees the thread's two keys.
struct KeyBits {
  template <int kColumns, int P>
  ETC_DEVICE KeyBits(const KeyTile& tile,
                     const QueryStep<kColumns, P>& queries) {
    uint32_t any = 0;
    uint32_t all = 3u;
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        visible[n][i] = tile.Bits(queries.visible, n, i);
        any |= visible[n][i];
        all &= visible[n][i];
      }
    }
    sees_any = WarpAny(any != 0);
    sees_all = !WarpAny(all != 3u);
  }

  uint32_t visible[kStep / 8][2];
  bool sees_any;  // of the warp: any pair, all pairs
  bool sees_all;
};

// As LoadScores: of the thread's two keys for each of its queries.
ETC_DEVICE void LoadKeyScores(const float* first, const KeyBits& bits,
                              const ScorePlaces& places,
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
      if (is_aligned && (bits.sees_all || bits.visible[n][i] == 3u)) {
        const Floats2 two = *reinterpret_cast<const Floats2*>(both);
        scores[n][i] = two.values[0];
        scores[n][i + 2] = two.values[1];
        continue;
      }
      if ((bits.visible[n][i] & 1u) != 0) {
        scores[n][i] = both[0];
      }
      if ((bits.visible[n][i] & 2u) != 0) {
        scores[n][i + 2] = both[1];
      }
    }
  }
}

// The gradients that belong to keys, a step of queries after the other: those
// of keys and values. All is as in QueryGradientPass, transposed.
template <typename E, int kColumns>
class KeyGradientPass {
 public:
  ETC_DEVICE KeyGradientPass(const BackwardArguments& arguments, int block)
      : arguments_(arguments),
        softmax_(arguments.softmax),
        block_(block),
        tile_(softmax_, arguments.key_splits.count),
        keys_(KeyBlockOf(softmax_, tile_.batch, block)),
        places_(softmax_, tile_.head_of_batch, block),
        memory_(SharedMemory(), softmax_.ids),
        has_carried_(arguments.carried.rows[block] != nullptr),
        is_gated_(softmax_.gates[block] != nullptr),
        gate_(is_gated_ ? softmax_.gates[block][tile_.head] : 1.0f),
        exponent_scale_(kLog2OfE / softmax_.divisor),
        inverse_divisor_(1.0f / softmax_.divisor) {}

  ETC_DEVICE void Run() {
    const auto rows = [&](const Rows& all, int columns) {
      return RowsOf<E>(all, tile_.batch, tile_.head, keys_.keys, columns);
    };
    LoadTile<kColumns, kTile, PairOrder>(
        rows(softmax_.key[block_], softmax_.head_dim), tile_.first,
        memory_.key);
    LoadTile<kColumns, kTile, PairOrder>(
        rows(softmax_.value[block_], softmax_.value_dim), tile_.first,
        memory_.value);
    Clear(key_gradient_);
    Clear(value_gradient_);
    RunSteps();
    StoreRows(arguments_.key_splits,
              rows(arguments_.key_gradient, softmax_.head_dim), key_gradient_);
    StoreRows(arguments_.value_splits,
              rows(arguments_.value_gradient, softmax_.value_dim),
              value_gradient_);
  }

 private:
  static constexpr int P = kParts<E>;
  static constexpr int kEights = kStep / 8;

  ETC_DEVICE void RunSteps() {
    // Queries whose window has keys of the tile.
    const bool has_window = keys_.before >= 0;
    const int from = has_window ? Largest(tile_.first - keys_.after, 0) : 0;
    const int to =
        has_window ? Least(tile_.first + kTile + keys_.before, softmax_.queries)
                   : softmax_.queries;
    const int steps = Largest(to - from + kStep - 1, 0) / kStep;
    const int splits = arguments_.key_splits.count;
    const HeadRows<E> query = RowsOf<E>(softmax_.query, tile_.batch, tile_.head,
                                        softmax_.queries, softmax_.head_dim);
    const HeadRows<E> context_gradient =
        RowsOf<E>(arguments_.context_gradient, tile_.batch, tile_.head,
                  softmax_.queries, softmax_.value_dim);
    ForEachStep<P>(
        steps * tile_.split / splits, steps * (tile_.split + 1) / splits,
        [&](int step, int buffer) {
          const int first = from + kStep * step;
          const auto to_step = memory_.Step(buffer);
          LoadTile<kColumns, kStep>(query, first, to_step.query);
          LoadTile<kColumns, kStep>(context_gradient, first,
                                    to_step.context_gradient);
          LoadQueries(arguments_, tile_, keys_, block_, first, to_step);
          if (needs_own() && softmax_.ids > 0) {
            LoadById(arguments_, tile_, first, to_step.by_id);
          }
        },
        [&](int step, int buffer) {
          Compute(from + kStep * step, memory_.Step(buffer));
        });
  }

  ETC_DEVICE bool needs_own() const { return !has_carried_ || is_gated_; }

  ETC_DEVICE void Compute(int first, const QueryStep<kColumns, P>& queries) {
    const KeyBits bits(tile_, queries);
    if (!bits.sees_any) {
      return;
    }
    const auto place = [&](const ScoreBlocks& scores) {
      return places_.Of(scores.rows[block_], first + tile_.column,
                        tile_.first + tile_.Row(0));
    };
    float carried[kEights][4];
    float gradient[kEights][4];
    LoadKeyScores(place(arguments_.carried), bits, places_, carried);
    LoadKeyScores(place(arguments_.carried_gradient), bits, places_, gradient);
    float own[kEights][4];
    Clear(own);
    if (needs_own()) {
      MultiplyTransposed<kColumns, P, kTile, kStep>(memory_.key, tile_.warp_row,
                                                    queries.query, own);
      FinishKeyScores(softmax_, tile_, keys_.rule, first, queries, own);
    }
    float of_weights[kEights][4];
    Clear(of_weights);
    MultiplyTransposed<kColumns, P, kTile, kStep>(
        memory_.value, tile_.warp_row, queries.context_gradient, of_weights);
    MakeGradients(bits, queries, carried, own, of_weights, gradient);
    Multiply<kColumns, P, kStep>(of_weights, queries.context_gradient,
                                 value_gradient_);
    Multiply<kColumns, P, kStep>(gradient, queries.query, key_gradient_);
  }

  // Gradients of the weights become weights with dropout, gradients of the
  // carried scores those of q . k.
  ETC_DEVICE void MakeGradients(const KeyBits& bits,
                                const QueryStep<kColumns, P>& queries,
                                const float (&carried)[kEights][4],
                                const float (&own)[kEights][4],
                                float (&of_weights)[kEights][4],
                                float (&gradient)[kEights][4]) const {
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int column = tile_.Column(n, i % 2);
        const float total = has_carried_ ? carried[n][i] : own[n][i];
        const float logit =
            is_gated_ ? own[n][i] + gate_ * (total - own[n][i]) : total;
        const float weight =
            (bits.visible[n][i % 2] >> (i / 2) & 1u) != 0
                ? Exp2((logit - queries.row_max[column]) * exponent_scale_) *
                      queries.row_inverse_sum[column]
                : 0.0f;
        float factor = 1.0f;
        if (softmax_.dropout_threshold > 0) {
          factor = WeightFactor(softmax_, queries.dropout[column],
                                tile_.first + tile_.Row(i / 2));
        }
        const float inner =
            weight * (factor * of_weights[n][i] - queries.context_dot[column]) *
            inverse_divisor_;
        of_weights[n][i] = factor * weight;
        gradient[n][i] = (inner + gradient[n][i]) * softmax_.score_scale;
      }
    }
  }

  ETC_DEVICE void StoreRows(const Splits& splits, const HeadRows<E>& rows,
                            const float (&sums)[kColumns / 8][4]) const {
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int key = tile_.first + tile_.Row(r);
      if (key >= rows.rows) {
        continue;
      }
      if (splits.count > 1) {
        const int64_t row = (static_cast<int64_t>(tile_.split) *
                                 softmax_.batch * softmax_.heads +
                             tile_.head_of_batch) *
                                rows.rows +
                            key;
        StoreRow<kColumns>(sums, r, rows.columns, 1.0f,
                           splits.sums + row * rows.columns);
      } else {
        StoreRow<kColumns>(sums, r, rows.columns, 1.0f, rows.Row(key));
      }
    }
  }

  const BackwardArguments& arguments_;
  const Softmax& softmax_;
  const int block_;
  const KeyTile tile_;
  const KeyBlock keys_;
  const ScorePlaces places_;
  const KeyPassMemory<kColumns, P> memory_;
  const bool has_carried_;
  const bool is_gated_;
  const float gate_;
  const float exponent_scale_;
  const float inverse_divisor_;
  float key_gradient_[kColumns / 8][4];
  float value_gradient_[kColumns / 8][4];
};

template <typename E, int kColumns>
ETC_KERNEL void ETC_BLOCKS(2) KeyGradientsKernel(KeyGradientArguments all) {
  KeyGradientPass<E, kColumns>(all.backward, all.block).Run();
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_KEY_GRADIENTS_H_
