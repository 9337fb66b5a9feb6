#include "attention/output_rows.h"

#include <cstdint>
#include <tuple>

#include "base/check_tensor.h"

namespace etc {

torch::Tensor RowsOf(const torch::Tensor& stream, const torch::Tensor& rows) {
  if (!rows.defined()) {
    return stream;
  }
  const torch::Tensor all = stream.flatten(0, 1);
  CheckRows(rows, all.size(0), "rows");
  CheckSameDevice(rows, "rows", stream, "the tokens");
  return all.index_select(0, rows);
}

torch::Tensor DistinctRows(const torch::Tensor& rows, int64_t count) {
  if (!rows.defined() || !rows.device().is_cpu()) {
    return {};
  }
  CheckRows(rows, count, "rows");
  const torch::Tensor distinct =
      std::get<0>(at::_unique(rows.to(torch::kInt64)));
  return distinct.numel() == count ? torch::Tensor() : distinct;
}

bool AsksForNone(const torch::Tensor& rows) {
  return rows.defined() && rows.numel() == 0;
}

}  // namespace etc
