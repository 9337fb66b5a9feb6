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
  const HeadRows<E> embedding =
      RowsOf<E>(softmax.embedding, 0, tile.head, softmax.ids, softmax.head_dim);
  for (int first = 0; first < softmax.ids; first += kStep) {
    SyncThreads();
    LoadTile<kColumns, kStep>(embedding, first, tile_of_ids);
    WaitForCopies();
    SyncThreads();
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
  }
}

// Writes a tile's part of the gradients of E and of the biases: by_id's
// gradient, transposed, times the queries, and its sums over queries.
template <typename E, int kColumns>
ETC_DEVICE void StoreRelative(const BackwardArguments& arguments,
                              const float* by_id_gradient,
                              const uint16_t* query) {
  constexpr int P = kParts<E>;
  constexpr int kRow = kPitch<kColumns>;
  constexpr int kPairs = kColumns / 16;
  const Softmax& softmax = arguments.softmax;
  const int ids = softmax.ids;
  const int lane = Thread() % 32;
  const int64_t part =
      static_cast<int64_t>(BlockX()) * softmax.batch * softmax.heads + BlockY();
  float* const to =
      arguments.embedding_gradient + part * ids * softmax.head_dim;
  // Sixteen ids and sixteen columns at a time, those of one warp.
  for (int n = Thread() / 32; n < (ids + 15) / 16 * kPairs;
       n += kThreads / 32) {
    const int first_id = n / kPairs * 16;
    const int first_column = n % kPairs * 16;
    float sums[2][4];
    Clear(sums);
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
      ETC_UNROLL
      for (int p = 0; p < P; ++p) {
        uint32_t both[4];
        LoadMatricesTransposed(
            both, query + (p * kTile + k + lane % 8 + lane / 8 % 2 * 8) * kRow +
                      first_column + lane / 16 * 8);
        b[0][p][0] = both[0];
        b[0][p][1] = both[1];
        b[1][p][0] = both[2];
        b[1][p][1] = both[3];
      }
      MultiplyAddParts<P>(sums[0], a, b[0]);
      MultiplyAddParts<P>(sums[1], a, b[1]);
    }
    ETC_UNROLL
    for (int half = 0; half < 2; ++half) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int id = first_id + lane / 4 + i / 2 * 8;
        const int column = first_column + 8 * half + 2 * (lane % 4) + i % 2;
        if (id < ids && column < softmax.head_dim) {
          to[static_cast<int64_t>(id) * softmax.head_dim + column] =
              sums[half][i];
        }
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
ETC_KERNEL void ETC_BLOCKS(2)
    QueryGradientsKernel(BackwardArguments arguments) {
  constexpr int P = kParts<E>;
  constexpr int kEights = kStep / 8;
  const Softmax& softmax = arguments.softmax;
  const int splits = arguments.query_splits.count;
  const QueryTile tile(softmax, splits);
  const QueryPassMemory<kColumns, P> memory(SharedMemory(), softmax.ids, true);
  LoadTile<kColumns, kTile>(RowsOf<E>(softmax.query, tile.batch, tile.head,
                                      softmax.queries, softmax.head_dim),
                            tile.first, memory.query);
  LoadTile<kColumns, kTile>(
      RowsOf<E>(arguments.context_gradient, tile.batch, tile.head,
                softmax.queries, softmax.value_dim),
      tile.first, memory.context_gradient);
  if (softmax.ids > 0) {
    ComputeById<E, kColumns>(softmax, tile, memory.query, memory.Step(0).key,
                             memory.by_id);
    for (int i = Thread(); i < kTile * softmax.ids; i += kThreads) {
      memory.by_id_gradient[i] = 0.0f;
    }
  }
  const KeySteps steps = StepsOf(softmax, tile.batch, tile.first, tile.split,
                                 splits, memory.ranges);
  const bool has_carried = arguments.carried.rows[0] != nullptr ||
                           arguments.carried.rows[1] != nullptr;
  const bool is_gated =
      softmax.gates[0] != nullptr || softmax.gates[1] != nullptr;
  const bool needs_own = !has_carried || arguments.undo || is_gated;
  const bool has_dropout = softmax.dropout_threshold > 0;
  const float exponent_scale = kLog2OfE / softmax.divisor;
  const float inverse_divisor = 1.0f / softmax.divisor;
  const uint64_t head_seed =
      DropoutHeadSeed(softmax.dropout_seed, tile.batch, tile.head);
  float largest[2] = {0.0f, 0.0f};
  float inverse_sum[2] = {0.0f, 0.0f};
  float context_dot[2] = {0.0f, 0.0f};
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (tile.Query(r) < softmax.queries) {
      const int64_t index = tile.Index(softmax, r);
      largest[r] = arguments.row_max[index];
      inverse_sum[r] = arguments.row_inverse_sum[index];
      context_dot[r] = arguments.context_dot[index];
    }
  }
  float query_gradient[kColumns / 8][4];
  Clear(query_gradient);
  float far_sums[2][kFarIds] = {};
  float gate_sums[2] = {0.0f, 0.0f};
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
      LoadTile<kColumns, kStep, QuadOrder>(value_rows, key, to.value);
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
      float* const previous_gradient = places.Of(
          arguments.previous_gradient.rows[b], tile.Query(0), first_key);
      float carried[kEights][4];
      float gradient[kEights][4];  // of the carried scores, later of own ones
      LoadScores(carried_scores, bits, places, carried);
      LoadScores(places.Of(arguments.carried_gradient.rows[b], tile.Query(0),
                           first_key),
                 bits, places, gradient);
      float own[kEights][4];
      Clear(own);
      if (needs_own) {
        MultiplyTransposed<kColumns, P, kTile, kStep>(
            memory.query, tile.warp_row, keys.key, own);
        FinishScores(softmax, tile, sets.block.rule, key, bits, memory.by_id,
                     own);
      }
      float of_weights[kEights][4];
      Clear(of_weights);
      MultiplyTransposed<kColumns, P, kTile, kStep>(
          memory.context_gradient, tile.warp_row, keys.value, of_weights);
      const float gate = is_gated ? softmax.gates[b][tile.head] : 1.0f;
      ETC_UNROLL
      for (int r = 0; r < 2; ++r) {
        const DropoutRow dropout =
            has_dropout ? MakeDropoutRow(head_seed, tile.Query(r), b)
                        : DropoutRow{0, 0};
        ETC_UNROLL
        for (int n = 0; n < kEights; ++n) {
          ETC_UNROLL
          for (int i = 2 * r; i < 2 * r + 2; ++i) {
            const float total = has_carried ? carried[n][i] : own[n][i];
            const float previous = total - own[n][i];
            const float logit = is_gated ? own[n][i] + gate * previous : total;
            const float weight =
                sees(n, i) ? Exp2((logit - largest[r]) * exponent_scale) *
                                 inverse_sum[r]
                           : 0.0f;
            if (has_dropout) {
              of_weights[n][i] *=
                  WeightFactor(softmax, dropout, first_key + KeyOf(n, i % 2));
            }
            const float inner =
                weight * (of_weights[n][i] - context_dot[r]) * inverse_divisor;
            const float above = gradient[n][i];
            if (is_gated) {
              gate_sums[0] += b == 0 ? inner * previous : 0.0f;
              gate_sums[1] += b == 1 ? inner * previous : 0.0f;
            }
            own[n][i] = previous;
            of_weights[n][i] = gate * inner + above;
            gradient[n][i] = (inner + above) * softmax.score_scale;
          }
        }
      }
      if (previous_gradient != nullptr) {
        StoreScores(of_weights, bits, places, previous_gradient);
      }
      if (arguments.undo) {
        StoreScores(own, bits, places, carried_scores);
      }
      if (bits.has_ids) {
        AddById(softmax, tile, sets.block.rule, key, bits, gradient, far_sums,
                memory.by_id_gradient);
      }
      Multiply<kColumns, P, kStep>(gradient, keys.key, query_gradient);
    };
    ForEachStep<P>(steps.Begin(b), steps.End(b), load, compute);
  }
  if (softmax.ids > 0) {
    SyncThreads();
    AddFarIds(softmax, tile, far_sums, memory.by_id_gradient);
    AddThroughById<E, kColumns>(softmax, tile, memory.by_id_gradient,
                                memory.Step(0).key, query_gradient);
    StoreRelative<E, kColumns>(arguments, memory.by_id_gradient, memory.query);
  }
  if (is_gated) {
    SyncThreads();
    StoreGates(arguments, gate_sums, reinterpret_cast<float*>(memory.ranges));
  }
  ETC_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int query = tile.Query(r);
    if (query >= softmax.queries) {
      continue;
    }
    const int64_t rows =
        static_cast<int64_t>(softmax.batch) * softmax.heads * softmax.queries;
    float* const sums = arguments.query_splits.sums == nullptr
                            ? nullptr
                            : arguments.query_splits.sums +
                                  (tile.split * rows + tile.Index(softmax, r)) *
                                      softmax.head_dim;
    E* const to = sums != nullptr
                      ? nullptr
                      : RowsOf<E>(arguments.query_gradient, tile.batch,
                                  tile.head, softmax.queries, softmax.head_dim)
                            .Row(query);
    ETC_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int column = tile.Column(n, i);
        if (column >= softmax.head_dim) {
          continue;
        }
        if (sums != nullptr) {
          sums[column] = query_gradient[n][2 * r + i];
        } else {
          Store(to + column, query_gradient[n][2 * r + i]);
        }
      }
    }
  }
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_QUERY_GRADIENTS_H_
