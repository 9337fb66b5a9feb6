// Devices by name on machines with no CUDA, and with 0, 1 and 2 devices of it;
// and that each mistake lists the devices that exist.

#include "tasks/config/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace etc {
namespace {

using testing::HasSubstr;

constexpr CudaDevices kNotBuilt = {.built = false, .count = 0};

CudaDevices Devices(int64_t count) { return {.built = true, .count = count}; }

std::string NameOf(const std::string& text, const CudaDevices& found) {
  const auto chosen = ChooseDevice("train.device", text, found);
  return chosen.ok() ? chosen->name() : chosen.status().ToString();
}

std::string ReasonOf(const std::string& text, const CudaDevices& found) {
  const auto chosen = ChooseDevice("train.device", text, found);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen.ok() ? chosen->reason : "";
}

TEST(DeviceChoiceTest, ReadsNames) {
  using Kind = DeviceChoice::Kind;
  EXPECT_EQ(ParseDevice("auto")->kind, Kind::kAuto);
  EXPECT_EQ(ParseDevice("cpu")->kind, Kind::kCpu);
  EXPECT_EQ(ParseDevice("cuda")->kind, Kind::kCuda);
  EXPECT_EQ(ParseDevice("cuda")->index, std::nullopt);
  EXPECT_EQ(ParseDevice("cuda:1")->kind, Kind::kCuda);
  EXPECT_EQ(ParseDevice("cuda:1")->index, 1);
  EXPECT_EQ(ParseDevice("cuda:127")->index, 127);
  for (const std::string text :
       {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1 ",
        "cuda:1x", "cuda:128", "cuda:18446744073709551616", "cuda1", "cpu:0",
        "auto "}) {
    const absl::Status status = ParseDevice(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("should be \"auto\", \"cpu\", \"cuda\" or, for the "
                          "second CUDA device, \"cuda:1\", but is \"" +
                          text + "\""));
  }
}

TEST(DeviceChoiceTest, TakesWhatThereIsAndSaysWhy) {
  EXPECT_EQ(NameOf("auto", kNotBuilt), "cpu");
  EXPECT_EQ(NameOf("auto", Devices(0)), "cpu");
  EXPECT_EQ(NameOf("auto", Devices(1)), "cuda:0");
  EXPECT_EQ(NameOf("auto", Devices(2)), "cuda:0");
  EXPECT_EQ(NameOf("cuda", Devices(2)), "cuda:0");
  EXPECT_EQ(NameOf("cuda:0", Devices(1)), "cuda:0");
  EXPECT_EQ(NameOf("cuda:1", Devices(2)), "cuda:1");
  for (const CudaDevices& found : {kNotBuilt, Devices(0), Devices(2)}) {
    EXPECT_EQ(NameOf("cpu", found), "cpu");
    EXPECT_EQ(ReasonOf("cpu", found), "train.device is \"cpu\"");
  }
  EXPECT_EQ(ReasonOf("auto", kNotBuilt),
            "train.device is \"auto\", and this LibTorch was built without "
            "CUDA");
  EXPECT_EQ(ReasonOf("auto", Devices(0)),
            "train.device is \"auto\", and LibTorch finds no CUDA device");
  EXPECT_EQ(ReasonOf("auto", Devices(1)),
            "train.device is \"auto\", and there is one CUDA device");
  EXPECT_EQ(ReasonOf("auto", Devices(2)),
            "train.device is \"auto\", and there are 2 CUDA devices");
}

TEST(DeviceChoiceTest, SaysWhatThereIsInsteadOfAMissingOne) {
  EXPECT_EQ(NameOf("cuda", kNotBuilt),
            "FAILED_PRECONDITION: train.device is \"cuda\", but this LibTorch "
            "was built without CUDA; what can be used here: cpu");
  EXPECT_EQ(NameOf("cuda", Devices(0)),
            "FAILED_PRECONDITION: train.device is \"cuda\", but LibTorch finds "
            "no CUDA device; what can be used here: cpu");
  EXPECT_EQ(NameOf("cuda:1", Devices(1)),
            "FAILED_PRECONDITION: train.device is \"cuda:1\", but there is one "
            "CUDA device; what can be used here: cpu, cuda:0");
  EXPECT_EQ(NameOf("cuda:2", Devices(2)),
            "FAILED_PRECONDITION: train.device is \"cuda:2\", but there are 2 "
            "CUDA devices; what can be used here: cpu, cuda:0, cuda:1");
  EXPECT_THAT(NameOf("gpu", Devices(2)),
              HasSubstr("INVALID_ARGUMENT: train.device should be \"auto\""));
}

// One of several ranks on a machine.
TEST(DeviceChoiceTest, EachProcessHasADeviceOfItsOwn) {
  CudaDevices found = Devices(2);
  found.local_rank = 1;
  EXPECT_EQ(NameOf("auto", found), "cuda:1");
  EXPECT_EQ(NameOf("cuda", found), "cuda:1");
  EXPECT_EQ(NameOf("cuda:0", found), "cuda:0");
  EXPECT_EQ(NameOf("cpu", found), "cpu");
  // It sees its own alone.
  found.count = 1;
  EXPECT_EQ(NameOf("auto", found), "cuda:0");
  EXPECT_EQ(NameOf("cuda", found), "cuda:0");
  found.count = 0;
  EXPECT_EQ(NameOf("auto", found), "cpu");
}

TEST(DeviceChoiceTest, RefusesMoreProcessesThanDevices) {
  CudaDevices found = Devices(2);
  found.local_rank = 2;
  for (const std::string text : {"auto", "cuda"}) {
    EXPECT_EQ(NameOf(text, found),
              "FAILED_PRECONDITION: train.device is \"" + text +
                  "\", which gives each process of this machine a CUDA device "
                  "of its own, but there are 2 CUDA devices, and this is "
                  "process 3: start as many as there are devices, or name one "
                  "for all, \"cuda:0\"");
  }
  EXPECT_EQ(NameOf("cuda:1", found), "cuda:1");
}

}  // namespace
}  // namespace etc
