#include "tasks/train/finetune.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/cpu_limit.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/parallel_tasks.h"
#include "base/status_macros.h"
#include "base/thread_check.h"
#include "etc/model_size.h"
#include "tasks/config/run_files.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/example_count.h"
#include "tasks/data/loader.h"
#include "tasks/output/results.h"
#include "tasks/train/device.h"
#include "tasks/train/estimate.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/model_files.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/trainer.h"

namespace etc {
namespace {

// The plan of a run on `data`, by which `inputs` are completed.
absl::StatusOr<RunPlan> PlanOf(const FinetuneConfig& config,
                               const RunData& data, RunInputs inputs) {
  inputs.num_records = data.train->size();
  inputs.num_examples = data.train->expected_examples();
  return PlanRun(config, inputs);
}

// Checks that the model fits the memory, and that the training data fill a
// batch, before the run writes anything to disk.
absl::Status CheckFits(const FinetuneConfig& config, const RunData& data,
                       const torch::Device& device,
                       const FinetuneOptions& options) {
  // Elsewhere it is not this memory that they take.
  if (device.is_cpu()) {
    ETC_RETURN_IF_ERROR(CheckModelFits(config));
  }
  const TrainingLoaderOptions loader = LoaderOptionsOf(config, /*seed=*/1);
  return CheckFillsBatch(
      *data.train, loader.batch_size,
      {.on_bad_record = loader.on_bad_record,
       .stream = {.workers = loader.workers,
                  .max_prefetch_bytes = loader.max_prefetch_bytes,
                  .stop = options.context.stop},
       .listener = [&](int64_t records) {
         if (options.context.reporter != nullptr) {
           options.context.reporter->Counting(
               {.records = records, .num_records = data.train->size()});
         }
       }});
}

std::string DescribeRuns(const FinetuneConfig& config, const RunData& data,
                         int64_t threads) {
  // "14 training records, about 8 000 examples, 6 for evaluation".
  const int64_t examples = data.train->expected_examples();
  const std::string expected =
      examples == data.train->size()
          ? ""
          : absl::StrCat("about ", Counted(examples, "example"), ", ");
  return absl::StrCat(
      config.task, ": ", Counted(data.train->size(), "training record"), ", ",
      expected, data.dev->size(), " for evaluation; ",
      Counted(NumStepsOf(config, examples), "update"), " of ",
      Counted(config.train.batch_size, "example"), ", ",
      config.train.micro_batch_size, " at a time; residual attention ",
      config.residual_attention, "; ", Counted(threads, "thread"));
}

absl::Status DescribeData(const Task& task, const RunData& data,
                          const RunContext& context) {
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> described,
      task.DescribeData(*data.train_records, *data.dev_records));
  for (const std::string& line : described) {
    context.Message(line);
  }
  return absl::OkStatus();
}

// Returns `status` of a run, with advice if its memory was too little.
absl::Status WithAdvice(const absl::Status& status,
                        const FinetuneConfig& config,
                        const torch::Device& device) {
  // A full disk has the same code.
  if (!absl::IsResourceExhausted(status) ||
      !absl::StrContains(status.message(), kOutOfMemory)) {
    return status;
  }
  const StepMemory memory =
      EstimateStepMemory(config, CountParameters(config.model).total());
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s; realetc estimate comes to %.1f GB for updates on the CPU%s; lower "
      "train.micro_batch_size (now %d), data.max_long_length (%d), "
      "data.max_global_length (%d) or, for evaluations, "
      "train.evaluation_batch_size (%d)",
      status.message(), 1e-9 * memory.without_cache(),
      device.is_cpu()
          ? absl::StrFormat(" and %.1f GB for examples (data.cache_megabytes)",
                            1e-9 * memory.cache)
          : ", and the device is " + device.str(),
      config.train.micro_batch_size, config.data.max_long_length,
      config.data.max_global_length, config.train.evaluation_batch_size));
}

// Finishes `result`, of which all runs are.
absl::Status Summarize(const FinetuneConfig& config,
                       const std::string& main_metric,
                       const FinetuneOptions& options, FinetuneResult* result) {
  result->finished = true;
  std::vector<Metrics> best;
  for (const RunResult& run : result->runs) {
    best.push_back(run.best);
  }
  result->scores = SummarizeScores(best);
  return OnRankZero(options.context.group, [&]() -> absl::Status {
    ETC_ASSIGN_OR_RETURN(
        const std::vector<std::string> messages,
        WriteSummary(OutputOf(config), main_metric, result->runs));
    for (const std::string& message : messages) {
      options.context.Message(message);
    }
    return absl::OkStatus();
  });
}

// Joins the task, its data and its model to the trainer, for one seed at a
// time. Everything referred to must outlive it.
struct SeedRunner {
  const FinetuneConfig& config;
  const Task& task;
  const RunData& data;
  const RunFiles& files;
  const RunClaims& claims;
  torch::Device device;
  const FinetuneOptions& options;

