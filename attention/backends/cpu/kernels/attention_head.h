#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_HEAD_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_HEAD_H_

#include <cstdint>

#include "attention/key_runs.h"

namespace etc::kernels {

struct RoundedProducts;

// One batch entry and head as the kernels (attention_tile.h) see it: plain
// pointers. Strides are in elements, between rows; the elements of a row are
// adjacent. Keys and queries are numbered from the beginning of the sequence.

// The keys of one block: own or other ones (AttentionOperands).
struct KeyBlock {
  const float* key = nullptr;
  int64_t key_stride = 0;
  const float* value = nullptr;
  int64_t value_stride = 0;
  int64_t keys = 0;

  // A query sees the keys of its set, of them those in its window.
  RunSets visible;
  KeyWindow window = kNoWindow;
  RelativeRule rule = RelativeRule::kNone;
  RunSets special;
};

// Scores of a block, a row for each query. With a window, key j is column
// j - i + before of row i, else column j. `rows` may be null: there are none.
template <typename T>
struct ScoreRows {
  T* rows = nullptr;
  int64_t stride = 0;
};

// Everything but results. d is `head_dim`.
//
//   own     = score_factor (q . k + q . E[id] + bias[id]) / sqrt(d)
//   carried = previous + own
//   logit   = carried / divisor, or, of a gated head, own + gate previous
//   context = dropout(softmax over visible keys of logit) . v
//
// With `rounded` both factors of every product, forward and backward, are
// rounded to bfloat16: q, k, v, E, the weights, and the gradients of context,
// scores and relative scores. Sums, biases, scores, what is carried, and
// exponentials are float32.
struct AttentionHead {
  const RoundedProducts* rounded = nullptr;  // null: products in float32
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  const float* query = nullptr;
  int64_t query_stride = 0;
  KeyBlock blocks[2];

  // Rows of E [ids][d] and bias [ids], at least 2m + 4 of them; unused when no
  // block has a rule.
  int64_t max_distance = 0;
  const float* relative = nullptr;
  int64_t relative_stride = 0;
  const float* relative_bias = nullptr;
  int64_t relative_bias_stride = 0;

  float score_factor = 1.0f;
  float divisor = 1.0f;  // 1 of a gated head
  // True if there are previous scores, which enter logits times the gate of
  // their block.
  bool is_gated = false;
  float gates[2] = {1.0f, 1.0f};
  // Probability of dropping a weight, below 1, and the seed that decides which
  // (base/random.h), for this head alone.
  double dropout = 0.0;
  uint64_t dropout_seed = 0;
};

// Kernels order relative ids by columns: distances -m to m, then ids without a
// distance. Returns the id of a column (attention/pattern.h).
constexpr int64_t RelativeIdOfColumn(int64_t column, int64_t m) {
  if (column > 2 * m) {
    return column;
  }
  return column >= m ? column - m : 2 * m - column;
}
// Number of columns.
constexpr int64_t RelativeColumns(int64_t m) { return 2 * m + 4; }

}  // namespace etc::kernels

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNELS_ATTENTION_HEAD_H_
