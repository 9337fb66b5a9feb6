#ifndef ETC_TESTS_SUPPORT_IDLE_CUDA_KERNELS_H_
#define ETC_TESTS_SUPPORT_IDLE_CUDA_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "attention/backends/cuda/cuda_backend.h"
#include "attention/backends/cuda/kernels/arguments.h"

namespace etc {

// Makes CudaBackend serve the stand-in's devices (stand_in_cuda.h) with kernels
// that leave their outputs as they are: for tests of what is around them, of
// which memory does not depend on values. The emulated kernels are slow.
inline void UseIdleCudaKernels() {
  using namespace kernels::cuda;  // NOLINT(google-build-using-namespace)
  static const Kernels idle = {
      .unsupported_device = [] { return ""; },
      .current_stream = []() -> void* { return nullptr; },
      .most_shared_memory = []() -> size_t { return 1; },
      .shared_memory = [](const Softmax&, Element) -> size_t { return 0; },
      .forward = [](const ForwardArguments&, Element, void*) {},
      .context_dots = [](const BackwardArguments&, Element, void*) {},
      .query_gradients = [](const BackwardArguments&, Element, void*) {},
      .key_gradients = [](const BackwardArguments&, int, Element, void*) {}};
  CudaBackend::UseKernels(&idle);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_IDLE_CUDA_KERNELS_H_
