#include "attention/row_visibility.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>

#include "attention/pattern.h"

namespace etc {
namespace {

// Calls function(key) for each key in [begin, end) of the set of `query`.
template <typename Function>
void ForEachKey(const RunSetTable& sets, int64_t query, int64_t begin,
                int64_t end, const Function& function) {
  const auto i = static_cast<size_t>(query);
  for (int32_t r = sets.first[i]; r < sets.last[i]; ++r) {
    const KeyRun run = sets.runs[static_cast<size_t>(r)];
    const int64_t last = std::min<int64_t>(end, run.end);
    for (int64_t key = std::max<int64_t>(begin, run.begin); key < last; ++key) {
      function(key);
    }
  }
}

// Writes the ids of keys [begin, end) for one query to ids[key - begin].
void WriteIds(const BlockRuns& block, int64_t query, int64_t begin, int64_t end,
              int64_t max_distance, int64_t* ids) {
  const bool all_special = block.special.first.empty();
  switch (block.rule) {
    case RelativeRule::kNone:
      TORCH_CHECK(begin == end,
                  "a block of keys has no relative ids, but the "
                  "pattern has");
      return;
    case RelativeRule::kDistance:
      if (all_special) {
        for (int64_t key = begin; key < end; ++key) {
          ids[key - begin] = RelativeId(key - query, max_distance);
        }
        return;
      }
      std::fill(ids, ids + (end - begin), OtherSegmentId(max_distance));
      ForEachKey(block.special, query, begin, end, [&](int64_t key) {
        ids[key - begin] = RelativeId(key - query, max_distance);
      });
      return;
    case RelativeRule::kLink:
      std::fill(ids, ids + (end - begin), NotLinkedId(max_distance));
      if (!all_special) {
        ForEachKey(block.special, query, begin, end, [&](int64_t key) {
          ids[key - begin] = LinkedId(max_distance);
        });
      }
      return;
  }
}

}  // namespace

RowVisibility VisibilityOfRows(const SoftmaxRuns& runs,
                               const RowsOverKeys& rows) {
  const int64_t count = rows.queries.size(0);
  const int64_t begin = rows.own_keys.begin;
  const int64_t end = rows.own_keys.end;
  const int64_t own = end - begin;
  const int64_t columns = own + rows.other_keys;
  const bool has_ids = runs.max_distance > 0;
  RowVisibility out;
  out.mask = torch::zeros({count, columns}, torch::kBool);
  if (has_ids) {
    out.ids = torch::empty({count, columns}, torch::kInt64);
  }
  const auto* query = rows.queries.data_ptr<int64_t>();
  auto* mask = out.mask.data_ptr<bool>();
  auto* ids = has_ids ? out.ids.data_ptr<int64_t>() : nullptr;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t i = query[n];
    bool* const row = mask + n * columns;
    const bool has_window = rows.window.is_restricted();
    ForEachKey(runs.own.visible, i,
               has_window ? std::max(begin, i - rows.window.before) : begin,
               has_window ? std::min(end, i + rows.window.after + 1) : end,
               [&](int64_t key) { row[key - begin] = true; });
    ForEachKey(runs.other.visible, i, 0, rows.other_keys,
               [&](int64_t key) { row[own + key] = true; });
    if (has_ids) {
      int64_t* const ids_of_row = ids + n * columns;
      WriteIds(runs.own, i, begin, end, runs.max_distance, ids_of_row);
      WriteIds(runs.other, i, 0, rows.other_keys, runs.max_distance,
               ids_of_row + own);
    }
  }
  return out;
}

}  // namespace etc
