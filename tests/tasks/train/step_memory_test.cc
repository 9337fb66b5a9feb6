// The estimated memory of a training step against what the operating system
// counts for a real one (peak resident set): one step to make gradients and
// optimizer state, one to measure. Each measurement is a process of its own,
// because memory that LibTorch has freed stays with the process. Sizes are such
// that activations are most of it, in the attention kernels, with dropout; a
// wrong term of scores or of streams is off by more than the tolerance.
// Not measured: other devices, other dtypes.
#include "tasks/train/step_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "attention/pattern.h"
#include "etc/checkpoint.h"
#include "etc/model.h"
#include "etc/process_memory.h"
#include "tasks/train/optimizer.h"

namespace etc {
namespace {

// Relative; the project promises a quarter.
constexpr double kTolerance = 0.25;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

FinetuneConfig MidSize() {
  FinetuneConfig config;
  config.model.vocab_size = 1000;
  config.model.hidden_size = 256;
  config.model.num_hidden_layers = 4;
  // Many small heads: scores weigh as much as all else.
  config.model.num_attention_heads = 16;
  config.model.intermediate_size = 1024;
  config.data.max_long_length = 2048;
  config.data.max_global_length = 128;
  config.data.cache_megabytes = 0;
  return config;
}

void SetResidual(const std::string& mode, FinetuneConfig* config) {
  config->residual_attention = mode;
  config->model.residual_attention = mode;
}

NamedTensors Parameters(const EtcModel& model) {
  NamedTensors parameters;
  for (const auto& parameter : model->named_parameters()) {
    parameters.emplace(parameter.key(), parameter.value());
  }
  return parameters;
}

// Bytes of the peak resident set of this process.
double PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) {
      int64_t kibibytes = 0;
      std::istringstream(line.substr(6)) >> kibibytes;
      return 1024.0 * static_cast<double>(kibibytes);
    }
  }
  return 0;
}

// Two training steps.
double PeakOfTraining(const FinetuneConfig& config) {
  torch::manual_seed(1);
  EtcModel model(config.model);
  model->set_score_storage(ScoreStorageFromName(config.train.score_storage));
  const auto optimizer = MakeOptimizer(config.optimizer, Parameters(model));
  const StepShape shape = LargestMicroBatch(config);
  EtcInput input;
  input.token_ids = torch::randint(
      config.model.vocab_size, {shape.batch, shape.long_length}, torch::kInt64);
  input.global_token_ids =
      torch::ones({shape.batch, shape.global_length}, torch::kInt64);
  input.attention = AttentionInputs(std::vector<AttentionPattern>(
      static_cast<size_t>(shape.batch),
      UnrestrictedPattern(shape.long_length, shape.global_length,
                          config.model.local_radius,
                          config.model.relative_pos_max_distance)));
  for (int step = 0; step < 2; ++step) {
    const EtcOutput output = model->forward(input);
    (output.long_output.square().mean() + output.global_output.square().mean())
        .backward();
    (*optimizer)->Step(1e-4);
    for (const torch::Tensor& parameter : model->parameters()) {
      parameter.mutable_grad().zero_();
    }
  }
  return PeakResidentBytes();
}

int64_t NumParameters(const FinetuneConfig& config) {
  int64_t count = 0;
  for (const torch::Tensor& parameter : EtcModel(config.model)->parameters()) {
    count += parameter.numel();
  }
  return count;
}

// `function` in a process of its own.
double InChildProcess(const std::function<double()>& function) {
  int ends[2];
  if (pipe(ends) != 0) {
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    KeepFreedMemory();  // as the program does
    const double result = function();
    _exit(write(ends[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  double result = 0;
  const bool whole = read(ends[0], &result, sizeof(result)) == sizeof(result);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return whole ? result : 0;
}

class StepMemoryTest : public testing::Test {
 protected:
  void ExpectEstimateIsClose(const FinetuneConfig& config) {
    if (kSanitized) {
      GTEST_SKIP() << "sanitizers change how much memory a process takes";
    }
    const double measured =
        InChildProcess([&config] { return PeakOfTraining(config); });
    const double parameters = InChildProcess(
        [&config] { return static_cast<double>(NumParameters(config)); });
    const StepMemory estimate =
        EstimateStepMemory(config, static_cast<int64_t>(parameters));
    RecordProperty("measured_megabytes", static_cast<int>(measured / 1e6));
    RecordProperty("estimated_megabytes",
                   static_cast<int>(estimate.total() / 1e6));
    std::cout << "measured " << measured / 1e6 << " MB, estimated "
              << estimate.total() / 1e6 << " MB\n";
    EXPECT_NEAR(estimate.total(), measured, kTolerance * measured);
  }
};

TEST_F(StepMemoryTest, IsCloseWithResidualAttentionOff) {
  ExpectEstimateIsClose(MidSize());
}

TEST_F(StepMemoryTest, IsCloseWithResidualAttentionSum) {
  FinetuneConfig config = MidSize();
  SetResidual("sum", &config);
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithStoredScores) {
  FinetuneConfig config = MidSize();
  SetResidual("sum", &config);
  config.train.score_storage = "store";
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithManyGlobalTokensAndSmallWindows) {
  FinetuneConfig config = MidSize();
  SetResidual("sum", &config);
  config.model.local_radius = 20;
  config.data.max_long_length = 1024;
  config.data.max_global_length = 512;
  config.train.micro_batch_size = 2;
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithGradientCheckpointing) {
  FinetuneConfig config = MidSize();
  SetResidual("mean", &config);
  config.model.grad_checkpointing_period = 1;
  ExpectEstimateIsClose(config);
}

}  // namespace
}  // namespace etc
