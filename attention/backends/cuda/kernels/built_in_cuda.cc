// The kernels of a build with ETC_CUDA.

#include <c10/cuda/CUDAStream.h>

#include "attention/backends/cuda/kernels/arguments.h"

namespace etc::kernels::cuda {

const Kernels* BuiltInKernels() {
  static const Kernels kernels = [] {
    Kernels compiled = CompiledKernels();
    compiled.current_stream = [] {
      return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream());
    };
    return compiled;
  }();
  return &kernels;
}

}  // namespace etc::kernels::cuda
