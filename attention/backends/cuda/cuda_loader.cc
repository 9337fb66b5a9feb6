#include "attention/backends/cuda/cuda_loader.h"

#include "base/module_loader.h"

namespace etc {
namespace {

using kernels::cuda::Kernels;

constexpr ModuleFile kModule = {
    .user = "Fused attention on CUDA devices",
    .name = "realetc_cuda_attention.so",
    .function = "EtcCudaAttentionModule",
    .version = Kernels::kVersion,
    // CUDA's runtime, which the module has for itself.
    .clashing_symbol = "cudaLaunchKernel",
    .library = "libcudart",
};

}  // namespace

const absl::StatusOr<const Kernels*>& LoadedCudaKernels() {
  static const absl::StatusOr<const Kernels*> module =
      OpenModule<Kernels>(kModule);
  return module;
}

}  // namespace etc
