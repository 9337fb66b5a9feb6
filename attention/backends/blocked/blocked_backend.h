#ifndef ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_

#include <cstdint>
#include <string>

#include "attention/backends/backend.h"

namespace etc {

struct BlockedBackendOptions {
  // Queries that are computed together; 0: DefaultBlockLength.
  int64_t block_length = 0;
};
int64_t DefaultBlockLength(int64_t local_radius);

// Windowed attention by blocks of queries, in memory and time linear in their
// number: b consecutive queries together see the own keys of a span of b + 2r,
// so that their scores are one matrix product, of which the windows are parts
// (windows.h). Without a window it is the reference. Tensor operations: any
// floating dtype, any device.
class BlockedBackend final : public AttentionBackend {
 public:
  explicit BlockedBackend(const BlockedBackendOptions& options = {})
      : options_(options) {}

  const char* name() const override { return "blocked"; }
  std::string UnsupportedReason(const AttentionProblem& problem) const override;
  AttentionForward Forward(const AttentionProblem& problem) const override;

 private:
  BlockedBackendOptions options_;
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_BLOCKED_BLOCKED_BACKEND_H_
