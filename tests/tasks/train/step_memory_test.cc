// The estimated memory of training against what the operating system counts for
// a process, its libraries and real updates: one to make what the optimizer
// keeps, one to measure; and that of evaluations likewise. Each measurement is
// a process of its own, because memory that has been freed stays with the
// process. All in the attention kernels, updates with dropout, clipping and two
// micro-batches.
//
// Two kinds of models: one with the token table and the widths of base, where
// weights, gradients and optimizer are most of it, on short inputs; and a
// narrow one with many heads, where activations and scores are, on long ones.
// So a wrong term of any is off by more than the tolerance. Not measured: other
// devices.
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
#include <utility>
#include <vector>

#include "attention/pattern.h"
#include "base/process_memory.h"
#include "etc/model.h"
#include "tasks/data/loader.h"
#include "tasks/task/benchmark_head.h"
#include "tasks/task/task.h"
#include "tasks/train/estimate.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

// Relative; what the README promises.
constexpr double kTolerance = 0.2;

RunConfig MidSize() {
  RunConfig config;
  config.model.vocab_size = 1000;
  config.model.hidden_size = 256;
  config.model.num_hidden_layers = 4;
  // Many small heads: scores weigh as much as all else.
  config.model.num_attention_heads = 16;
  config.model.intermediate_size = 1024;
  config.data.max_long_length = 2048;
  config.data.max_global_length = 128;
  config.data.cache_megabytes = 0;
  config.train.batch_size = 2;
  return config;
}

// Two of the layers of base.
RunConfig BaseSize(int64_t long_length) {
  RunConfig config;
  config.model = *EtcConfigPreset("base");
  config.model.num_hidden_layers = 2;
  config.data.max_long_length = long_length;
  config.data.max_global_length = 16 + long_length / 16;
  config.data.cache_megabytes = 0;
  config.train.batch_size = 2;
  return config;
}

void SetResidual(const std::string& mode, RunConfig* config) {
  config->residual_attention = mode;
  config->model.residual_attention = mode;
}

// A narrow model with scores of so many layers, of which the long queries' are
// most.
RunConfig ScoresSize(int64_t layers, int64_t long_length) {
  RunConfig config = MidSize();
  config.model.hidden_size = 64;
  config.model.num_hidden_layers = layers;
  config.model.intermediate_size = 256;
  config.model.local_radius = 127;
  config.data.max_long_length = long_length;
  config.data.max_global_length = 16;
  config.train.batch_size = 1;
  SetResidual("sum", &config);
  return config;
}

// Layers of a task that has none.
class MeanHead : public OutputHead {
 public:
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& /*batch*/) override {
    return {encoded.long_output, encoded.global_output};
  }
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& /*batch*/) override {
    return logits[0].square().mean({1, 2}) + logits[1].square().mean({1, 2});
  }
};

// The same of a task that reads the first global token alone.
class FirstTokenHead : public OutputHead {
 public:
  ReadTokens Reads() const override { return ReadTokens::kFirstGlobal; }
  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& /*batch*/) override {
    return {encoded.global_output};  // [B, H]
  }
  torch::Tensor Losses(const std::vector<torch::Tensor>& logits,
                       const Batch& /*batch*/) override {
    return logits[0].square().mean(1);
  }
};

std::shared_ptr<const Example> LongestExample(const RunConfig& config) {
  auto example = std::make_shared<Example>();
  const auto ids = [&](int64_t length) {
    std::vector<int32_t> random;
    for (int64_t i = 0; i < length; ++i) {
      random.push_back(
          static_cast<int32_t>(7919 * i % config.model.vocab_size));
    }
    return random;
  };
  const int64_t longs = config.data.max_long_length;
  const int64_t globals = config.data.max_global_length;
  example->long_token_ids = ids(longs);
  example->global_token_ids = ids(globals);
  example->long_type_ids.resize(static_cast<size_t>(longs), 1);
  example->global_type_ids.resize(static_cast<size_t>(globals), 0);
  example->pattern =
      UnrestrictedPattern(longs, globals, config.model.local_radius,
                          config.model.relative_pos_max_distance);
  return example;
}

// Bytes that this process has in memory and that no file has. KeepFreedMemory
// gives nothing back, so this is also the most that there were so far.
double AllocatedBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("RssAnon:")) {
      int64_t kibibytes = 0;
      std::istringstream(line.substr(8)) >> kibibytes;
      return 1024.0 * static_cast<double>(kibibytes);
    }
  }
  return 0;
}

