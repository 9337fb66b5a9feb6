// Runs on a CUDA device against the same on the CPU: losses of every task's
// demo and of a toy, stops and resumes on either device, memory that is too
// little, NCCL, and checkpoints that are evaluated on either device. Rules that
// a real device does not check, as that no tensor is on the wrong one, are in
// cuda_run_test.cc.
//
// Losses and norms agree with the CPU's to 1e-3 of about 1 to 20: both are sums
// in float32 in another order, over three updates; those of twelve updates of
// the toy (six by the stand-in), of about 0.7, to 1e-3 too. In bfloat16, and
// where a head draws the numbers of its dropout on the device: ExpectRounded.
//
// Skipped without a device. With LibTorch 1 without CUDA a stand-in computes
// (tests/support/stand_in_cuda.h), which shows that this file is right, and
// nothing about a GPU.

#include "tests/support/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/torch_version.h"
#include "tasks/distributed/process_group.h"
#include "tasks/train/adam_update.h"
#include "tasks/train/device.h"
#include "tests/support/shipped_config.h"
#include "tests/support/stand_in_cuda.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/train_runs.h"
#include "tests/tasks/distributed/forked_processes.h"
#include "tests/tasks/train/demo_losses.h"
#include "tests/tasks/train/toy_run.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::StartsWith;

// The stand-in's generators are the CPU's.
#ifdef ETC_STAND_IN_CUDA
constexpr bool kDrawsOtherNumbers = false;
constexpr size_t kUpdates = 6;  // of the toy
#else
constexpr bool kDrawsOtherNumbers = true;
constexpr size_t kUpdates = 12;
#endif

// --- Demos -------------------------------------------------------------------

class DemoOnCudaTest : public CudaDeviceTest,
                       public testing::WithParamInterface<DemoCase> {};

TEST_P(DemoOnCudaTest, LosesWhatItLosesOnTheCpu) {
  const std::vector<double> expected = LossesOn("cpu", GetParam());
  ASSERT_EQ(expected.size(), 3 * 3u);
  const std::vector<double> losses = LossesOn("cuda", GetParam());
  if (GetParam().draws && kDrawsOtherNumbers) {
    ExpectRounded(losses, expected);
  } else {
    EXPECT_THAT(losses, Pointwise(DoubleNear(1e-3), expected));
  }
  ExpectRounded(LossesOn("cuda", GetParam(), "bf16"), losses);
}

INSTANTIATE_TEST_SUITE_P(Demos, DemoOnCudaTest, testing::ValuesIn(DemoCases()),
                         [](const auto& demo) {
                           return absl::StrCat(demo.param.task, demo.index);
                         });

// --- Runs of a toy -----------------------------------------------------------

class ToyOnCudaTest : public ToyRunTest {
 protected:
  ToyOnCudaTest() {
    json_["train"]["device"] = "cuda";
    json_["train"]["steps"] = kUpdates;
  }

  void SetUp() override {
    if (!torch::cuda::is_available()) {
      GTEST_SKIP() << "LibTorch finds no CUDA device";
    }
  }

  void LeaveOutDropout() {
    json_["model"]["hidden_dropout_prob"] = 0.0;
    json_["model"]["attention_probs_dropout_prob"] = 0.0;
  }

  // Losses of a whole run.
  std::vector<double> Losses(const std::string& name) {
    FakeReporter reporter;
    const auto result = Run(name, &reporter);
    EXPECT_TRUE(result.ok()) << result.status();
    return WrittenLosses(name);
  }
};

TEST_F(ToyOnCudaTest, LosesWhatItLosesOnTheCpu) {
  LeaveOutDropout();
  const std::vector<double> cuda = Losses("cuda");
  json_["train"]["precision"] = "bf16";
  const std::vector<double> rounded = Losses("bf16");
  json_["train"]["precision"] = "fp32";
  json_["train"]["device"] = "cpu";
  const std::vector<double> cpu = Losses("cpu");
  EXPECT_EQ(cpu.size(), kUpdates);
  EXPECT_THAT(cuda, Pointwise(DoubleNear(1e-3), cpu));
  EXPECT_THAT(rounded, Pointwise(DoubleNear(0.05), cpu));
  EXPECT_NE(rounded, cuda);
}

TEST_F(ToyOnCudaTest, SaysWhereItIs) {
  json_["train"]["steps"] = 1;
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  EXPECT_THAT(reporter.messages,
              Contains(StartsWith("device: cuda:0 (train.device is \"cuda\"); "
                                  "attention by ")));
  const auto memory = MemoryOf(kFirstCudaDevice);
  ASSERT_TRUE(memory.has_value());
  EXPECT_GT(memory->free, 0);
  EXPECT_LE(memory->free, memory->total);
}

