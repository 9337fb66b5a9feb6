#ifndef ETC_ATTENTION_ROW_VISIBILITY_H_
#define ETC_ATTENTION_ROW_VISIBILITY_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/key_runs.h"

namespace etc {

// A few queries of one example over own keys [begin, end) and all other keys.
struct RowsOverKeys {
  torch::Tensor queries;  // [T] int64 on the CPU
  KeyRun own_keys;
  int64_t other_keys = 0;
  // The own keys that a query sees at most.
  KeyWindow window = kNoWindow;
};

// Visibility and relative ids of pairs, own keys first.
struct RowVisibility {
  torch::Tensor mask;  // [T, own + other keys] bool
  torch::Tensor ids;   // [T, own + other keys] int64; undefined: none
};

// SoftmaxRuns as tensors, for some of its rows: O(rows x keys) memory, on the
// CPU.
RowVisibility VisibilityOfRows(const SoftmaxRuns& runs,
                               const RowsOverKeys& rows);

}  // namespace etc

#endif  // ETC_ATTENTION_ROW_VISIBILITY_H_