TaskModel ModelOf(const RunConfig& config, std::shared_ptr<TaskHead> head) {
  torch::manual_seed(1);
  TaskModel model(EtcModel(config.model), std::move(head));
  const StepOptions options = StepOptionsOf(config);
  model.encoder()->set_score_storage(options.storage);
  model.encoder()->set_linear_precision(options.precision);
  model.encoder()->set_layer_slices(options.slices);
  return model;
}

// Measures the memory that two updates add to this process.
double MemoryOfTraining(const RunConfig& config,
                        const std::shared_ptr<TaskHead>& head) {
  const double before = AllocatedBytes();
  TaskModel model = ModelOf(config, head);
  auto optimizer =
      std::make_unique<Optimizer>(config.optimizer, model.NamedParameters());
  TrainStep train_step(&model, std::move(optimizer),
                       {.clip_norm = config.optimizer.clip_norm,
                        .schedule = {.learning_rate = 1e-4, .num_steps = 10}});
  for (int step = 0; step < 2; ++step) {
    TrainingBatch batch;
    for (int64_t made = 0; made < config.train.batch_size;
         made += config.train.micro_batch_size) {
      batch.micro_batches.emplace_back(config.train.micro_batch_size,
                                       LongestExample(config));
    }
    if (!train_step.Run(batch, step, /*stop=*/nullptr).ok()) {
      return 0;
    }
  }
  return AllocatedBytes() - before;
}

// Measures the memory that a model and its evaluations add to this process.
double MemoryOfEvaluation(const RunConfig& config) {
  const double before = AllocatedBytes();
  TaskModel model = ModelOf(config, std::make_shared<MeanHead>());
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(&model);
  const Examples examples(
      static_cast<size_t>(config.train.evaluation_batch_size),
      LongestExample(config));
  for (int time = 0; time < 2; ++time) {
    model.Forward(model.Collate(examples, torch::kCPU));
  }
  return AllocatedBytes() - before;
}

int64_t NumParameters(const RunConfig& config) {
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
  void ExpectEstimateIsClose(
      const RunConfig& config,
      const std::shared_ptr<TaskHead>& head = std::make_shared<MeanHead>()) {
    ExpectIsClose(EstimateStepMemory(config, ParametersOf(config),
                                     LargestMicroBatch(config, *head)),
                  [&] { return MemoryOfTraining(config, head); });
  }
  // The same of a head that reads few outputs.
  void ExpectFewOutputsAreClose(const RunConfig& config, MemoryPlan plan) {
    SCOPED_TRACE(MemoryPlanName(plan));
    ExpectEstimateIsClose(WithMemoryPlan(config, plan),
                          std::make_shared<FirstTokenHead>());
  }
  // Evaluates a model that has no gradients and no optimizer.
  void ExpectEvaluationIsClose(const RunConfig& config) {
    TrainedCounts parameters = ParametersOf(config);
    parameters.trained = 0;
    parameters.updated = 0;
    ExpectIsClose(EstimateEvaluationMemory(config, parameters),
                  [&config] { return MemoryOfEvaluation(config); });
  }

 private:
  static TrainedCounts ParametersOf(const RunConfig& config) {
    return static_cast<int64_t>(InChildProcess(
        [&config] { return static_cast<double>(NumParameters(config)); }));
  }

  void ExpectIsClose(const StepMemory& memory,
                     const std::function<double()>& measure) {
    if (kSanitized) {
      GTEST_SKIP() << "sanitizers change how much memory a process takes";
    }
    // A fork does not show the memory of libraries: it has read few of their
    // pages.
    const double measured =
        static_cast<double>(ResidentBytesAtStart()) + InChildProcess(measure);
    const double estimate = memory.total();
    RecordProperty("measured_megabytes", static_cast<int>(measured / 1e6));
    RecordProperty("estimated_megabytes", static_cast<int>(estimate / 1e6));
    std::cout << "measured " << measured / 1e6 << " MB, estimated "
              << estimate / 1e6 << " MB\n";
    EXPECT_NEAR(estimate, measured, kTolerance * measured);
  }
};

// RunConfig::model is not used then.
TEST(EncoderDecoderMemoryTest, CountsNothingOfTheDefaultEncoder) {
  constexpr int64_t kParameters = 1000;
  RunConfig config;
  config.train.precision = "bf16";
  const StepMemory memory =
      EstimateEncoderDecoderMemory(config, kParameters, /*activations=*/5e6);
  EXPECT_EQ(memory.weights, 4 * kParameters);
  EXPECT_LE(memory.rounded_weights, 2 * kParameters);
  EXPECT_EQ(memory.table_gradients, 0);
  EXPECT_EQ(memory.activations.total(), 5e6);
}

