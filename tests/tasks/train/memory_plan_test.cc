// Plans of what is kept for the backward pass: the first that fits is chosen,
// for each micro-batch; what cannot be is left out of "auto", and refused where
// it is asked for; updates are the same by all plans.

#include "tasks/train/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/memory_limit.h"
#include "etc/model_size.h"
#include "tasks/data/example_source.h"
#include "tasks/train/estimate.h"
#include "tasks/train/open_data.h"
#include "tasks/train/task_model.h"
#include "tasks/train/train_step.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kParameters = 110'000'000;

RunConfig BaseConfig() {
  RunConfig config;
  config.task = "wikihop";
  config.model = *EtcConfigPreset("base");
  config.model.residual_attention = "sum";
  config.residual_attention = "sum";
  config.data.cache_megabytes = 0;
  config.data.max_long_length = 32768;
  config.data.max_global_length = 256;
  config.train.micro_batch_size = 1;
  return config;
}

double Peak(const RunConfig& config, MemoryPlan plan) {
  return EstimateStepMemory(WithMemoryPlan(config, plan), kParameters).total();
}

// Weights, gradients and two moments of four bytes each: no gradients of frozen
// parameters, and of the moments a share.
TEST(MemoryPlanTest, AModelThatDoesNotFitIsRefused) {
  RunConfig config;
  config.model.vocab_size = 1000;
  const ParameterCounts counts = CountParameters(config.model);
  const auto expect_least = [&](int64_t bytes, int64_t processes) {
    EXPECT_TRUE(CheckModelFits(config, processes, bytes).ok());
    const absl::Status status = CheckModelFits(config, processes, bytes - 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr(absl::StrCat(counts.total(), " parameters")),
                      HasSubstr("realetc estimate")));
  };
  expect_least(16 * counts.total(), /*processes=*/2);
  config.train.shard_optimizer = true;
  expect_least(8 * counts.total() + 8 * ((counts.total() + 1) / 2),
               /*processes=*/2);
  config.train.frozen = {"encoder.embedding.*"};
  const int64_t trained =
      counts.total() - counts.token_embedding - counts.other_embedding;
  expect_least(4 * counts.total() + 12 * trained, /*processes=*/1);
}

// Copies of scores, one for each layer, are more than what layers keep.
TEST(MemoryPlanTest, WarnsOfLayersThatTakeMoreThanKept) {
  RunConfig config = BaseConfig();
  const auto warning = [&config] {
    return PlanWarning(config, kParameters, LargestMicroBatch(config));
  };
  config.train.memory_plan = "layers";
  EXPECT_EQ(warning(), "");
  config.train.score_storage = "recompute";
  config.data.max_global_length = 430;
  EXPECT_GT(Peak(config, MemoryPlan::kLayers), Peak(config, MemoryPlan::kKept));
  EXPECT_THAT(warning(),
              HasSubstr("with train.score_storage \"recompute\" each layer "
                        "keeps a copy"));
  config.train.memory_plan = "auto";
  EXPECT_EQ(warning(), "");
}

TEST(MemoryPlanTest, SharesAndFrozenParametersLeaveMoreMemory) {
  RunConfig config = BaseConfig();
  const TrainedCounts all = kParameters;
  config.train.shard_optimizer = true;
  config.train.frozen = {"a"};
  const TrainedCounts counts = CountTrained(
      config.train, {{"a", kParameters / 2}, {"b", kParameters / 2}},
      /*processes=*/4);
  EXPECT_EQ(counts.all, kParameters);
  EXPECT_EQ(counts.trained, kParameters / 2);
  EXPECT_EQ(counts.updated, kParameters / 8);
  const double saved = EstimateStepMemory(config, all).total() -
                       EstimateStepMemory(config, counts).total();
  EXPECT_NEAR(saved, 4.0 * kParameters / 2 + 8.0 * kParameters * 7 / 8, 1);
  config.train.memory_gigabytes =
      1e-9 * EstimateStepMemory(config, counts).total() + 0.001;
  const StepShape largest = LargestMicroBatch(config);
  EXPECT_EQ(MemoryPlanner(config, counts).For(largest), MemoryPlan::kKept);
  EXPECT_NE(MemoryPlanner(config, all).For(largest), MemoryPlan::kKept);
}

