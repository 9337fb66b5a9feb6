// Runs on a CUDA device, by a stand-in on the CPU (tests/support/
// stand_in_cuda.h): that models, heads, losses, optimizers and evaluations
// follow the device, in that an operation on tensors of two devices throws and
// the CPU cannot read the device's memory; that the CPU waits for the device no
// more often than it must; and what becomes of a run when all of its memory is
// gone. Cases for a GPU as well are in cuda_device_test.cc.
//
// Losses and norms agree with the CPU's to 1e-3 of about 1 to 20: both are sums
// in float32 in another order, over three updates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/linear.h"
#include "base/to_device.h"
#include "etc/model.h"
#include "tasks/train/device.h"
#include "tests/support/shipped_config.h"
#include "tests/support/stand_in_cuda.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/toy_model.h"
#include "tests/tasks/train/demo_losses.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;

const torch::Device kCuda(torch::kCUDA, 0);

// --- The stand-in ------------------------------------------------------------

TEST(StandInCudaTest, ComputesAndRefusesWhatCudaRefuses) {
  torch::manual_seed(3);
  const torch::Tensor a = torch::randn({4, 5});
  const torch::Tensor b = torch::randn({5, 3});
  const torch::Tensor product = torch::matmul(a.to(kCuda), b.to(kCuda));
  EXPECT_EQ(product.device(), kCuda);
  EXPECT_TRUE(torch::equal(product.t()[1].cpu(), torch::matmul(a, b).t()[1]));
  EXPECT_TRUE(torch::equal(torch::arange(7, kCuda).cpu(), torch::arange(7)));
  EXPECT_THROW(torch::matmul(a.to(kCuda), b), c10::Error);
  EXPECT_THROW(a.to(kCuda) + a, c10::Error);
  EXPECT_THROW(a.to(kCuda) + a.to(torch::Device(torch::kCUDA, 1)), c10::Error);
  EXPECT_TRUE(torch::equal((a.to(kCuda) + torch::tensor(1.0)).cpu(), a + 1));
}

TEST(StandInCudaDeathTest, LetsNobodyReadItsMemory) {
  const torch::Tensor tensor = torch::ones({3}).to(kCuda);
  const auto* const data =
      static_cast<const volatile float*>(tensor.data_ptr());
  EXPECT_DEATH(static_cast<void>(data[1]), "");
}

TEST(StandInCudaDeathTest, IsNotForAForkedProcess) {
  const torch::Tensor tensor = torch::ones({3}).to(kCuda);
  constexpr int kRefused = 3;
  const auto compute = [&] {
    try {
      tensor.add(1);
    } catch (const c10::Error&) {
      _exit(kRefused);
    }
    _exit(0);
  };
  EXPECT_EXIT(compute(), testing::ExitedWithCode(kRefused), "");
}

TEST(ToDeviceTest, GoesThroughPinnedMemory) {
  const torch::Tensor tensor = torch::arange(6).view({2, 3});
  const int64_t before = StandInPinned();
  EXPECT_TRUE(torch::equal(ToDevice(tensor.t(), kCuda).cpu(), tensor.t()));
  EXPECT_EQ(StandInPinned(), before + 1);
  EXPECT_TRUE(ToDevice(tensor, torch::kCPU).is_same(tensor));
  EXPECT_EQ(ToDevice(torch::ones({0, 2}), kCuda).device(), kCuda);
  EXPECT_EQ(StandInPinned(), before + 1);
}

TEST(ToDeviceTest, TakesWhatIsExpandedOrUndefined) {
  const torch::Tensor tensor = torch::arange(3).expand({2, 3});
  EXPECT_TRUE(torch::equal(ToDevice(tensor, kCuda).cpu(), tensor));
  EXPECT_FALSE(ToDevice({}, kCuda).defined());
}