  // `later_seeds` are to be run after it.
  absl::StatusOr<RunResult> Run(int64_t seed, int64_t later_seeds) const {
    ETC_ASSIGN_OR_RETURN(const RunPlan plan,
                         PlanOf(config, data, {.seed = seed, .files = files}));
    EvaluateOptions evaluation = EvaluateOptionsFromConfig(config);
    evaluation.context = options.context;
    const auto evaluate = [&](TrainableModel* model) {
      return Evaluate(model, task, *data.dev, evaluation);
    };
    RunOptions run = {
        .plan = plan,
        .train = *data.train,
        .make_model =
            [this] { return MakeModelWithFiles(config, task, device); },
        .main_metric = task.main_metric(),
        .directory = SeedDirectory(config.output, seed),
        .resume = options.resume,
        .lock = claims.Find(SeedDirectory(config.output, seed)),
        .allow_changes = options.allow_changes,
        .context = options.context,
        .later_steps = options.later_steps + later_seeds * plan.num_steps};
    if (data.dev->size() > 0) {
      run.evaluate = evaluate;
    }
    absl::StatusOr<RunResult> result = TrainOneSeed(run);
    if (!result.ok()) {
      return WithAdvice(result.status(), config, device);
    }
    return result;
  }

  // Into the run's directory.
  absl::Status WriteResult(const RunResult& run) const {
    ETC_ASSIGN_OR_RETURN(
        const RunPlan plan,
        PlanOf(config, data, {.seed = run.seed, .files = files}));
    return WriteRunResult(run, plan.settings);
  }
};

}  // namespace

absl::StatusOr<int64_t> SetThreads(int64_t threads) {
  const int64_t wanted = threads > 0 ? threads : DefaultThreads();
  // OpenMP starts wanted - 1 threads, and so does a pool of LibTorch's own,
  // which at::set_num_threads fills.
  if (const absl::Status start = CheckThreadsStart(2 * (wanted - 1));
      !start.ok()) {
    return absl::Status(
        start.code(),
        absl::StrCat("train.threads is ", wanted,
                     threads > 0
                         ? ""
                         : ", by OMP_NUM_THREADS or the cores of this process",
                     ", for which ", start.message()));
  }
  at::set_num_threads(static_cast<int>(wanted));
  const int64_t count = at::get_num_threads();
  // OpenMP's start with the first loop: now, while they can.
  ForEachTask(count, /*floats=*/1, [](int64_t, float*) {});
  return count;
}

absl::Status CheckWithoutData(const FinetuneConfig& config,
                              const FinetuneOptions& options) {
  if (config.output.empty()) {
    return absl::InvalidArgumentError(
        "output should be a directory, but is empty");
  }
  return CheckFieldNames(config, options.allow_changes);
}

absl::StatusOr<RunClaims> ClaimRuns(const FinetuneConfig& config,
                                    const FinetuneOptions& options) {
  RunClaims claims;
  ETC_RETURN_IF_ERROR(
      OnRankZero(options.context.group, [&]() -> absl::Status {
        ETC_ASSIGN_OR_RETURN(
            claims,
            RunClaims::Take(config, {.resume = options.resume,
                                     .allow_changes = options.allow_changes,
                                     .stop = options.context.stop}));
        return absl::OkStatus();
      }));
  return claims;
}

absl::StatusOr<int64_t> CheckRuns(const FinetuneConfig& config,
                                  const RunData& data,
                                  const FinetuneOptions& options) {
  ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       JoinDevice(config, options.context.group));
  ETC_RETURN_IF_ERROR(CheckFits(config, data, device.device, options));
  const RunFiles files;  // decide nothing about the number of updates
  ETC_ASSIGN_OR_RETURN(const RunPlan plan,
                       PlanOf(config, data, {.files = files}));
  return plan.num_steps * static_cast<int64_t>(config.train.seeds.size());
}

absl::StatusOr<FinetuneResult> Finetune(const FinetuneConfig& config,
                                        const Task& task,
                                        const FinetuneOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSameStart(config, options));
  ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
  ETC_ASSIGN_OR_RETURN(const RunDevice device,
                       JoinDevice(config, options.context.group));
  RunClaims own;
  if (options.claims == nullptr) {
    ETC_ASSIGN_OR_RETURN(own, ClaimRuns(config, options));
  }
  const CurrentDevice current(device.device);
  ETC_ASSIGN_OR_RETURN(const int64_t threads, SetThreads(config.train.threads));
  std::unique_ptr<const RunData> opened;
  if (options.data == nullptr) {
    ETC_ASSIGN_OR_RETURN(opened,
                         OpenRunData(config.data, task, options.context));
  }
  const RunData& data = options.data == nullptr ? *opened : *options.data;
  ETC_ASSIGN_OR_RETURN(const RunFiles files,
                       FindRunFiles(config, OpeningListener(options.context),
                                    DataGroupOf(options.context.group)));
  options.context.Message(DescribeRuns(config, data, threads));
  ETC_RETURN_IF_ERROR(DescribeData(task, data, options.context));
  options.context.Message(device.message);
  ETC_RETURN_IF_ERROR(CheckFits(config, data, device.device, options));
  if (options.context.is_first()) {
    // Left by a process that was killed while it wrote the summary.
    ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(config.output));
  }
  const SeedRunner runner = {
      .config = config,
      .task = task,
      .data = data,
      .files = files,
      .claims = options.claims == nullptr ? own : *options.claims,
      .device = device.device,
      .options = options};
  FinetuneResult result;
  auto later_seeds = static_cast<int64_t>(config.train.seeds.size());
  for (const int64_t seed : config.train.seeds) {
    options.context.Message(absl::StrCat("seed ", seed));
    ETC_ASSIGN_OR_RETURN(RunResult run, runner.Run(seed, --later_seeds));
    result.runs.push_back(std::move(run));
    if (!result.runs.back().finished) {
      return result;
    }
    ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, [&] {
      return runner.WriteResult(result.runs.back());
    }));
  }
  ETC_RETURN_IF_ERROR(Summarize(config, task.main_metric(), options, &result));
  return result;
}

}  // namespace etc
