#ifndef ETC_TESTS_SUPPORT_SCORE_STORAGES_H_
#define ETC_TESTS_SUPPORT_SCORE_STORAGES_H_

#include <vector>

#include "attention/residual_attention.h"
#include "attention/residual_scores.h"
#include "attention/sparse_attention.h"

namespace etc {

// The storages of scores that can make a difference: one where nothing is
// carried, or where the reference, which always stores, computes. Layers whose
// gradients are checkpointed look at the storage in any mode
// (etc/encoder_checkpoint.cc).
inline std::vector<ScoreStorage> StoragesOf(
    ResidualAttention mode, AttentionImplementation implementation,
    bool is_checkpointed = false) {
  if (!is_checkpointed &&
      (mode == ResidualAttention::kOff ||
       implementation == AttentionImplementation::kReference)) {
    return {ScoreStorage::kStore};
  }
  return {ScoreStorage::kStore, ScoreStorage::kReverse,
          ScoreStorage::kRecompute};
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_SCORE_STORAGES_H_
