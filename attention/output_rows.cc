#include "attention/output_rows.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <tuple>

#include "base/check_tensor.h"

namespace etc {
namespace {

void CheckRows(const torch::Tensor& rows, int64_t count) {
  TORCH_CHECK(rows.dim() == 1 && (rows.scalar_type() == torch::kInt64 ||
                                  rows.scalar_type() == torch::kInt32),
              "rows should be [R] int64 or int32, but are ", rows.sizes(), " ",
              rows.scalar_type());
  if (rows.device().is_cpu() && rows.numel() > 0) {
    const auto first = rows.min().item<int64_t>();
    const auto last = rows.max().item<int64_t>();
    TORCH_CHECK(first >= 0 && last < count, "rows should be in [0, ", count,
                "), but are from ", first, " to ", last);
  }
}

}  // namespace

torch::Tensor RowsOf(const torch::Tensor& stream, const torch::Tensor& rows) {
  if (!rows.defined()) {
    return stream;
  }
  const torch::Tensor all = stream.flatten(0, 1);
  CheckRows(rows, all.size(0));
  CheckSameDevice(rows, "rows", stream, "the tokens");
  return all.index_select(0, rows);
}

torch::Tensor DistinctRows(const torch::Tensor& rows, int64_t count) {
  if (!rows.defined() || !rows.device().is_cpu()) {
    return {};
  }
  CheckRows(rows, count);
  const torch::Tensor distinct =
      std::get<0>(at::_unique(rows.to(torch::kInt64)));
  return distinct.numel() == count ? torch::Tensor() : distinct;
}

bool AsksForNone(const torch::Tensor& rows) {
  return rows.defined() && rows.numel() == 0;
}

}  // namespace etc
