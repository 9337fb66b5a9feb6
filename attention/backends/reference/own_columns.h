#ifndef ETC_ATTENTION_BACKENDS_REFERENCE_OWN_COLUMNS_H_
#define ETC_ATTENTION_BACKENDS_REFERENCE_OWN_COLUMNS_H_

#include <torch/types.h>

#include <cstdint>

#include "attention/key_runs.h"

namespace etc {

// Moves numbers for own keys between the columns of ScorePair and a dense
// matrix of queries by keys [begin, begin + count). Without a window the two
// are the same, of all own keys.
class OwnColumns {
 public:
  // `queries` is [T] int64.
  OwnColumns(const torch::Tensor& queries, int64_t begin, int64_t count,
             const KeyWindow& window);

  // [..., T, W] -> [..., T, count], 0 outside of the windows.
  torch::Tensor ToDense(const torch::Tensor& windows) const;
  // [..., T, count] -> [..., T, W], 0 for keys that there are not.
  torch::Tensor FromDense(const torch::Tensor& dense) const;

 private:
  // [T, count] int64: the column w = j - i + before of pair (i, j), 0 where
  // outside.
  torch::Tensor column_;
  torch::Tensor in_window_;  // [T, count] bool
  // [T, W] int64: the key i + w - before of column w less `begin`, 0 where
  // outside.
  torch::Tensor key_;
  torch::Tensor in_keys_;  // [T, W] bool
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_REFERENCE_OWN_COLUMNS_H_
