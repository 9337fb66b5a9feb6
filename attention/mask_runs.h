#ifndef ETC_ATTENTION_MASK_RUNS_H_
#define ETC_ATTENTION_MASK_RUNS_H_

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/key_runs.h"

namespace etc {

// `mask` as bool, expanded to [batch, queries, keys] without a copy of what it
// repeats: [queries, keys] or [batch, queries, keys], where a size of 1 stands
// for all. `name` begins the message. Throws c10::Error for other shapes, and
// as AsBoolMask does.
torch::Tensor ExpandMask(const torch::Tensor& mask, const char* name,
                         int64_t batch, int64_t queries, int64_t keys);

// Documents of tokens as int32 of their own on the CPU, contiguous: integers
// from 0 to 2^31 - 1, or bool. Throws c10::Error, which begins with `name`, for
// other numbers.
torch::Tensor DocumentIds(const torch::Tensor& ids, const std::string& name);

// A mask as runs of keys, one table for each example; nothing if a query has
// more than `most_runs`, by default MostRuns of the columns
// (attention/softmax_pattern.h). `mask` is from ExpandMask, or contiguous
// [batch, queries, columns] bool, on the CPU. Column j of row i is key j; with
// a window key i + j - before, and there are as many keys as queries. Equal
// rows share their runs.
std::optional<std::vector<RunSetTable>> RunsOfMask(
    const torch::Tensor& mask, const KeyWindow& window = kNoWindow,
    std::optional<int64_t> most_runs = {});

}  // namespace etc

#endif  // ETC_ATTENTION_MASK_RUNS_H_
