#include "attention/mask_runs.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "attention/pattern_runs.h"
#include "attention/softmax_pattern.h"
#include "base/check_tensor.h"

namespace etc {
namespace {

// Appends the true elements of `row` as runs of keys; key 0 is at row[first].
void AppendRuns(const bool* row, int64_t columns, int64_t first, int64_t keys,
                std::vector<KeyRun>* runs) {
  const int64_t end = std::min(columns, first + keys);
  for (int64_t j = std::max<int64_t>(first, 0); j < end; ++j) {
    if (!row[j]) {
      continue;
    }
    const int64_t begin = j;
    while (j < end && row[j]) {
      ++j;
    }
    runs->push_back(
        {static_cast<int32_t>(begin - first), static_cast<int32_t>(j - first)});
  }
}

// The runs of one example; false if a query has too many.
bool RunsOfExample(const torch::Tensor& mask, const KeyWindow& window,
                   int64_t most_runs, RunSetTable* table) {
  const int64_t queries = mask.size(0);
  const int64_t columns = mask.size(1);
  const auto size = static_cast<size_t>(columns);
  const bool has_window = window.is_restricted();
  const int64_t keys = has_window ? queries : columns;
  const bool* const rows = mask.data_ptr<bool>();
  *table = EmptySets(queries);
  if (columns == 0) {
    return true;  // without a key there is no row to point to
  }
  for (int64_t i = 0; i < queries; ++i) {
    const auto query = static_cast<size_t>(i);
    const bool* const row = rows + i * mask.stride(0);
    if (!has_window && i > 0 &&
        std::memcmp(row, row - mask.stride(0), size) == 0) {
      table->first[query] = table->first[query - 1];
      table->last[query] = table->last[query - 1];
      continue;
    }
    table->first[query] = RunCount(*table);
    AppendRuns(row, columns, has_window ? window.before - i : 0, keys,
               &table->runs);
    table->last[query] = RunCount(*table);
    if (table->last[query] - table->first[query] > most_runs) {
      return false;
    }
  }
  return true;
}

}  // namespace

torch::Tensor ExpandMask(const torch::Tensor& mask, const char* name,
                         int64_t batch, int64_t queries, int64_t keys) {
  TORCH_CHECK(mask.defined(), name, " is undefined");
  const auto fits = [](int64_t size, int64_t whole) {
    return size == whole || size == 1;
  };
  TORCH_CHECK((mask.dim() == 2 || mask.dim() == 3) &&
                  fits(mask.size(-1), keys) && fits(mask.size(-2), queries) &&
                  (mask.dim() == 2 || fits(mask.size(0), batch)),
              name, " should be [queries, keys] = [", queries, ", ", keys,
              "] or [batch, queries, keys] = [", batch, ", ", queries, ", ",
              keys, "], where 1 stands for all, but is ", mask.sizes());
  torch::Tensor whole = AsBoolMask(mask, name);
  if (whole.dim() == 2) {
    whole = whole.unsqueeze(0);
  }
  return whole.expand({-1, -1, keys})
      .contiguous()
      .expand({batch, queries, keys});
}

torch::Tensor DocumentIds(const torch::Tensor& ids, const std::string& name) {
  if (ids.numel() > 0 && ids.scalar_type() != torch::kBool) {
    const auto lowest = ids.min().item<int64_t>();
    const auto highest = ids.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest <= std::numeric_limits<int32_t>::max(),
                name, " should be from 0 to 2^31 - 1, but is from ", lowest,
                " to ", highest);
  }
  return ids
      .to(ids.options().device(torch::kCPU).dtype(torch::kInt32),
          /*non_blocking=*/false, /*copy=*/true)
      .contiguous();
}

std::optional<std::vector<RunSetTable>> RunsOfMask(
    const torch::Tensor& mask, const KeyWindow& window,
    std::optional<int64_t> most_runs) {
  std::vector<RunSetTable> tables;
  for (int64_t b = 0; b < mask.size(0); ++b) {
    if (b > 0 && mask.stride(0) == 0) {  // one mask for all
      tables.push_back(tables[0]);
      continue;
    }
    RunSetTable table;
    if (!RunsOfExample(mask[b], window,
                       most_runs.value_or(MostRuns(mask.size(2))), &table)) {
      return std::nullopt;
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace etc
