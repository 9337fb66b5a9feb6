#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_GRADIENTS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_GRADIENTS_H_

#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/device.h"
#include "attention/backends/cuda/kernels/pairs.h"
#include "attention/backends/cuda/kernels/products.h"
#include "attention/backends/cuda/kernels/query_pass.h"
#include "attention/backends/cuda/kernels/shared_memory.h"

namespace etc::kernels::cuda {

// The gradient of a pair's scores. With S the carried score, g the gate of the
// previous one (1 where there are no gates), p the probability, f the factor of
// dropout, D = context . its gradient and dP = context gradient . v:
//
//   inner    = p (f dP - D) / divisor
//   own      = inner + gradient of S
//   previous = g inner + gradient of S

// D of each query, a warp for each.
template <typename E>
ETC_KERNEL void ContextDotsKernel(BackwardArguments arguments) {
  const Softmax& softmax = arguments.softmax;
  const int query = BlockX() * kWarpRows + Thread() / 32;
  if (query >= softmax.queries) {
    return;
  }
  const int batch = BlockY() / softmax.heads;
  const int head = BlockY() % softmax.heads;
  const auto row = [&](const Rows& rows) {
    return RowsOf<E>(rows, batch, head, softmax.queries, softmax.value_dim)
        .Row(query);
  };
  const E* const context = row(arguments.context);
  const E* const gradient = row(arguments.context_gradient);
  float dot = 0.0f;
  for (int column = Thread() % 32; column < softmax.value_dim; column += 32) {
    dot += ToFloat(context[column]) * ToFloat(gradient[column]);
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    dot += ShuffleXor(dot, mask);
  }
  if (Thread() % 32 == 0) {
    arguments
        .context_dot[static_cast<int64_t>(BlockY()) * softmax.queries + query] =
        dot;
  }
}

// Adds to the gradient of by_id of a tile what one step of keys gives: `own`
// are gradients of scores. An id that one key of a row has is added by the
// thread that has the pair, others are summed in `far`, [2 rows][kFarIds].
ETC_DEVICE void AddById(const Softmax& softmax, const QueryTile& tile,
                        RelativeRule rule, int key, const RowBits& bits,
                        const float (&own)[kStep / 8][4],
                        float (&far_sums)[2][kFarIds], float* by_id_gradient) {
  if (bits.far >= 0) {
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      float sum = 0.0f;
      ETC_UNROLL
      for (int n = 0; n < kStep / 8; ++n) {
        sum += own[n][2 * r] + own[n][2 * r + 1];
      }
      ETC_UNROLL
      for (int f = 0; f < kFarIds; ++f) {
        far_sums[r][f] += bits.far == f ? sum : 0.0f;
      }
    }
    return;
  }
  const int delta = key + tile.first_key - tile.Query(0);
  ETC_UNROLL
  for (int n = 0; n < kStep / 8; ++n) {
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2;
      int far;
      const int id =
          IdOf(rule, HasBit(bits.special[r], n, i % 2),
               delta + KeyOf(n, i % 2) - 8 * r, softmax.max_distance, &far);
      ETC_UNROLL
      for (int f = 0; f < kFarIds; ++f) {
        far_sums[r][f] += far == f ? own[n][i] : 0.0f;
      }
      if (far < 0 && HasBit(bits.visible[r], n, i % 2)) {
        by_id_gradient[tile.Row(r) * softmax.ids + id] += own[n][i];
      }
    }
  }
}

// Adds to by_id's gradient what threads have summed for the ids of many keys.
ETC_DEVICE void AddFarIds(const Softmax& softmax, const QueryTile& tile,
                          const float (&far_sums)[2][kFarIds],
                          float* by_id_gradient) {
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    ETC_UNROLL
    for (int f = 0; f < kFarIds; ++f) {
      const float sum = SumOfRow(far_sums[r][f]);
      if (Thread() % 4 == 0) {
        by_id_gradient[tile.Row(r) * softmax.ids +
                       IdOfFar(f, softmax.max_distance)] += sum;
      }
    }
  }
}

