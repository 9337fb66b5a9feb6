#ifndef ETC_TESTS_SUPPORT_EMULATED_CUDA_KERNELS_H_
#define ETC_TESTS_SUPPORT_EMULATED_CUDA_KERNELS_H_

namespace etc {

// Makes CudaBackend compute on the stand-in's devices (stand_in_cuda.h), by the
// same kernels as on a device, compiled for the CPU
// (attention/backends/cuda/kernels/device_emulation.h).
void UseEmulatedCudaKernels();

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_EMULATED_CUDA_KERNELS_H_