TEST(MemoryOfTest, IsWhatTheRuntimeSays) {
  const StandInMemoryLimit limit(int64_t{1} << 30);
  const torch::Tensor tensor = torch::ones({1 << 20}, kCuda);
  const auto memory = MemoryOf(kCuda);
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total, int64_t{1} << 30);
  EXPECT_EQ(memory->free, (int64_t{1} << 30) - StandInMemoryInUse());
  EXPECT_LE(memory->free, memory->total - (4 << 20));
}

// --- Products in bfloat16 ----------------------------------------------------

// Rounds like autocast: both operands and the product, not the bias.
TEST(BFloat16OnCudaTest, RoundsOperandsAndProducts) {
  torch::manual_seed(5);
  const auto leaf = [](torch::IntArrayRef shape) {
    return torch::randn(shape).to(kCuda).requires_grad_(true);
  };
  const torch::Tensor input = leaf({2, 5, 16});
  const torch::Tensor weight = leaf({24, 16});
  const torch::Tensor bias = leaf({24});
  LinearProducts products;
  products.set_precision(LinearPrecision::kBfloat16);
  const torch::Tensor result = LinearProducts::Apply(
      products.Input(input), products.Weight(weight), bias);
  EXPECT_EQ(result.scalar_type(), torch::kFloat32);
  const torch::Tensor expected =
      torch::matmul(input.to(torch::kBFloat16), weight.t().to(torch::kBFloat16))
          .to(torch::kFloat32) +
      bias;
  EXPECT_TRUE(torch::equal(result.cpu(), expected.cpu()));
  result.sum().backward();
  for (const torch::Tensor& parameter : {input, weight, bias}) {
    EXPECT_EQ(parameter.grad().scalar_type(), torch::kFloat32);
    EXPECT_GT(parameter.grad().abs().sum().cpu().item<double>(), 0);
  }
}

// --- Copies ------------------------------------------------------------------

TEST(CloneOnCudaTest, HasItsParametersThere) {
  EtcModel model(ToyConfig());
  const auto clone =
      std::dynamic_pointer_cast<EtcModelImpl>(model->clone(kCuda));
  ASSERT_NE(clone, nullptr);
  for (const auto& parameter : model->named_parameters()) {
    const torch::Tensor copy = clone->named_parameters()[parameter.key()];
    EXPECT_EQ(copy.device(), kCuda) << parameter.key();
    EXPECT_TRUE(parameter.value().is_cpu());
    EXPECT_TRUE(torch::equal(copy.cpu(), parameter.value()));
  }
}

// --- The benchmarks ----------------------------------------------------------

class CudaDemoTest : public testing::TestWithParam<DemoCase> {};

TEST_P(CudaDemoTest, LosesWhatItLosesOnTheCpu) {
  const std::vector<double> expected = LossesOn("cpu", GetParam());
  ASSERT_EQ(expected.size(), 3 * 3u);
  const int64_t pinned = StandInPinned();
  EXPECT_THAT(LossesOn("cuda:1", GetParam()),
              Pointwise(DoubleNear(1e-3), expected));
  EXPECT_GT(StandInPinned(), pinned) << "the run was not on the device";
}

