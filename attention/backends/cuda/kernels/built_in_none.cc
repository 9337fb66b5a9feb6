// The kernels of a build without ETC_CUDA: none.

#include "attention/backends/cuda/kernels/arguments.h"

namespace etc::kernels::cuda {

const Kernels* BuiltInKernels() { return nullptr; }

}  // namespace etc::kernels::cuda