TEST(MemoryPlanTest, SlicesTakeLessThanLayersAndFilesTheLeast) {
  RunConfig config = BaseConfig();
  config.train.memory_directory = "/tmp";
  const double kept = Peak(config, MemoryPlan::kKept);
  const double layers = Peak(config, MemoryPlan::kLayers);
  const double slices = Peak(config, MemoryPlan::kSlices);
  const double files = Peak(config, MemoryPlan::kFiles);
  EXPECT_LT(layers, 0.5 * kept);
  EXPECT_LT(slices, layers);
  EXPECT_LT(files, slices);
}

TEST(MemoryPlanTest, TheFirstThatFitsIsChosen) {
  RunConfig config = BaseConfig();
  config.train.memory_directory = "/tmp";
  const StepShape largest = LargestMicroBatch(config);
  const StepShape small = {.long_length = 512, .global_length = 64};
  const auto expect_chosen = [&](MemoryPlan fits, MemoryPlan chosen) {
    config.train.memory_gigabytes = 1e-9 * Peak(config, fits) + 0.001;
    const MemoryPlanner planner(config, kParameters);
    EXPECT_EQ(planner.For(largest), chosen) << MemoryPlanName(fits);
    EXPECT_EQ(planner.For(small), MemoryPlan::kKept);
  };
  expect_chosen(MemoryPlan::kKept, MemoryPlan::kKept);
  expect_chosen(MemoryPlan::kLayers, MemoryPlan::kLayers);
  expect_chosen(MemoryPlan::kFiles, MemoryPlan::kFiles);
  // Files are faster than slices where both fit.
  expect_chosen(MemoryPlan::kSlices, MemoryPlan::kFiles);
  config.train.memory_directory.clear();
  expect_chosen(MemoryPlan::kSlices, MemoryPlan::kSlices);
  config.train.memory_directory = "/tmp";
  config.train.memory_gigabytes = 0.1;  // too little for any
  EXPECT_EQ(MemoryPlanner(config, kParameters).For(largest),
            MemoryPlan::kFiles);
  config.train.memory_plan = "layers";
  EXPECT_EQ(MemoryPlanner(config, kParameters).For(small), MemoryPlan::kLayers);
}

// The last layer keeps little where a head reads one global token.
TEST(MemoryPlanTest, AHeadThatReadsLittleKeepsMore) {
  RunConfig config = BaseConfig();
  const StepShape all = LargestMicroBatch(config);
  StepShape few = all;
  few.outputs = {.longs = 0, .globals = 1};
  config.train.memory_gigabytes =
      1e-9 * EstimateStepMemory(config, kParameters, few).total() + 0.001;
  EXPECT_EQ(MemoryPlanner(config, kParameters).For(few), MemoryPlan::kKept);
  EXPECT_NE(MemoryPlanner(config, kParameters).For(all), MemoryPlan::kKept);
  EXPECT_EQ(WithPlanFor(config, kParameters, few).train.memory_plan, "kept");
}

TEST(MemoryPlanTest, EvaluationsOfManyTakeMoreThanAnUpdateOfOne) {
  RunConfig config = BaseConfig();
  const auto evaluation = [&](int64_t examples) {
    config.train.evaluation_batch_size = examples;
    return EstimateEvaluationMemory(config, kParameters).total();
  };
  const double of_eight = evaluation(8);
  EXPECT_GT(of_eight, Peak(config, MemoryPlan::kLayers));
  for (const MemoryPlan plan : {MemoryPlan::kLayers, MemoryPlan::kSlices}) {
    EXPECT_EQ(
        EstimateEvaluationMemory(WithMemoryPlan(config, plan), kParameters)
            .total(),
        of_eight);
  }
  for (const int64_t examples : {1, 3, 8}) {
    const double bytes = evaluation(examples);
    config.train.evaluation_batch_size = 8;
    EXPECT_EQ(EvaluationBatchWithin(bytes, config, kParameters), examples);
    EXPECT_EQ(EvaluationBatchWithin(bytes - 1, config, kParameters),
              examples - 1);
  }
  EXPECT_EQ(EvaluationBatchWithin(1e15, config, kParameters), 8);
}