// Dropout is on: its draws follow from seed, step and micro-batch, and a chain
// that is computed again draws the same.
TEST_F(ToyOnCudaTest, DrawsTheSameAgain) {
  const std::vector<double> losses = Losses("run");
  EXPECT_EQ(losses.size(), kUpdates);
  EXPECT_THAT(Losses("again"), Pointwise(DoubleNear(1e-4), losses));
  json_["model"]["grad_checkpointing_period"] = 1;
  EXPECT_THAT(Losses("checkpointed"), Pointwise(DoubleNear(1e-4), losses));
}

// Stops a run after update 3 and goes on with it, with dropout on the same
// device, without on another: generators of devices differ.
TEST_F(ToyOnCudaTest, GoesOnWhereItStoppedOnEitherDevice) {
  const std::vector<double> with_dropout = Losses("straight");
  LeaveOutDropout();
  const std::vector<double> without = Losses("straight-without");
  struct Way {
    std::string before, after, message;
  };
  const std::vector<Way> ways = {
      {"cuda", "cuda", ""},
      {"cuda", "cpu", "the device was cuda:0 and is now cpu"},
      {"cpu", "cuda", "the device was cpu and is now cuda:0"}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.before + " to " + way.after);
    const bool dropout = way.message.empty();
    json_["model"]["hidden_dropout_prob"] = dropout ? 0.1 : 0.0;
    json_["model"]["attention_probs_dropout_prob"] = dropout ? 0.1 : 0.0;
    const std::string name = way.before + "-" + way.after;
    json_["train"]["device"] = way.before;
    FakeReporter first;
    first.stop_after = 3;
    ASSERT_TRUE(Run(name, &first).ok());
    json_["train"]["device"] = way.after;
    FakeReporter second;
    const auto result = Run(name, &second, /*resume=*/true);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->finished);
    if (dropout) {
      EXPECT_THAT(second.messages, Not(Contains(HasSubstr("the device was"))));
    } else {
      EXPECT_THAT(second.messages, Contains(HasSubstr(way.message)));
    }
    EXPECT_THAT(WrittenLosses(name),
                Pointwise(DoubleNear(1e-3), dropout ? with_dropout : without));
  }
}

// Takes the memory of the device, down to the smallest block that LibTorch
// gives out, as long as it lives.
class NoMemoryLeft {
 public:
  NoMemoryLeft() {
    const auto memory = MemoryOf(kFirstCudaDevice);
    int64_t bytes = memory.has_value() ? memory->free : 0;
    while (bytes >= 512) {
      try {
        held_.push_back(torch::empty(
            {bytes}, torch::dtype(torch::kUInt8).device(kFirstCudaDevice)));
      } catch (const c10::Error&) {
        bytes /= 2;
      }
    }
  }
  // Memory that LibTorch keeps, others cannot have: kernels that are loaded
  // later, NCCL.
  ~NoMemoryLeft() {
    held_.clear();
#if ETC_HAS_DEVICE_ALLOCATOR
    c10::getDeviceAllocator(torch::kCUDA)->emptyCache();
#endif
  }
  NoMemoryLeft(const NoMemoryLeft&) = delete;
  NoMemoryLeft& operator=(const NoMemoryLeft&) = delete;

 private:
  std::vector<torch::Tensor> held_;
};

