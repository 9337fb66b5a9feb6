#ifndef ETC_BASE_ROW_CHUNKS_H_
#define ETC_BASE_ROW_CHUNKS_H_

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace etc {

// Rows [begin, end), and the buffer of their sums: [sums][columns], 0 at the
// beginning.
struct RowChunk {
  int64_t begin;
  int64_t end;
  float* sums;
};

// Calls function(chunk) for chunks that together hold rows [0, rows), on all
// threads of LibTorch. Returns the total of the chunks' sums, [sums, columns]
// float32 on the CPU. Where chunks begin and in which order they are added
// follows from `rows` alone, so that the result is the same at any number of
// threads. `function` must not throw.
torch::Tensor ForEachRowChunk(
    int64_t rows, int64_t sums, int64_t columns,
    const std::function<void(const RowChunk&)>& function);

// The sums of the columns of [rows, n] float32 on the CPU: [n], the same at any
// number of threads.
torch::Tensor ColumnSums(const torch::Tensor& matrix);

}  // namespace etc

#endif  // ETC_BASE_ROW_CHUNKS_H_