// So many records.
class CountedRecords : public ExampleSource {
 public:
  explicit CountedRecords(int64_t size, bool depends_on_key = false)
      : size_(size), depends_on_key_(depends_on_key) {}
  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest /*request*/) const override {
    return Examples();
  }
  bool depends_on_key() const override { return depends_on_key_; }

 private:
  const int64_t size_;
  const bool depends_on_key_;
};

// Pre-training, whose examples are others in each epoch, fills none of it.
TEST(MemoryPlanTest, CountsTheCacheThatTheDataFill) {
  RunConfig config = BaseConfig();
  config.train.memory_gigabytes = 1e-9 * Peak(config, MemoryPlan::kKept) + 0.1;
  config.data.cache_megabytes = 1024;
  const StepShape largest = LargestMicroBatch(config);
  EXPECT_NE(MemoryPlanner(config, kParameters).For(largest), MemoryPlan::kKept);
  const auto megabytes = [&](uint64_t train_bytes, const std::string& name,
                             bool depends_on_key = false) {
    RunData data;
    data.train = std::make_unique<CountedRecords>(1000, depends_on_key);
    data.dev = std::make_unique<CountedRecords>(500, depends_on_key);
    const RunFiles files = {
        {"data.train",
         {{.path = name, .digest = {.bytes = train_bytes, .digest = ""}}}},
        {"data.dev",
         {{.path = "dev", .digest = {.bytes = 500'000, .digest = ""}}}}};
    const RunConfig sized = WithCacheOf(config, data, files);
    EXPECT_EQ(
        MemoryPlanner(sized, kParameters).For(largest) == MemoryPlan::kKept,
        sized.data.cache_megabytes <= 100);
    return sized.data.cache_megabytes;
  };
  EXPECT_EQ(megabytes(0, "train"), 20);  // 1500 * 2048 + 32 * 500 000
  EXPECT_EQ(megabytes(1'000'000, "train"), 52);
  EXPECT_EQ(megabytes(1'000'000, "train.gz"), 276);
  EXPECT_EQ(megabytes(1'000'000'000, "train"), 1024);
  EXPECT_EQ(megabytes(1'000'000'000, "train", /*depends_on_key=*/true), 0);
  config.data.cache_megabytes = 0;
  EXPECT_EQ(megabytes(1'000'000, "train"), 0);
}

TEST(MemoryPlanTest, AutoLeavesOutWhatCannotBe) {
  const auto k = MemoryPlan::kKept;
  const auto l = MemoryPlan::kLayers;
  const auto f = MemoryPlan::kFiles;
  const auto s = MemoryPlan::kSlices;
  RunConfig config = BaseConfig();
  EXPECT_THAT(AllowedPlans(config), ElementsAre(k, l, s));
  EXPECT_THAT(AllowedPlans(config, StepBackend::kCudaKernels), ElementsAre(k));
  const StepShape small = {.long_length = 512, .global_length = 64};
  config.train.memory_plan = "layers";
  EXPECT_EQ(
      MemoryPlanner(config, kParameters, StepBackend::kCudaKernels).For(small),
      l);
  config.train.memory_plan = "auto";
  EXPECT_EQ(MemoryPlanner(config, kParameters, StepBackend::kCudaKernels)
                .For(LargestMicroBatch(config)),
            k);
  config.train.memory_directory = "/tmp";
  EXPECT_THAT(AllowedPlans(config), ElementsAre(k, l, f, s));
  config.train.watch_scores = 10;
  EXPECT_THAT(AllowedPlans(config), ElementsAre(k, l));
  config.train.watch_scores = 0;
  config.train.score_storage = "store";
  EXPECT_THAT(AllowedPlans(config), ElementsAre(k, l));
  config.residual_attention = "off";
  EXPECT_THAT(AllowedPlans(config), ElementsAre(k, l, f, s));
}

TEST(MemoryPlanTest, RefusesWhatCannotBe) {
  RunConfig config = BaseConfig();
  EXPECT_TRUE(CheckMemoryPlan(config, /*is_cpu=*/true).ok());
  EXPECT_TRUE(CheckMemoryPlan(config, /*is_cpu=*/false).ok());
  const auto message = [&](bool is_cpu = true) {
    return std::string(CheckMemoryPlan(config, is_cpu).message());
  };
  config.train.memory_plan = "files";
  EXPECT_THAT(message(), HasSubstr("\"files\" needs train.memory_directory"));
  config.train.memory_directory = "/nowhere/at/all";
  EXPECT_THAT(message(),
              HasSubstr("train.memory_directory /nowhere/at/all "
                        "should be a directory that can be written"));
  config.train.memory_plan = "slices";
  EXPECT_THAT(message(/*is_cpu=*/false),
              HasSubstr("\"slices\" is for the CPU"));
  config.train.watch_scores = 1;
  EXPECT_THAT(message(), HasSubstr("train.watch_scores is above 0"));
  config.train.watch_scores = 0;
  config.train.score_storage = "recompute";
  EXPECT_THAT(message(), HasSubstr("needs train.score_storage \"reverse\", but "
                                   "it is \"recompute\""));
}

// The directory was there when the run began.
TEST(MemoryPlanTest, AnUpdateWithoutItsDirectoryIsAnError) {
  auto config = RunConfigFromJson(ToyConfigJson("a", "b", ""), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  config->train.memory_plan = "files";
  config->train.memory_directory = "/nowhere/at/all";
  const ToyTask task(config->model);
  TaskModel model = MakeTaskModel(*config, task);
  auto optimizer =
      std::make_unique<Optimizer>(config->optimizer, model.NamedParameters());
  TrainStep step(&model, std::move(optimizer),
                 {.schedule = {.learning_rate = 0.01, .num_steps = 10}});
  TrainingBatch batch;
  batch.micro_batches.push_back(*task.MakeExamples(ToyRecords(1, 3), "toy"));
  const auto made = step.Run(batch, /*step=*/0, /*stop=*/nullptr);
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("cannot create a temporary file in /nowhere/at/all"));
  EXPECT_TRUE(step.is_between_updates());
}

TEST(MemoryPlanTest, UpdatesAreTheSameByAllPlans) {
  const TemporaryDirectory directory;
  auto config = RunConfigFromJson(ToyConfigJson("a", "b", ""), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  config->residual_attention = "sum";
  config->train.memory_directory = directory.path();
  TrainingBatch batch;
  const ToyTask task(config->model);
  batch.micro_batches.push_back(*task.MakeExamples(ToyRecords(1, 3), "toy"));
  NamedTensors kept;
  for (const char* plan : {"kept", "layers", "files", "slices"}) {
    SCOPED_TRACE(plan);
    config->train.memory_plan = plan;
    torch::manual_seed(11);
    TaskModel model = MakeTaskModel(*config, task);
    auto optimizer =
        std::make_unique<Optimizer>(config->optimizer, model.NamedParameters());
    TrainStep step(&model, std::move(optimizer),
                   {.schedule = {.learning_rate = 0.01, .num_steps = 10}});
    for (int64_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(step.Run(batch, i, /*stop=*/nullptr).ok());
    }
    if (kept.empty()) {
      kept = model.NamedParameters();
      continue;
    }
    for (const auto& [name, parameter] : model.NamedParameters()) {
      EXPECT_TRUE(IsClose(parameter, kept.at(name), 1e-4)) << name;
    }
  }
}

}  // namespace
}  // namespace etc
