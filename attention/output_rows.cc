#include "attention/output_rows.h"

#include <c10/util/Exception.h>

#include <cstdint>

namespace etc {

torch::Tensor RowsOf(const torch::Tensor& stream, const torch::Tensor& rows) {
  if (!rows.defined()) {
    return stream;
  }
  TORCH_CHECK(rows.dim() == 1 && rows.scalar_type() == torch::kInt64,
              "rows should be [R] int64, but are ", rows.sizes(), " ",
              rows.scalar_type());
  const torch::Tensor all = stream.flatten(0, 1);
  if (rows.device().is_cpu() && rows.numel() > 0) {
    const auto first = rows.min().item<int64_t>();
    const auto last = rows.max().item<int64_t>();
    TORCH_CHECK(first >= 0 && last < all.size(0), "rows should be in [0, ",
                all.size(0), "), but are from ", first, " to ", last);
  }
  return all.index_select(0, rows);
}

bool AsksForNone(const torch::Tensor& rows) {
  return rows.defined() && rows.numel() == 0;
}

}  // namespace etc
