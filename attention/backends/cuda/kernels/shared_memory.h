#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_SHARED_MEMORY_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/products.h"
#include "base/random.h"

namespace etc::kernels::cuda {

// Arrays that a block of threads shares, one after the other. The same
// functions say where they are and, from null on, how many bytes they take.
class SharedLayout {
 public:
  ETC_HOST_DEVICE explicit SharedLayout(unsigned char* memory)
      : memory_(memory) {}

  template <typename Value>
  ETC_HOST_DEVICE Value* Take(size_t count) {
    unsigned char* const place = memory_ + bytes_;
    bytes_ += (count * sizeof(Value) + 15) / 16 * 16;
    return reinterpret_cast<Value*>(place);
  }
  template <int kColumns, int P>
  ETC_HOST_DEVICE uint16_t* TakeTile(int rows) {
    return Take<uint16_t>(TileBytes<kColumns, P>(rows) / sizeof(uint16_t));
  }
  ETC_HOST_DEVICE size_t bytes() const { return bytes_; }

 private:
  unsigned char* memory_;
  size_t bytes_ = 0;
};

// Keys of one step.
template <int kColumns, int P>
struct KeyStep {
  ETC_HOST_DEVICE explicit KeyStep(unsigned char* memory) {
    SharedLayout layout(memory);
    key = layout.TakeTile<kColumns, P>(kStep);
    value = layout.TakeTile<kColumns, P>(kStep);
    bytes = layout.bytes();
  }

  uint16_t* key;
  uint16_t* value;
  size_t bytes;
};

// Memory of the passes over tiles of queries, which take keys in steps.
template <int kColumns, int P>
struct QueryPassMemory {
  ETC_HOST_DEVICE QueryPassMemory(unsigned char* memory, int ids,
                                  bool is_backward) {
    SharedLayout layout(memory);
    query = layout.TakeTile<kColumns, P>(kTile);
    context_gradient =
        is_backward ? layout.TakeTile<kColumns, P>(kTile) : nullptr;
    step_bytes = KeyStep<kColumns, P>(nullptr).bytes;
    steps = layout.Take<unsigned char>(kBuffers<P> * step_bytes);
    ranges = layout.Take<int>(16);
    by_id = layout.Take<float>(static_cast<size_t>(kTile * ids));
    by_id_gradient =
        layout.Take<float>(static_cast<size_t>(is_backward ? kTile * ids : 0));
    bytes = layout.bytes();
  }

  ETC_DEVICE KeyStep<kColumns, P> Step(int buffer) const {
    return KeyStep<kColumns, P>(steps + buffer * step_bytes);
  }

  uint16_t* query;
  uint16_t* context_gradient;
  unsigned char* steps;
  size_t step_bytes;
  int* ranges;
  float* by_id;           // [kTile][ids]
  float* by_id_gradient;  // [kTile][ids]
  size_t bytes;
};

// Queries of one step.
template <int kColumns, int P>
struct QueryStep {
  ETC_HOST_DEVICE QueryStep(unsigned char* memory, int ids) {
    SharedLayout layout(memory);
    query = layout.TakeTile<kColumns, P>(kStep);
    context_gradient = layout.TakeTile<kColumns, P>(kStep);
    visible = layout.Take<uint32_t>(2 * kStep);
    special = layout.Take<uint32_t>(2 * kStep);
    row_max = layout.Take<float>(kStep);
    row_inverse_sum = layout.Take<float>(kStep);
    context_dot = layout.Take<float>(kStep);
    dropout = layout.Take<DropoutRow>(kStep);
    by_id = layout.Take<float>(static_cast<size_t>(kStep * ids));
    bytes = layout.bytes();
  }

  uint16_t* query;
  uint16_t* context_gradient;
  uint32_t* visible;  // of each query, both halves of the keys
  uint32_t* special;
  float* row_max;
  float* row_inverse_sum;
  float* context_dot;
  DropoutRow* dropout;
  float* by_id;  // [kStep][ids]
  size_t bytes;
};

// Memory of the pass over tiles of keys, which takes queries in steps.
template <int kColumns, int P>
struct KeyPassMemory {
  ETC_HOST_DEVICE KeyPassMemory(unsigned char* memory, int number_of_ids)
      : ids(number_of_ids) {
    SharedLayout layout(memory);
    key = layout.TakeTile<kColumns, P>(kTile);
    value = layout.TakeTile<kColumns, P>(kTile);
    step_bytes = QueryStep<kColumns, P>(nullptr, ids).bytes;
    steps = layout.Take<unsigned char>(kBuffers<P> * step_bytes);
    bytes = layout.bytes();
  }

  ETC_DEVICE QueryStep<kColumns, P> Step(int buffer) const {
    return QueryStep<kColumns, P>(steps + buffer * step_bytes, ids);
  }

  uint16_t* key;
  uint16_t* value;
  unsigned char* steps;
  size_t step_bytes;
  int ids;
  size_t bytes;
};

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_SHARED_MEMORY_H_
