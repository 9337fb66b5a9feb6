#ifndef ETC_TESTS_SUPPORT_RUN_MASKS_H_
#define ETC_TESTS_SUPPORT_RUN_MASKS_H_

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>

#include "attention/key_runs.h"
#include "attention/softmax_pattern.h"

namespace etc {

// [T, keys] bool: the sets of one example; with a window [T, before + 1 +
// after], where column w of row i is key i + w - before.
inline torch::Tensor MaskOfSets(const RunSetTable& sets, int64_t keys,
                                const KeyWindow& window = kNoWindow) {
  const auto queries = static_cast<int64_t>(sets.first.size());
  const bool has_window = window.before >= 0;
  const int64_t columns = has_window ? window.before + 1 + window.after : keys;
  torch::Tensor mask = torch::zeros({queries, columns}, torch::kBool);
  auto rows = mask.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i) {
    const auto query = static_cast<size_t>(i);
    for (int32_t r = sets.first[query]; r < sets.last[query]; ++r) {
      const KeyRun run = sets.runs[static_cast<size_t>(r)];
      for (int64_t j = run.begin; j < run.end; ++j) {
        const int64_t column = has_window ? j - i + window.before : j;
        if (column >= 0 && column < columns) {
          rows[i][column] = true;
        }
      }
    }
  }
  return mask;
}

// Expects the runs of a pattern to say what its masks say.
inline void ExpectRunsMatchMasks(const SoftmaxPattern& pattern) {
  ASSERT_NE(pattern.runs, nullptr);
  ASSERT_EQ(static_cast<int64_t>(pattern.runs->size()), pattern.batch);
  const SoftmaxMasks masks = pattern.masks(torch::kCPU);
  for (int64_t b = 0; b < pattern.batch; ++b) {
    const SoftmaxRuns& runs = (*pattern.runs)[static_cast<size_t>(b)];
    EXPECT_TRUE(MaskOfSets(runs.own.visible, pattern.own_keys, pattern.window)
                    .equal(masks.own_mask[b]))
        << "own keys of example " << b;
    EXPECT_TRUE(MaskOfSets(runs.other.visible, pattern.other_keys)
                    .equal(masks.other_mask[b]))
        << "other keys of example " << b;
  }
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RUN_MASKS_H_
