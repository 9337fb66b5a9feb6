#ifndef ETC_TESTS_SUPPORT_CUDA_DEVICE_H_
#define ETC_TESTS_SUPPORT_CUDA_DEVICE_H_

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

namespace etc {

// The device of tests that take a real one, or the stand-in for it where that
// is linked (stand_in_cuda.h).
inline const torch::Device kFirstCudaDevice(torch::kCUDA, 0);

// Skips the test where LibTorch finds no CUDA device.
class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) {
      GTEST_SKIP() << "LibTorch finds no CUDA device";
    }
  }
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_CUDA_DEVICE_H_