TEST_P(CudaDemoTest, LosesAboutAsMuchInBfloat16) {
  ExpectRounded(LossesOn("cuda", GetParam(), "bf16"),
                LossesOn("cuda", GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Demos, CudaDemoTest, testing::ValuesIn(DemoCases()),
                         [](const auto& demo) {
                           return absl::StrCat(demo.param.task, demo.index);
                         });

// --- Runs of a toy -----------------------------------------------------------

class CudaRunTest : public ToyRunTest {
 protected:
  CudaRunTest() { json_["train"]["device"] = "cuda"; }
};

TEST_F(CudaRunTest, SaysWhereItIs) {
  json_["train"]["steps"] = 1;
  const auto messages = [&](const std::string& device) {
    json_["train"]["device"] = device;
    FakeReporter reporter;
    EXPECT_TRUE(Run("run-" + device, &reporter).ok());
    return reporter.messages;
  };
  EXPECT_THAT(messages("auto"),
              Contains(StartsWith(
                  "device: cuda:0 (train.device is \"auto\", and there are 2 "
                  "CUDA devices); attention by tensor operations: there are no "
                  "kernels, which a build with ETC_CUDA has: ")));
  EXPECT_THAT(
      messages("cuda:1"),
      Contains(StartsWith("device: cuda:1 (train.device is \"cuda:1\"); "
                          "attention by tensor operations: ")));
  json_["train"]["device"] = "cuda:2";
  FakeReporter reporter;
  EXPECT_THAT(Run("refused", &reporter).status().ToString(),
              HasSubstr("what can be used here: cpu, cuda:0, cuda:1"));
}

// Four numbers of the update (loss, gradient, change, weights), whatever the
// number of micro-batches; the norm of the first weights; and the loss that is
// checked before the only checkpoint, whose tensors are read then.
TEST_F(CudaRunTest, WaitsForTheDeviceAFewTimesInAnUpdate) {
  json_["data"]["dev"] = nlohmann::json::array();
  json_["train"]["evaluate_every"] = 0;
  const auto waits = [&](int64_t steps, int64_t micro_batch_size) {
    json_["train"]["steps"] = steps;
    json_["train"]["micro_batch_size"] = micro_batch_size;
    const int64_t before = StandInWaits();
    FakeReporter reporter;
    EXPECT_TRUE(
        Run(absl::StrCat("run-", steps, "-", micro_batch_size), &reporter)
            .ok());
    return StandInWaits() - before;
  };
  for (const std::string type : {"bert_adamw", "lamb", "adamw"}) {
    json_["optimizer"]["type"] = type;
    for (const char* run : {"run-2-8", "run-5-8", "run-2-1", "run-5-1"}) {
      std::filesystem::remove_all(Output(run));
    }
    EXPECT_EQ(waits(5, 8) - waits(2, 8), 3 * 4) << type;
    EXPECT_EQ(waits(5, 1) - waits(2, 1), 3 * 4) << type;
  }
}

// Another program takes all memory, down to the last byte, after the third
// update: not even the loss of its weights can be computed.
class MemoryTaker : public FakeReporter {
 public:
  void Update(const Progress& progress) override {
    FakeReporter::Update(progress);
    if (progress.step == 3) {
      limit = std::make_unique<StandInMemoryLimit>(0);
    }
  }
  std::unique_ptr<StandInMemoryLimit> limit;
};

TEST_F(CudaRunTest, SavesUpdatesWithoutAnyMemory) {
  json_["train"]["evaluate_every"] = 0;
  // Saved after the failure of update 4, and before it.
  for (const int64_t every : {2, 1}) {
    SCOPED_TRACE(every);
    json_["train"]["checkpoint_every"] = every;
    const std::string name = absl::StrCat("run-", every);
    const std::string last = Output(name + "/seed-1/checkpoints/step-00000003");
    {
      MemoryTaker reporter;
      const absl::Status status = Run(name, &reporter).status();
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr("out of memory while making update 4, which asked "
                          "for "),
                HasSubstr("; 3 updates are saved in " + last + ": the same")));
      EXPECT_THAT(reporter.warnings,
                  Contains(AllOf(
                      HasSubstr("out of memory while checking update 3, which "
                                "asked for "),
                      HasSubstr(": its weights are finite, and are saved"))));
    }
    FakeReporter second;
    ASSERT_TRUE(Run(name, &second, /*resume=*/true).ok());
    EXPECT_EQ(second.updates.size(), 9u);
  }
  json_["train"]["checkpoint_every"] = 0;
  FakeReporter straight;
  ASSERT_TRUE(Run("straight", &straight).ok());
  EXPECT_EQ(WrittenLosses("run-1"), WrittenLosses("straight"));
  EXPECT_EQ(WrittenLosses("run-2"), WrittenLosses("straight"));
}

}  // namespace
}  // namespace etc
