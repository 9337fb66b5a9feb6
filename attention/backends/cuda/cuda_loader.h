#ifndef ETC_ATTENTION_BACKENDS_CUDA_CUDA_LOADER_H_
#define ETC_ATTENTION_BACKENDS_CUDA_CUDA_LOADER_H_

#include "absl/status/statusor.h"
#include "attention/backends/cuda/kernels/arguments.h"

namespace etc {

// The kernels of the module realetc_cuda_attention.so, which a build with
// ETC_CUDA makes, opened with the first call; kFailedPrecondition as in
// OpenModule (base/module_loader.h).
const absl::StatusOr<const kernels::cuda::Kernels*>& LoadedCudaKernels();

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CUDA_CUDA_LOADER_H_
