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
class ForwardPass {
 public:
  ETC_DEVICE explicit ForwardPass(const ForwardArguments& arguments)
      : arguments_(arguments),
        softmax_(arguments.softmax),
        tile_(softmax_, arguments.splits.count),
        memory_(SharedMemory(), softmax_.ids, /*is_backward=*/false),
        has_context_(arguments.context.data != nullptr),
        exponent_scale_(kLog2OfE / softmax_.divisor) {}

  ETC_DEVICE void Run() {
    LoadTile<kColumns, kTile>(RowsOf<E>(softmax_.query, tile_.batch, tile_.head,
                                        softmax_.queries, softmax_.head_dim),
                              tile_.first, memory_.query);
    if (softmax_.ids > 0) {
      ComputeById<E, kColumns>(softmax_, tile_, memory_.query,
                               memory_.Step(0).key, memory_.by_id);
    }
    Clear(context_);
    ForEachKeyStep<E>(
        softmax_, tile_, memory_, has_context_,
        [&](const KeysOfTile<E>& keys, int key,
            const KeyStep<kColumns, P>& step) { Compute(keys, key, step); });
    if (has_context_) {
      StoreContext(0);
      StoreContext(1);
    }
  }

 private:
  static constexpr int P = kParts<E>;
  static constexpr int kEights = kStep / 8;

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
    float previous[kEights][4];
    LoadScores(place(arguments_.previous), bits, keys.places, previous);
    float scores[kEights][4];
    Clear(scores);
    MultiplyTransposed<kColumns, P, kTile, kStep>(memory_.query, tile_.warp_row,
                                                  step.key, scores);
    FinishScores(softmax_, tile_, keys.sets.block.rule, key, bits,
                 memory_.by_id, scores);
    float* const carried = place(arguments_.carried);
    if (carried != nullptr) {
      const float sign = arguments_.subtract ? -1.0f : 1.0f;
      float totals[kEights][4];
      ETC_UNROLL
      for (int n = 0; n < kEights; ++n) {
        ETC_UNROLL
        for (int i = 0; i < 4; ++i) {
          totals[n][i] = previous[n][i] + sign * scores[n][i];
        }
      }
      StoreScores(totals, bits, keys.places, carried);
    }
    if (has_context_) {
      MakeLogits(bits, block, previous, scores);
      MakeWeights(0, block, key, scores);
      MakeWeights(1, block, key, scores);
      Multiply<kColumns, P, kStep>(scores, step.value, context_);
    }
  }

  // Adds the previous scores, times their gate; -infinity where a query does
  // not see a key.
  ETC_DEVICE void MakeLogits(const RowBits& bits, int block,
                             const float (&previous)[kEights][4],
                             float (&scores)[kEights][4]) const {
    const float* const gates = softmax_.gates[block];
    const float gate = gates != nullptr ? gates[tile_.head] : 1.0f;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = HasBit(bits.visible[i / 2], n, i % 2)
                           ? scores[n][i] + gate * previous[n][i]
                           : -INFINITY;
      }
    }
  }

  // Logits of row r become weights, relative to the largest logit so far, with
  // dropout; sum and context of the row are made relative to it, too.
  ETC_DEVICE void MakeWeights(int r, int block, int key,
                              float (&scores)[kEights][4]) {
    float most = largest_[r];
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      most = fmaxf(most, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    most = fmaxf(most, ShuffleXor(most, 1));
    most = fmaxf(most, ShuffleXor(most, 2));
    // A row that has seen nothing yet.
    const float base = most == -INFINITY ? 0.0f : most;
    const float shrink = Exp2((largest_[r] - base) * exponent_scale_);
    largest_[r] = most;
    float of_step = 0.0f;
    ETC_UNROLL
    for (int n = 0; n < kEights; ++n) {
      ETC_UNROLL
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = Exp2((scores[n][i] - base) * exponent_scale_);
        of_step += scores[n][i];
      }
    }
    if (softmax_.dropout_threshold > 0) {
      DropWeights(softmax_, tile_, r, block, key, scores);
    }
    sum_[r] = sum_[r] * shrink + of_step;
    if (WarpAny(shrink != 1.0f)) {
      ETC_UNROLL
      for (int n = 0; n < kColumns / 8; ++n) {
        context_[n][2 * r] *= shrink;
        context_[n][2 * r + 1] *= shrink;
      }
    }
  }

  ETC_DEVICE void StoreContext(int r) {
    const float sum = SumOfRow(sum_[r]);
    const int query = tile_.Query(r);
    if (query >= softmax_.queries) {
      return;
    }
    const bool is_first = Thread() % 4 == 0;
    if (arguments_.splits.count > 1) {
      const int64_t index = SplitIndex(softmax_, tile_, r);
      if (is_first) {
        arguments_.split_max[index] = largest_[r];
        arguments_.split_sum[index] = sum;
      }
      StoreRow<kColumns>(context_, r, softmax_.value_dim, 1.0f,
                         arguments_.splits.sums + index * softmax_.value_dim);
      return;
    }
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    if (is_first) {
      const int64_t index = tile_.Index(softmax_, r);
      arguments_.row_max[index] = sum > 0.0f ? largest_[r] : 0.0f;
      arguments_.row_inverse_sum[index] = inverse;
    }
    StoreRow<kColumns>(context_, r, softmax_.value_dim, inverse,
                       RowsOf<E>(arguments_.context, tile_.batch, tile_.head,
                                 softmax_.queries, softmax_.value_dim)
                           .Row(query));
  }

  const ForwardArguments& arguments_;
  const Softmax& softmax_;
  const QueryTile tile_;
  const QueryPassMemory<kColumns, P> memory_;
  const bool has_context_;
  const float exponent_scale_;
  float largest_[2] = {-INFINITY, -INFINITY};
  float sum_[2] = {0.0f, 0.0f};
  float context_[kColumns / 8][4];
};

template <typename E, int kColumns>
ETC_KERNEL void ETC_BLOCKS(kColumns <= 64 ? 4 : 3)
    ForwardKernel(ForwardArguments arguments) {
  ForwardPass<E, kColumns>(arguments).Run();
}

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