// Weights and what goes with them are most of it.
TEST_F(StepMemoryTest, IsCloseOnShortInputs) {
  for (const int64_t length : {256, 1024}) {
    ExpectEstimateIsClose(BaseSize(length));
  }
}

TEST_F(StepMemoryTest, IsCloseOnShortInputsInBfloat16) {
  RunConfig config = BaseSize(512);
  config.train.precision = "bf16";
  SetResidual("sum", &config);
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithMicroBatchesOfSeveral) {
  RunConfig config = BaseSize(256);
  config.train.batch_size = 8;
  config.train.micro_batch_size = 4;
  SetResidual("sum", &config);
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithOneMicroBatch) {
  RunConfig config = BaseSize(512);
  config.train.batch_size = 1;
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithResidualAttentionOff) {
  ExpectEstimateIsClose(MidSize());
}

TEST_F(StepMemoryTest, IsCloseWithResidualAttentionSum) {
  RunConfig config = MidSize();
  SetResidual("sum", &config);
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseInEvaluations) {
  RunConfig config = MidSize();
  config.data.max_long_length = 4096;
  config.train.evaluation_batch_size = 8;
  for (const char* precision : {"fp32", "bf16"}) {
    config.train.precision = precision;
    SetResidual("off", &config);
    ExpectEvaluationIsClose(config);
    SetResidual("sum", &config);
    ExpectEvaluationIsClose(config);
  }
}

TEST_F(StepMemoryTest, IsCloseInBfloat16) {
  RunConfig config = MidSize();
  config.train.precision = "bf16";
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseOnLongInputs) {
  RunConfig config = MidSize();
  config.data.max_long_length = 16384;
  config.train.batch_size = 1;
  SetResidual("sum", &config);
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithStoredScores) {
  RunConfig config = MidSize();
  SetResidual("sum", &config);
  config.train.score_storage = "store";
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithManyGlobalTokensAndSmallWindows) {
  RunConfig config = MidSize();
  SetResidual("sum", &config);
  config.model.local_radius = 20;
  config.data.max_long_length = 1024;
  config.data.max_global_length = 512;
  config.train.batch_size = 4;
  config.train.micro_batch_size = 2;
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseWithGradientCheckpointing) {
  RunConfig config = MidSize();
  SetResidual("mean", &config);
  config.model.grad_checkpointing_period = 1;
  ExpectEstimateIsClose(config);
}

// Chains of layers keep scores, and have buffers of their own.
TEST_F(StepMemoryTest, IsCloseWithChainsOfGradientCheckpointing) {
  RunConfig config = ScoresSize(/*layers=*/4, /*long_length=*/4096);
  config.model.grad_checkpointing_period = 2;
  for (const char* storage : {"reverse", "recompute", "store"}) {
    SCOPED_TRACE(storage);
    config.train.score_storage = storage;
    ExpectEstimateIsClose(config);
  }
}

// The last layer has no scores of long queries, which with two layers have no
// gradient.
TEST_F(StepMemoryTest, IsCloseWithFewOutputs) {
  ExpectFewOutputsAreClose(ScoresSize(/*layers=*/2, /*long_length=*/8192),
                           MemoryPlan::kKept);
}

TEST_F(StepMemoryTest, IsCloseInSlicesWithFewOutputs) {
  ExpectFewOutputsAreClose(ScoresSize(/*layers=*/2, /*long_length=*/8192),
                           MemoryPlan::kSlices);
}

// The layer below the last gets no gradient of its long scores, nor zeros in
// its place.
TEST_F(StepMemoryTest, IsCloseWithFewOutputsAndGradientCheckpointing) {
  ExpectFewOutputsAreClose(ScoresSize(/*layers=*/4, /*long_length=*/16384),
                           MemoryPlan::kLayers);
}

TEST_F(StepMemoryTest, IsCloseInSlices) {
  RunConfig config = MidSize();
  config.data.max_long_length = 16384;
  config.train.batch_size = 1;
  SetResidual("sum", &config);
  config.train.memory_plan = "slices";
  ExpectEstimateIsClose(config);
  config.train.precision = "bf16";
  ExpectEstimateIsClose(config);
}

TEST_F(StepMemoryTest, IsCloseInSlicesWithFiles) {
  const TemporaryDirectory directory;
  RunConfig config = MidSize();
  config.data.max_long_length = 16384;
  config.train.batch_size = 1;
  SetResidual("sum", &config);
  config.train.memory_plan = "files";
  config.train.memory_directory = directory.path();
  ExpectEstimateIsClose(config);
}

}  // namespace
}  // namespace etc
