#ifndef ETC_TESTS_SUPPORT_RUN_MASKS_H_
#define ETC_TESTS_SUPPORT_RUN_MASKS_H_

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>

#include "attention/key_runs.h"
#include "attention/softmax_pattern.h"

namespace etc {

// [T, keys] bool: the sets of one example; with a window [T, 2 radius + 1],
// where column w of row i is key i + w - radius.
inline torch::Tensor MaskOfSets(const RunSetTable& sets, int64_t keys,
                                int64_t radius) {
  const auto queries = static_cast<int64_t>(sets.first.size());
  const int64_t columns = radius < 0 ? keys : 2 * radius + 1;
  torch::Tensor mask = torch::zeros({queries, columns}, torch::kBool);
  auto rows = mask.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i) {
    const auto query = static_cast<size_t>(i);
    for (int32_t r = sets.first[query]; r < sets.last[query]; ++r) {
      const KeyRun run = sets.runs[static_cast<size_t>(r)];
      for (int64_t j = run.begin; j < run.end; ++j) {
        const int64_t column = radius < 0 ? j : j - i + radius;
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
    EXPECT_TRUE(MaskOfSets(runs.own.visible, pattern.own_keys, pattern.radius)
                    .equal(masks.own_mask[b]))
        << "own keys of example " << b;
    EXPECT_TRUE(MaskOfSets(runs.other.visible, pattern.other_keys, -1)
                    .equal(masks.other_mask[b]))
        << "other keys of example " << b;
  }
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RUN_MASKS_H_
