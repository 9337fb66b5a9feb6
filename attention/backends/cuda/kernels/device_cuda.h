#ifndef ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_CUDA_H_
#define ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_CUDA_H_

// The words of device.h by CUDA C++ and PTX (compute capability 8.0 and up).

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#define ETC_KERNEL __global__
// Lets so many blocks of threads share a multiprocessor.
#define ETC_BLOCKS(n) __launch_bounds__(128, n)
#define ETC_NO_UNROLL _Pragma("unroll 1")
#define ETC_UNROLL _Pragma("unroll")
#define ETC_HOST_DEVICE __host__ __device__ __forceinline__
#define ETC_DEVICE __device__ __forceinline__
// Called, where that is rare.
#define ETC_DEVICE_CALL __device__ __noinline__

namespace etc::kernels::cuda {

// Memory that the threads of a block share.
ETC_DEVICE unsigned char* SharedMemory() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}

ETC_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
ETC_DEVICE int BlockX() { return static_cast<int>(blockIdx.x); }
ETC_DEVICE int BlockY() { return static_cast<int>(blockIdx.y); }

ETC_DEVICE void SyncThreads() { __syncthreads(); }
ETC_DEVICE bool WarpAny(bool value) {
  return __any_sync(0xffffffffu, value) != 0;
}
template <typename Value>
ETC_DEVICE Value ShuffleXor(Value value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

// Four 8 x 8 matrices of 16 bits: lane l gives the address of row l % 8 of
// matrix l / 8 and gets elements 2 (l % 4) and the next of row l / 4 of each.
ETC_DEVICE void LoadMatrices(uint32_t (&out)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(address)
      : "memory");
}
// The same of the matrices transposed.
ETC_DEVICE void LoadMatricesTransposed(uint32_t (&out)[4],
                                       const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(address)
      : "memory");
}

// c += a b, a [16, 16] and b [16, 8] in bfloat16, in the fragments of
// mma.m16n8k16.
ETC_DEVICE void MultiplyAddTile(float (&c)[4], const uint32_t (&a)[4],
                                const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers rounded to bfloat16, `low` in the low half.
ETC_DEVICE uint32_t PackBfloat16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
ETC_DEVICE float FloatOfBits(uint32_t bits) { return __uint_as_float(bits); }
// 2^x with an error of 2 ulp; 0 where that is below the normal numbers.
ETC_DEVICE float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

struct alignas(16) Words4 {
  uint32_t words[4];
};

// Copies 16 bytes to shared memory, or 16 zeros, some time before
// WaitForCopies.
ETC_DEVICE void CopyLater(void* shared, const void* from, bool is_there) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
               "l"(from), "r"(bytes)
               : "memory");
}
ETC_DEVICE void WaitForCopies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

inline void CheckCuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA ") + what + ": " +
                             cudaGetErrorString(error));
  }
}

// Runs kernel(arguments...) in blocks_x times blocks_y blocks of threads.
template <typename Argument>
void Launch(void (*kernel)(Argument), const Argument& argument, int blocks_x,
            int blocks_y, int threads, size_t shared_memory, void* stream) {
  CheckCuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_memory)),
            "shared memory");
  kernel<<<dim3(static_cast<unsigned>(blocks_x),
                static_cast<unsigned>(blocks_y)),
           static_cast<unsigned>(threads), shared_memory,
           static_cast<cudaStream_t>(stream)>>>(argument);
  CheckCuda(cudaGetLastError(), "launch");
}

inline const char* UnsupportedDevice() {
  int device = 0;
  int major = 0;
  CheckCuda(cudaGetDevice(&device), "device");
  CheckCuda(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
      "attribute");
  return major >= 8 ? "" : "the device's compute capability is below 8.0";
}

inline size_t MostSharedMemory() {
  int device = 0;
  int bytes = 0;
  CheckCuda(cudaGetDevice(&device), "device");
  CheckCuda(cudaDeviceGetAttribute(
                &bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
            "attribute");
  return static_cast<size_t>(bytes);
}

}  // namespace etc::kernels::cuda

#endif  // ETC_ATTENTION_BACKENDS_CUDA_KERNELS_DEVICE_CUDA_H_
