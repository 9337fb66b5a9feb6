// The device of a run as LibTorch has it, with pretended CUDA devices, and what
// is refused on them. Runs on a device: cuda_run_test.cc.

#include "tasks/train/device.h"

#include <torch/types.h>

#include <string>

#include "base/amx.h"
#include "base/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

DeviceSettings Settings(const std::string& device,
                        const std::string& precision = "fp32") {
  return {.device = device, .precision = precision};
}

constexpr CudaDevices kTwo = {.built = true, .count = 2};

TEST(DeviceOfRunTest, IsTheOneThatIsMeant) {
  EXPECT_EQ(DeviceOfRun(Settings("cpu"), kTwo)->device, torch::kCPU);
  EXPECT_EQ(DeviceOfRun(Settings("cuda:1"), kTwo)->device,
            torch::Device(torch::kCUDA, 1));
  const auto by_itself = DeviceOfRun(Settings("auto"), kTwo);
  ASSERT_TRUE(by_itself.ok()) << by_itself.status();
  EXPECT_EQ(by_itself->device, torch::Device(torch::kCUDA, 0));
  EXPECT_THAT(
      by_itself->message,
      StartsWith("device: cuda:0 (train.device is \"auto\", and there are 2 "
                 "CUDA devices); attention by "));
  // This machine, whatever it has, has a CPU.
  EXPECT_TRUE(DeviceOfRun(Settings("auto")).ok());
  EXPECT_EQ(
      DeviceOfRun(Settings("cpu"), FindCudaDevices(), "--device")->message,
      "device: cpu (--device is \"cpu\")");
}

TEST(DeviceOfRunTest, RefusesBfloat16WhereThereIsNone) {
  // Not known.
  EXPECT_TRUE(DeviceOfRun(Settings("cuda", "bf16"), kTwo).ok());
  CudaDevices found = kTwo;
  found.compute_capability_majors = {7, 9};
  EXPECT_TRUE(DeviceOfRun(Settings("cpu", "bf16"), found).ok());
  EXPECT_TRUE(DeviceOfRun(Settings("cuda:1", "bf16"), found).ok());
  EXPECT_TRUE(DeviceOfRun(Settings("cuda:0", "fp32"), found).ok());
  for (const std::string device : {"auto", "cuda"}) {
    const absl::Status status =
        DeviceOfRun(Settings(device, "bf16"), found).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("train.precision is \"bf16\""),
              HasSubstr("capability 8.0, but cuda:0"), HasSubstr("has 7.x"),
              HasSubstr("\"fp32\", or train.device to another device")));
  }
}

// The time decides about products by AVX512-BF16 alone.
TEST(PrecisionWarningTest, IsOfProductsThatAreSlowerThanFloat32) {
  using kernels::Bfloat16Products;
  EXPECT_THAT(Bfloat16Warning(Bfloat16Products::kFast, 0.5), IsEmpty());
  EXPECT_THAT(Bfloat16Warning(Bfloat16Products::kFast, 1.1), IsEmpty());
  EXPECT_EQ(Bfloat16Warning(Bfloat16Products::kFast, 1.64),
            "train.precision is bf16, which is slower than fp32 on this CPU: a "
            "product takes 1.6 times as long");
  EXPECT_THAT(Bfloat16Warning(Bfloat16Products::kSlow, 0),
              HasSubstr("it has neither AVX512-BF16 nor AMX"));
  EXPECT_THAT(Bfloat16Warning(Bfloat16Products::kNone, 0),
              HasSubstr("fp32 is used"));
}

// On a device the CPU's lack of bfloat16 does not matter.
TEST(DeviceOfRunTest, WarnsOfBfloat16OnACpuWhereItIsNotFast) {
  const auto warns = [](const std::string& device, const std::string& of) {
    return !DeviceOfRun(Settings(device, of), kTwo)->warning.empty();
  };
  EXPECT_EQ(warns("cpu", "bf16"),
            !PrecisionWarning(torch::kCPU, "bf16").empty());
  if (kernels::HasAmx()) {
    EXPECT_FALSE(warns("cpu", "bf16"));
  }
  EXPECT_FALSE(warns("cpu", "fp32"));
  EXPECT_FALSE(warns("cuda:1", "bf16"));
  auto config = RunConfigFromJson(
      {{"task", "toy"},
       {"model", {{"vocab_size", 5}}},
       {"train", {{"device", "cuda"}, {"precision", "bf16"}}}},
      "test");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(MemoryOfTest, IsNotAskedOfTheCpu) {
  EXPECT_FALSE(MemoryOf(torch::kCPU).has_value());
}

TEST(DeviceOfTest, IsThatOfAllParameters) {
  EXPECT_EQ(DeviceOf({}), torch::kCPU);
  EXPECT_EQ(DeviceOf({{"a", torch::ones({2})}, {"b", torch::ones({3})}}),
            torch::kCPU);
  const torch::Tensor elsewhere =
      torch::empty({2}, torch::TensorOptions(torch::kMeta));
  EXPECT_EQ(DeviceOf({{"a", elsewhere}}), torch::kMeta);
  EXPECT_THROW(DeviceOf({{"a", elsewhere}, {"b", torch::ones({3})}}),
               c10::Error);
}

}  // namespace
}  // namespace etc