// Adds to the gradient of the queries what goes through by_id: its gradient
// times E, of which `tile_of_ids` holds some rows.
template <typename E, int kColumns>
ETC_DEVICE void AddThroughById(const Softmax& softmax, const QueryTile& tile,
                               const float* by_id_gradient,
                               uint16_t* tile_of_ids,
                               float (&query_gradient)[kColumns / 8][4]) {
  ForEachTileOfIds<E, kColumns>(softmax, tile, tile_of_ids, [&](int first) {
    float values[kStep / 8][4];
    ETC_UNROLL
    for (int n = 0; n < kStep / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int id = first + tile.Column(n, i % 2);
        values[n][i] = id < softmax.ids
                           ? by_id_gradient[tile.Row(i / 2) * softmax.ids + id]
                           : 0.0f;
      }
    }
    Multiply<kColumns, kParts<E>, kStep>(values, tile_of_ids, query_gradient);
  });
}

// Sixteen ids of by_id's gradient, transposed, times the queries of a tile in
// sixteen columns: sums [16 ids, 2 x 8 columns].
template <int kColumns, int P>
ETC_DEVICE void MultiplyByIds(const float* by_id_gradient, int ids,
                              int first_id, const uint16_t* query,
                              int first_column, float (&sums)[2][4]) {
  constexpr int kRow = kPitch<kColumns>;
  const int lane = Thread() % 32;
  for (int k = 0; k < kTile; k += 16) {
    uint32_t a[P][4];
    ETC_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int id = first_id + lane / 4 + i % 2 * 8;
      const int row = k + 2 * (lane % 4) + i / 2 * 8;
      const bool is_id = id < ids;
      uint32_t parts[P];
      Split<P>(is_id ? by_id_gradient[row * ids + id] : 0.0f,
               is_id ? by_id_gradient[(row + 1) * ids + id] : 0.0f, parts);
      ETC_UNROLL
      for (int p = 0; p < P; ++p) {
        a[p][i] = parts[p];
      }
    }
    uint32_t b[2][P][2];
    LoadTransposedPairs<P>(query + (k + lane % 8 + lane / 8 % 2 * 8) * kRow +
                               first_column + lane / 16 * 8,
                           kTile * kRow, b);
    MultiplyAddParts<P>(sums[0], a, b[0]);
    MultiplyAddParts<P>(sums[1], a, b[1]);
  }
}

// Writes a tile's part of the gradients of E and of the biases: by_id's
// gradient, transposed, times the queries, and its sums over queries.
template <typename E, int kColumns>
ETC_DEVICE void StoreRelative(const BackwardArguments& arguments,
                              const float* by_id_gradient,
                              const uint16_t* query) {
  constexpr int kPairs = kColumns / 16;
  const Softmax& softmax = arguments.softmax;
  const int ids = softmax.ids;
  const int lane = Thread() % 32;
  const int64_t part =
      static_cast<int64_t>(BlockX()) * softmax.batch * softmax.heads + BlockY();
  float* const to =
      arguments.embedding_gradient + part * ids * softmax.head_dim;
  for (int n = Thread() / 32; n < (ids + 15) / 16 * kPairs;
       n += kThreads / 32) {
    const int first_id = n / kPairs * 16;
    const int first_column = n % kPairs * 16;
    float sums[2][4];
    Clear(sums);
    MultiplyByIds<kColumns, kParts<E>>(by_id_gradient, ids, first_id, query,
                                       first_column, sums);
    ETC_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int id = first_id + lane / 4 + i % 4 / 2 * 8;
      const int column = first_column + i / 4 * 8 + 2 * (lane % 4) + i % 2;
      if (id < ids && column < softmax.head_dim) {
        to[static_cast<int64_t>(id) * softmax.head_dim + column] =
            sums[i / 4][i % 4];
      }
    }
  }
  for (int id = Thread(); id < ids; id += kThreads) {
    float sum = 0.0f;
    for (int row = 0; row < kTile; ++row) {
      sum += by_id_gradient[row * ids + id];
    }
    arguments.bias_gradient[part * ids + id] = sum;
  }
}

