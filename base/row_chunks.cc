#include "base/row_chunks.h"

#include <algorithm>
#include <vector>

#include "base/parallel_tasks.h"

namespace etc {
namespace {

// Enough for many threads, few enough for their sums to be small.
constexpr int64_t kMostChunks = 64;
constexpr int64_t kLeastRows = 16;

}  // namespace

torch::Tensor ForEachRowChunk(
    int64_t rows, int64_t sums, int64_t columns,
    const std::function<void(const RowChunk&)>& function) {
  const int64_t size =
      std::max(kLeastRows, (rows + kMostChunks - 1) / kMostChunks);
  const int64_t chunks = (rows + size - 1) / size;
  const int64_t width = sums * columns;
  std::vector<float> partial(static_cast<size_t>(chunks * width));
  ForEachTask(chunks, /*floats=*/0, [&](int64_t chunk, float*) {
    function({.begin = chunk * size,
              .end = std::min((chunk + 1) * size, rows),
              .sums = partial.data() + chunk * width});
  });
  std::vector<double> total(static_cast<size_t>(width));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const float* const from = partial.data() + chunk * width;
    for (int64_t i = 0; i < width; ++i) {
      total[static_cast<size_t>(i)] += static_cast<double>(from[i]);
    }
  }
  torch::Tensor result = torch::empty({sums, columns}, torch::kFloat32);
  std::copy(total.begin(), total.end(), result.data_ptr<float>());
  return result;
}

torch::Tensor ColumnSums(const torch::Tensor& matrix) {
  const torch::Tensor rows = matrix.contiguous();
  const int64_t columns = rows.size(1);
  const float* const data = rows.data_ptr<float>();
  return ForEachRowChunk(rows.size(0), 1, columns, [&](const RowChunk& chunk) {
    for (int64_t r = chunk.begin; r < chunk.end; ++r) {
      const float* const row = data + r * columns;
      for (int64_t c = 0; c < columns; ++c) {
        chunk.sums[c] += row[c];
      }
    }
  })[0];
}

}  // namespace etc
