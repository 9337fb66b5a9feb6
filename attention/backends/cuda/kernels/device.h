#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_H_

// The words in which the kernels are written, so that they are compiled for a
// device and for the CPU, where tests run them (device_emulation.h).

#ifdef __CUDACC__
#include "attention/backends/cuda/kernels/device_cuda.h"
#else
#include "attention/backends/cuda/kernels/device_emulation.h"
#endif

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_H_