// Sums what each thread has for the gates of both blocks, in a fixed order.
// `memory` of 8 floats, shared.
ETC_DEVICE void StoreGates(const BackwardArguments& arguments, float (&sums)[2],
                           float* memory) {
  const Softmax& softmax = arguments.softmax;
  ETC_UNROLL
  for (int b = 0; b < 2; ++b) {
    for (int mask = 16; mask > 0; mask /= 2) {
      sums[b] += ShuffleXor(sums[b], mask);
    }
    if (Thread() % 32 == 0) {
      memory[Thread() / 32 * 2 + b] = sums[b];
    }
  }
  SyncThreads();
  if (Thread() < 2) {
    float* const to =
        arguments.gate_gradient +
        (static_cast<int64_t>(BlockX()) * softmax.batch * softmax.heads +
         BlockY()) *
            2;
    to[Thread()] = memory[Thread()] + memory[2 + Thread()] +
                   memory[4 + Thread()] + memory[6 + Thread()];
  }
}

// The gradients that belong to queries, a step of keys after the other: those
// of the queries, of the relative table, of the gates and of the previous
// scores.
template <typename E, int kColumns>
class QueryGradientPass {
 public:
  ETC_DEVICE explicit QueryGradientPass(const BackwardArguments& arguments)
      : arguments_(arguments),
        softmax_(arguments.softmax),
        tile_(softmax_, arguments.query_splits.count),
        memory_(SharedMemory(), softmax_.ids, /*is_backward=*/true),
        has_carried_(arguments.carried.rows[0] != nullptr ||
                     arguments.carried.rows[1] != nullptr),
        is_gated_(softmax_.gates[0] != nullptr || softmax_.gates[1] != nullptr),
        exponent_scale_(kLog2OfE / softmax_.divisor),
        inverse_divisor_(1.0f / softmax_.divisor) {}

  ETC_DEVICE void Run() {
    LoadQueries();
    Clear(query_gradient_);
    ForEachKeyStep<E>(
        softmax_, tile_, memory_, /*has_values=*/true,
        [&](const KeysOfTile<E>& keys, int key,
            const KeyStep<kColumns, P>& step) { Compute(keys, key, step); });
    Store();
  }

 private:
  static constexpr int P = kParts<E>;
  static constexpr int kEights = kStep / 8;

