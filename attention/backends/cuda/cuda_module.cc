// The module realetc_cuda_attention.so: the kernels, and the only place that
// links CUDA. The program opens it if there is a CUDA device (cuda_loader.h).

#include <c10/cuda/CUDAStream.h>

#include "attention/backends/cuda/cuda_loader.h"
#include "attention/backends/cuda/kernels/arguments.h"

extern "C" __attribute__((visibility("default"))) const void*
EtcCudaAttentionModule() {
  using etc::kernels::cuda::CompiledKernels;
  using etc::kernels::cuda::Kernels;
  static const Kernels kernels = [] {
    Kernels compiled = CompiledKernels();
    compiled.current_stream = [] {
      return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream());
    };
    return compiled;
  }();
  return &kernels;
}