TEST_F(ToyOnCudaTest, SaysInOneLineWhatToDoWhenTheMemoryIsTooLittle) {
#ifdef ETC_STAND_IN_CUDA
  const StandInMemoryLimit limit(StandInMemoryInUse() + (int64_t{256} << 20));
#endif
  json_["train"]["checkpoint_every"] = 2;
  json_["train"]["evaluate_every"] = 0;
  class Holder : public FakeReporter {
   public:
    void Update(const Progress& progress) override {
      FakeReporter::Update(progress);
      if (progress.step == 3) {
        held = std::make_unique<NoMemoryLeft>();
      }
    }
    std::unique_ptr<NoMemoryLeft> held;
  };
  const std::string last = Output("run/seed-1/checkpoints/step-00000003");
  {
    Holder reporter;
    const absl::Status status = Run("run", &reporter).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("out of memory while making update 4, which "
                                "asked for "),
                      ContainsRegex("asked for [0-9.]+ [KMG]i?B; 3 "
                                    "updates are saved in "),
                      HasSubstr("; 3 updates are saved in " + last),
                      HasSubstr("; realetc estimate comes to "),
                      HasSubstr("the device is cuda:0"),
                      HasSubstr("lower train.micro_batch_size (now 3), "
                                "data.max_long_length (")));
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
  // It is whole, and goes on once there is memory.
  EXPECT_EQ(ReadTrainingState(last + "/training_state.safetensors")->state.step,
            3);
  FakeReporter reporter;
  const auto result = Run("run", &reporter, /*resume=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reporter.updates.size(), kUpdates - 3);
}

// --- NCCL --------------------------------------------------------------------

// A group of one rank: there is one device. Its sums are what they were.
TEST_F(ToyOnCudaTest, SumsByNcclWhatItSumsWithout) {
  const std::vector<double> alone = Losses("alone");
  auto group = ProcessGroup::Join(PlaceOf(0, 1, FreePort()), absl::Seconds(60));
  ASSERT_TRUE(group.ok()) << group.status();
  const absl::Status joined = (*group)->UseNccl();
  if (absl::IsFailedPrecondition(joined)) {
    GTEST_SKIP() << joined.message();
  }
  ASSERT_TRUE(joined.ok()) << joined;
  const torch::Tensor tensor =
      torch::arange(1000, kFirstCudaDevice).to(torch::kFloat32);
  ASSERT_TRUE((*group)->Sum({tensor}).ok());
  EXPECT_TRUE(
      torch::equal(tensor.cpu(), torch::arange(1000).to(torch::kFloat32)));

  json_["train"]["backend"] = "nccl";
  json_["output"] = Output("nccl");
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  FakeReporter reporter;
  const int64_t before = (*group)->bytes_summed();
  const auto result = TrainRuns(*config, task,
                                {.context = {.reporter = &reporter,
                                             .stop = &reporter.stop,
                                             .group = group->get()}});
  (*group)->Leave(result.status());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT((*group)->bytes_summed(), before);
  EXPECT_THAT(WrittenLosses("nccl"), Pointwise(DoubleNear(1e-4), alone));
}

// --- Checkpoints -------------------------------------------------------------

TEST_F(CudaDeviceTest, CheckpointsAreEvaluatedOnEitherDevice) {
  const TemporaryDirectory directory;
  RunDemo("wikihop", "train.json",
          {"train.steps=3", "train.device=cuda", "residual_attention=sum"},
          directory.path());
  const auto run = [&](const std::string& device) {
    FakeReporter reporter;
    return PredictionsOn(device, directory.path(), &reporter);
  };
  const std::string expected = run("cpu");
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(run("auto"), expected);
  EXPECT_EQ(run("cuda:0"), expected);
}

// --- Optimizers --------------------------------------------------------------

// Many parameters at once, in groups that have other constants, against each by
// the definition in float64 on the CPU, five in a row.
TEST_F(CudaDeviceTest, UpdatesManyParametersAtOnce) {
  torch::manual_seed(9);
  std::vector<AdamUpdate> exact, together;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {}, {7}, {3, 5}, {300, 301}, {0}, {64}, {2, 2}}) {
    const auto random = [&](double size) {
      return torch::randn(shape, torch::kFloat64) * size;
    };
    const size_t number = exact.size();
    exact.push_back({.parameter = random(1.0),
                     .gradient = random(0.1),
                     .mean = random(0.01),
                     .mean_square = random(0.01).square(),
                     .gradient_factor = 0.5,
                     .mean_correction = 0.1,
                     .square_correction = 0.001,
                     .step_factor = number == 5 ? 0.0 : 1.0,
                     .weight_decay = number % 2 == 0 ? 0.1 : 0.0,
                     .by_norms = number == 6,
                     .learning_rate = 0.01});
    AdamUpdate update = exact.back();
    for (torch::Tensor* tensor : {&update.parameter, &update.gradient,
                                  &update.mean, &update.mean_square}) {
      *tensor = tensor->to(kFirstCudaDevice, torch::kFloat32);
    }
    together.push_back(update);
  }
  for (int step = 0; step < 5; ++step) {
    double change = 0.0;
    for (const AdamUpdate& update : exact) {
      change += UpdateByDefinition_(update);
    }
    EXPECT_NEAR(UpdateAll_(together), change, 1e-5 * change);
  }
  std::vector<torch::Tensor> changed, expected;
  for (size_t i = 0; i < exact.size(); ++i) {
    changed.push_back(together[i].parameter);
    expected.push_back(exact[i].parameter);
    EXPECT_TRUE(IsClose(changed[i].cpu(), expected[i], 2e-6)) << i;
    EXPECT_TRUE(IsClose(together[i].mean.cpu(), exact[i].mean, 1e-7)) << i;
    EXPECT_TRUE(
        IsClose(together[i].mean_square.cpu(), exact[i].mean_square, 1e-8))
        << i;
  }
  const double norm = TotalSquaredNorm(expected);
  EXPECT_NEAR(TotalSquaredNorm(changed), norm, 1e-6 * norm);
}

}  // namespace
}  // namespace etc