  ETC_DEVICE void LoadQueries() {
    LoadTile<kColumns, kTile>(RowsOf<E>(softmax_.query, tile_.batch, tile_.head,
                                        softmax_.queries, softmax_.head_dim),
                              tile_.first, memory_.query);
    LoadTile<kColumns, kTile>(
        RowsOf<E>(arguments_.context_gradient, tile_.batch, tile_.head,
                  softmax_.queries, softmax_.value_dim),
        tile_.first, memory_.context_gradient);
    if (softmax_.ids > 0) {
      ComputeById<E, kColumns>(softmax_, tile_, memory_.query,
                               memory_.Step(0).key, memory_.by_id);
      for (int i = Thread(); i < kTile * softmax_.ids; i += kThreads) {
        memory_.by_id_gradient[i] = 0.0f;
      }
    }
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (tile_.Query(r) < softmax_.queries) {
        const int64_t index = tile_.Index(softmax_, r);
        largest_[r] = arguments_.row_max[index];
        inverse_sum_[r] = arguments_.row_inverse_sum[index];
        context_dot_[r] = arguments_.context_dot[index];
      }
    }
  }

  ETC_DEVICE void Compute(const KeysOfTile<E>& keys, int key,
                          const KeyStep<kColumns, P>& step) {
    const RowBits bits(softmax_, tile_, keys.sets, key);
    if (!bits.sees_any) {
      return;
    }
    const int block = keys.number;
    const auto place = [&](const ScoreBlocks& scores) {
      return keys.places.Of(scores.rows[block], tile_.Query(0),
                            key + tile_.first_key);
    };
    float carried[kEights][4];
    float gradient[kEights][4];
    LoadScores(place(arguments_.carried), bits, keys.places, carried);
    LoadScores(place(arguments_.carried_gradient), bits, keys.places, gradient);
    float own[kEights][4];
    Clear(own);
    if (!has_carried_ || arguments_.undo || is_gated_) {
      MultiplyTransposed<kColumns, P, kTile, kStep>(
          memory_.query, tile_.warp_row, step.key, own);
      FinishScores(softmax_, tile_, keys.sets.block.rule, key, bits,
                   memory_.by_id, own);
    }
    float of_weights[kEights][4];
    Clear(of_weights);
    MultiplyTransposed<kColumns, P, kTile, kStep>(
        memory_.context_gradient, tile_.warp_row, step.value, of_weights);
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (softmax_.dropout_threshold > 0) {
        DropWeights(softmax_, tile_, r, block, key, of_weights);
      }
      MakeGradients(r, block, bits, carried, own, of_weights, gradient);
    }
    if (place(arguments_.previous_gradient) != nullptr) {
      StoreScores(of_weights, bits, keys.places,
                  place(arguments_.previous_gradient));
    }
    if (arguments_.undo) {
      StoreScores(own, bits, keys.places, place(arguments_.carried));
    }
    if (bits.has_ids) {
      AddById(softmax_, tile_, keys.sets.block.rule, key, bits, gradient,
              far_sums_, memory_.by_id_gradient);
    }
    Multiply<kColumns, P, kStep>(gradient, step.key, query_gradient_);
  }

  // In row r own scores become previous ones; gradients of the weights, with
  // dropout, those of the previous scores; and gradients of the carried scores
  // those of q . k.
  ETC_DEVICE void MakeGradients(int r, int block, const RowBits& bits,
                                const float (&carried)[kEights][4],
                                float (&own)[kEights][4],
                                float (&of_weights)[kEights][4],
                                float (&gradient)[kEights][4]) {
    const float gate = is_gated_ ? softmax_.gates[block][tile_.head] : 1.0f;
    float gate_sum = 0.0f;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        const float total = has_carried_ ? carried[n][i] : own[n][i];
        const float previous = total - own[n][i];
        const float logit = is_gated_ ? own[n][i] + gate * previous : total;
        const float weight =
            HasBit(bits.visible[r], n, i % 2)
                ? Exp2((logit - largest_[r]) * exponent_scale_) *
                      inverse_sum_[r]
                : 0.0f;
        const float inner =
            weight * (of_weights[n][i] - context_dot_[r]) * inverse_divisor_;
        const float above = gradient[n][i];
        gate_sum += inner * previous;
        own[n][i] = previous;
        of_weights[n][i] = gate * inner + above;
        gradient[n][i] = (inner + above) * softmax_.score_scale;
      }
    }
    gate_sums_[0] += block == 0 ? gate_sum : 0.0f;
    gate_sums_[1] += block == 1 ? gate_sum : 0.0f;
  }

  ETC_DEVICE void Store() {
    if (softmax_.ids > 0) {
      SyncThreads();
      AddFarIds(softmax_, tile_, far_sums_, memory_.by_id_gradient);
      AddThroughById<E, kColumns>(softmax_, tile_, memory_.by_id_gradient,
                                  memory_.Step(0).key, query_gradient_);
      StoreRelative<E, kColumns>(arguments_, memory_.by_id_gradient,
                                 memory_.query);
    }
    if (is_gated_) {
      SyncThreads();
      StoreGates(arguments_, gate_sums_,
                 reinterpret_cast<float*>(memory_.ranges));
    }
    ETC_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (tile_.Query(r) >= softmax_.queries) {
        continue;
      }
      const int columns = softmax_.head_dim;
      if (arguments_.query_splits.count > 1) {
        StoreRow<kColumns>(query_gradient_, r, columns, 1.0f,
                           arguments_.query_splits.sums +
                               SplitIndex(softmax_, tile_, r) * columns);
      } else {
        StoreRow<kColumns>(query_gradient_, r, columns, 1.0f,
                           RowsOf<E>(arguments_.query_gradient, tile_.batch,
                                     tile_.head, softmax_.queries, columns)
                               .Row(tile_.Query(r)));
      }
    }
  }

  const BackwardArguments& arguments_;
  const Softmax& softmax_;
  const QueryTile tile_;
  const QueryPassMemory<kColumns, P> memory_;
  const bool has_carried_;
  const bool is_gated_;
  const float exponent_scale_;
  const float inverse_divisor_;
  float largest_[2] = {0.0f, 0.0f};
  float inverse_sum_[2] = {0.0f, 0.0f};
  float context_dot_[2] = {0.0f, 0.0f};
  float query_gradient_[kColumns / 8][4];
  float far_sums_[2][kFarIds] = {};
  float gate_sums_[2] = {0.0f, 0.0f};
};

template <typename E, int kColumns>
ETC_KERNEL void ETC_BLOCKS(2)
    QueryGradientsKernel(BackwardArguments arguments) {
  QueryGradientPass<E, kColumns>(arguments).Run();
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_GRADIENTS_H_
