#ifndef ETC_ATTENTION_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
#define ETC_ATTENTION_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_

#include <string>

#include "attention/backends/backend.h"

namespace etc {

// The definition of sparse attention: DenseAttention over own and other keys at
// once, [B, N, T, own keys + other keys]. Tensor operations: any floating
// dtype, any device, every problem.
class ReferenceBackend final : public AttentionBackend {
 public:
  const char* name() const override { return "reference"; }
  std::string UnsupportedReason(const AttentionProblem&) const override {
    return "";
  }
  AttentionForward Forward(const AttentionProblem& problem) const override;
};

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
