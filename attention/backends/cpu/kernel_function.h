#ifndef ETC_ATTENTION_BACKENDS_CPU_KERNEL_FUNCTION_H_
#define ETC_ATTENTION_BACKENDS_CPU_KERNEL_FUNCTION_H_

#include "attention/backends/cpu/kernel_passes.h"
#include "attention/sparse_attention.h"

namespace etc {

// The kernels as a node of autograd's graph. `problem` has previous scores, but
// not yet where they are carried on; with `carry` the output has scores, in
// tensors of their own or in a buffer: `live`, or a new one. Throws c10::Error
// if `live` is not what the previous scores lie in any more, and from the
// backward pass if that should be differentiable.
SparseAttentionOutput DifferentiableKernel(const KernelProblem& problem,
                                           bool carry, ScoreStorage storage,
                                           const LiveScores& live);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_KERNEL_FUNCTION_H_
