#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_ARGUMENTS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>

namespace etc::kernels::cuda {

// One softmax of all heads as the CUDA kernels see it: pointers to the device's
// memory. All of it travels to the kernels by value.

// Types of queries, keys, values, contexts and their gradients. Products of
// float32 are sums of products of bfloat16 (products.h), all sums float32.
enum class Element { kFloat32, kBfloat16 };

// [batch, heads, rows, columns] with adjacent columns; strides in elements.
struct Rows {
  void* data = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
};

// Sets of keys of one block of one example (attention/key_runs.h), by offsets
// in 32-bit integers from the beginning of `Softmax::runs`.
struct SetOffsets {
  // Begin and end of the smallest run that has all keys of a query, [queries]
  // pairs; an empty one: 0 and 0.
  int32_t hulls;
  int32_t first;  // [queries]
  int32_t last;   // [queries]
  int32_t runs;   // begin and end of each
  // 1: no query has more than one run, which is its hull; 0: some have.
  int32_t is_single;
};
struct BlockOffsets {
  SetOffsets visible;
  SetOffsets special;
  int32_t has_special;  // 1 or 0: there are no sets
  int32_t rule;         // RelativeRule
};

// A number for each query and key of both blocks: contiguous [batch, heads,
// queries, columns] (ScorePair); null: none.
struct ScoreBlocks {
  float* rows[2] = {nullptr, nullptr};
};

struct Softmax {
  int32_t batch = 0;
  int32_t heads = 0;
  int32_t queries = 0;
  int32_t keys[2] = {0, 0};     // own and other ones
  int32_t columns[2] = {0, 0};  // of scores
  // Own keys [i - before, i + after] of query i; before < 0: all of them.
  int32_t before = -1;
  int32_t after = -1;
  int32_t head_dim = 0;
  int32_t value_dim = 0;

  Rows query;
  Rows key[2];
  Rows value[2];
  // BlockOffsets of [batch][2], then the integers that they point at.
  const int32_t* runs = nullptr;

  // Relative positions: E as [ids] rows of each head, in the type of the
  // queries, and bias, [ids][heads]. No ids: none.
  Rows embedding;
  const float* bias = nullptr;
  int32_t ids = 0;
  int32_t max_distance = 0;

  float score_scale = 1.0f;  // score_factor / sqrt(head_dim)
  float divisor = 1.0f;
  // Gates of the previous scores of both blocks, [heads]; null: none.
  const float* gates[2] = {nullptr, nullptr};

  // Weights are dropped whose number (base/random.h) is below the threshold,
  // others multiplied by `keep_factor`. 0 and 1: no dropout.
  uint64_t dropout_seed = 0;
  int first_head = 0;  // number of the layer's heads before these
  uint32_t dropout_threshold = 0;
  float keep_factor = 1.0f;
};

// Rows of sums of several blocks of threads, which divide the keys (or queries)
// of a row among themselves: contiguous [splits, batch, heads, rows, columns]
// float32.
struct Splits {
  int32_t count = 1;
  // Null: one split alone, whose sums are the result.
  float* sums = nullptr;
};

struct ForwardArguments {
  Softmax softmax;
  ScoreBlocks previous;
  ScoreBlocks carried;    // may be `previous`
  bool subtract = false;  // carried = previous - own; without a context alone

  // Null data: scores alone.
  Rows context;
  // [batch, heads, queries]: the largest logit times the divisor, and 1 / the
  // sum of exponentials, 0 if no key is visible.
  float* row_max = nullptr;
  float* row_inverse_sum = nullptr;
  // With several splits: contexts undivided, largest logits and sums of
  // exponentials of each.
  Splits splits;
  float* split_max = nullptr;  // [splits, batch, heads, queries]
  float* split_sum = nullptr;
};

struct BackwardArguments {
  Softmax softmax;
  // Null: own scores alone.
  ScoreBlocks carried;
  ScoreBlocks carried_gradient;
  const float* row_max = nullptr;
  const float* row_inverse_sum = nullptr;
  Rows context;
  Rows context_gradient;
  // Dot product of each query's context and its gradient, [batch, heads,
  // queries]: context_dots writes it, the others read it.
  float* context_dot = nullptr;

  // Results of the pass over queries.
  Rows query_gradient;
  Splits query_splits;
  // Gradients of the relative table, one for each block of threads: [query
  // tiles times splits, batch, heads] of [ids, head_dim] and of [ids].
  float* embedding_gradient = nullptr;
  float* bias_gradient = nullptr;
  // Gradients of the gates, [query tiles times splits, batch, heads, 2].
  float* gate_gradient = nullptr;
  // Gradients of the previous scores; may be `carried_gradient`.
  ScoreBlocks previous_gradient;
  // carried = carried - own.
  bool undo = false;

  // Results of the pass over keys of one block. It reads q . E[id] + bias[id]
  // of all queries, contiguous [batch, heads, queries, ids], where scores are
  // computed again: those that are not carried or have gates.
  const float* by_id = nullptr;
  Rows key_gradient;
  Rows value_gradient;
  Splits key_splits;
  Splits value_splits;  // of the same count
};

// Queries of a block of threads in the passes over queries, keys in those over
// keys; and how many of the others it takes at once.
inline constexpr int32_t kTile = 64;
inline constexpr int32_t kStep = 32;
inline constexpr int32_t kThreads = 128;
// Rows of a block of threads in the kernels that give each row a warp.
inline constexpr int32_t kWarpRows = kThreads / 32;

constexpr int32_t TilesOf(int32_t rows) { return (rows + kTile - 1) / kTile; }

// The kernels: on a device, or emulated (device_emulation.h). All are
// asynchronous on `stream`, a cudaStream_t, and throw std::runtime_error if the
// device refuses them.
struct Kernels {
  static constexpr int32_t kVersion = 1;
  // Columns of queries and values may be at most as many.
  static constexpr int32_t kMostColumns = 128;
  int32_t version = kVersion;
  // Empty, or why the current device cannot run them.
  const char* (*unsupported_device)();
  // The stream of LibTorch on the current device.
  void* (*current_stream)();
  // Bytes of shared memory that a block of threads has at most, on the current
  // device.
  size_t (*most_shared_memory)();
  // Bytes that the greediest of the kernels needs.
  size_t (*shared_memory)(const Softmax& softmax, Element element);

  // The carried scores and, with splits, their parts of the context, then the
  // context and the statistics.
  void (*forward)(const ForwardArguments& arguments, Element element,
                  void* stream);
  void (*context_dots)(const BackwardArguments& arguments, Element element,
                       void* stream);
  void (*query_gradients)(const BackwardArguments& arguments, Element element,
                          void* stream);
  // `block`: 0 own keys, 1 others. Before the pass over queries, which may
  // overwrite scores and gradients.
  void (*key_gradients)(const BackwardArguments& arguments, int block,
                        Element element, void* stream);
};

// The kernels of attention_kernels.cu, without a stream.
Kernels CompiledKernels();

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_ARGUMENTS_H_
