#include "tests/support/emulated_cuda_kernels.h"

#include "attention/backends/cuda/cuda_backend.h"
#include "attention/backends/cuda/kernels/arguments.h"
#include "attention/backends/cuda/kernels/attention_kernels.cu"
#include "tests/support/stand_in_cuda.h"

namespace etc {
namespace {

using namespace kernels::cuda;  // NOLINT(google-build-using-namespace)

const Kernels& Compiled() {
  static const Kernels compiled = CompiledKernels();
  return compiled;
}

}  // namespace

void UseEmulatedCudaKernels() {
  static const Kernels emulated = {
      .unsupported_device = Compiled().unsupported_device,
      .current_stream = []() -> void* { return nullptr; },
      .most_shared_memory = Compiled().most_shared_memory,
      .shared_memory = Compiled().shared_memory,
      .forward =
          [](const ForwardArguments& arguments, Element element, void* stream) {
            const StandInAccess access;
            Compiled().forward(arguments, element, stream);
          },
      .context_dots =
          [](const BackwardArguments& arguments, Element element,
             void* stream) {
            const StandInAccess access;
            Compiled().context_dots(arguments, element, stream);
          },
      .query_gradients =
          [](const BackwardArguments& arguments, Element element,
             void* stream) {
            const StandInAccess access;
            Compiled().query_gradients(arguments, element, stream);
          },
      .key_gradients =
          [](const BackwardArguments& arguments, int block, Element element,
             void* stream) {
            const StandInAccess access;
            Compiled().key_gradients(arguments, block, element, stream);
          }};
  CudaBackend::UseKernels(&emulated);
}

}  // namespace etc
