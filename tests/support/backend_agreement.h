#ifndef ETC_TESTS_SUPPORT_BACKEND_AGREEMENT_H_
#define ETC_TESTS_SUPPORT_BACKEND_AGREEMENT_H_

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <string>

#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/exactness.h"
#include "tests/support/sanitizers.h"
#include "tests/support/score_storages.h"

namespace etc {

// False for large patterns under a sanitizer, which is for accesses: backends
// run there, but nothing is compared, as the reference, which has all pairs at
// once, would take most of the time. Builds without one compare everything.
inline bool IsCompared(const SoftmaxPattern& pattern) {
  return !kSanitized || pattern.queries * pattern.keys() <= int64_t{1} << 15;
}

inline void ExpectFinite(const StackResult& result) {
  for (const torch::Tensor& tensor : result.Tensors()) {
    if (tensor.defined()) {
      EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << tensor.sizes();
    }
  }
}

// Compares a fused backend in float32 on `device` with the float64 reference on
// the CPU, forward and backward, with every way to store scores. Outputs may be
// off twice as much as the reference run in float32, gradients three times
// (ExpectAsExact); on other devices than the CPU twice that, as their
// exponentials are off by 2 ulp and theirs by 1. All drop the weights of the
// same seed.
inline void ExpectLayersMatchReference(
    AttentionImplementation implementation, const AttentionStack& values,
    const torch::Device& device = torch::kCPU) {
  const bool compared = IsCompared(values.layers[0].pattern);
  StackResult r;
  StackResult e;
  if (compared) {
    AttentionStack reference = values.As(torch::kFloat32);
    AttentionStack exact = values.As(torch::kFloat64);
    torch::manual_seed(17);
    r = RunLayers(&reference, AttentionImplementation::kReference);
    torch::manual_seed(17);
    e = RunLayers(&exact, AttentionImplementation::kReference);
  }
  for (const ScoreStorage storage :
       StoragesOf(values.layers[0].residual.mode, implementation)) {
    SCOPED_TRACE("storage " + std::to_string(static_cast<int>(storage)));
    AttentionStack stack = values.As(torch::kFloat32, device);
    torch::manual_seed(17);
    const StackResult a = RunLayers(&stack, implementation, storage);
    const double more = device.is_cpu() ? 1.0 : 3.0;
    if (compared) {
      ExpectAsExact(a.outputs, r.outputs, e.outputs, more * 2.0, "output");
      ExpectAsExact(a.gradients, r.gradients, e.gradients, more * 3.0,
                    "gradient");
    } else {
      ExpectFinite(a);
    }
  }
}

// The same of both sides of a case (without long tokens of the global one).
inline void ExpectMatchesReference(AttentionImplementation implementation,
                                   const AttentionCase& c,
                                   const torch::Device& device = torch::kCPU) {
  for (const QuerySide side : {QuerySide::kLong, QuerySide::kGlobal}) {
    if (side == QuerySide::kLong && c.longs == 0) {
      continue;
    }
    SCOPED_TRACE(c.Name() + (side == QuerySide::kLong ? " long" : " global"));
    torch::manual_seed(c.longs * 100 + c.globals);
    const AttentionInputs attention = MakeAttention(c);
    ExpectLayersMatchReference(implementation,
                               AttentionStack(c, side, attention), device);
  }
}

// Compares a fused backend on a CUDA device with the float64 reference, for
// operands that are rounded to bfloat16 before: results may be off twice as
// much as those of the blocked backend on the CPU, those of the kernels, which
// round probabilities and gradients of scores too where these are operands of
// products, eight times.
inline void ExpectMatchesInBfloat16(AttentionImplementation implementation,
                                    const AttentionCase& c, QuerySide side,
                                    const torch::Device& device) {
  SCOPED_TRACE(c.Name() + (side == QuerySide::kLong ? " long" : " global"));
  torch::manual_seed(c.longs);
  const AttentionInputs attention = MakeAttention(c);
  const AttentionStack values(c, side, attention);
  AttentionStack narrow = values.As(torch::kBFloat16);
  AttentionStack exact = narrow.As(torch::kFloat64);
  const StackResult r = RunLayers(&narrow, AttentionImplementation::kBlocked);
  const StackResult e = RunLayers(&exact, AttentionImplementation::kReference);
  for (const ScoreStorage storage : StoragesOf(c.residual, implementation)) {
    SCOPED_TRACE("storage " + std::to_string(static_cast<int>(storage)));
    AttentionStack stack = narrow.As(torch::kBFloat16, device);
    const StackResult a = RunLayers(&stack, implementation, storage);
    EXPECT_EQ(a.outputs[0].scalar_type(), torch::kBFloat16);
    EXPECT_EQ(a.gradients[0].scalar_type(), torch::kBFloat16);
    if (c.residual != ResidualAttention::kOff) {
      // Scores are sums over all layers, for which bfloat16 has too few bits.
      EXPECT_EQ(a.outputs[1].scalar_type(), torch::kFloat32);
    }
    const double times =
        implementation == AttentionImplementation::kKernel ? 8.0 : 2.0;
    ExpectAsExact(a.outputs, r.outputs, e.outputs, times, "output");
    ExpectAsExact(a.gradients, r.gradients, e.gradients, times, "gradient");
  }
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_BACKEND_AGREEMENT_H_
