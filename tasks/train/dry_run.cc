#include "tasks/train/dry_run.h"

#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/directory.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/config/run_files.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/distributed/process_group.h"
#include "tasks/output/results.h"
#include "tasks/train/checkpoint_space.h"
#include "tasks/train/device.h"
#include "tasks/train/estimate.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/model_files.h"
#include "tasks/train/model_task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_claims.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/train_runs.h"
#include "tasks/train/train_step.h"
#include "tasks/train/trained_counts.h"

namespace etc {
namespace {

// Checks the directories of all seeds as ClaimRuns does, and changes none.
absl::Status CheckDirectories(const RunConfig& config,
                              const TrainOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSummary(config.output));
  for (const int64_t seed : config.train.seeds) {
    const std::string directory = SeedDirectory(config.output, seed);
    ETC_RETURN_IF_ERROR(CheckRunDirectory(directory, options.earlier));
    ETC_RETURN_IF_ERROR(CheckWritableDirectory(directory));
  }
  return absl::OkStatus();
}

// The first micro-batch of this rank; the others are left out.
TrainingBatch FirstMicroBatch(TrainingBatch batch) {
  bool has_first = false;
  for (Examples& examples : batch.micro_batches) {
    if (has_first) {
      examples.clear();
    }
    has_first = has_first || !examples.empty();
  }
  return batch;
}

// The model of a dry run, and what is tried with it. Everything referred to
// must outlive it.
class Trial {
 public:
  Trial(const RunOptions& run, DryRun* result) : run_(run), result_(result) {}

  // Makes the model, and computes a micro-batch of the first update.
  absl::Status Run();
  TrainableModel* model() { return made_.files.model.get(); }

 private:
  // Makes the model with its first weights, and its optimizer.
  absl::Status MakeModel();
  absl::Status TryMicroBatch();

  const RunOptions& run_;
  DryRun* const result_;
  ModelToTrain made_;
};

absl::Status Trial::Run() {
  ETC_RETURN_IF_ERROR(
      NamingOutOfMemory([] { return "making the model and its optimizer"; },
                        [&] { return MakeModel(); }));
  return NamingOutOfMemory([] { return "trying a micro-batch"; },
                           [&] { return TryMicroBatch(); });
}

absl::Status Trial::MakeModel() {
  ETC_ASSIGN_OR_RETURN(made_, MakeModelToTrain(run_));
  // Each rank reads them: a dry run broadcasts none.
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> messages,
                       made_.files.load_initial_weights());
  for (const std::string& message : messages) {
    run_.context.MessageOnce(message);
  }
  return absl::OkStatus();
}

absl::Status Trial::TryMicroBatch() {
  if (run_.plan.num_steps == 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const TrainingLoaderOptions options,
                       RankLoaderOptions(run_));
  const std::unique_ptr<BatchLoader> loader = MakeLoader(run_, options);
  absl::StatusOr<TrainingBatch> next = loader->Next();
  ETC_RETURN_IF_ERROR(run_.context.Agree(next.status()));
  if (made_.files.initialize_by_data != nullptr) {
    ETC_ASSIGN_OR_RETURN(const std::string message,
                         InitializeByData(run_.context.group,
                                          {.model = made_.files,
                                           .batch = *next,
                                           .device = made_.train_step->device(),
                                           .seed = run_.plan.seed}));
    if (!message.empty()) {
      run_.context.Message(message);
    }
  }
  const TrainingBatch batch = FirstMicroBatch(*std::move(next));
  // The first time takes memory from the system, which later ones have.
  for (int time = 0; time < 2; ++time) {
    const double begin = SteadySeconds();
    ETC_ASSIGN_OR_RETURN(const std::optional<TrainStepResult> tried,
                         made_.train_step->Try(batch, run_.context.stop));
    if (!tried.has_value()) {
      return absl::CancelledError("the dry run was stopped");
    }
    result_->seconds = SteadySeconds() - begin;
    result_->loss = tried->loss;
    result_->examples = tried->examples;
    result_->tokens = tried->tokens;
  }
  return absl::OkStatus();
}

// Checks that evaluations have the scores that the run needs, and evaluates the
// model on one batch.
absl::Status TryEvaluation(const RunConfig& config, const Task& task,
                           const RunData& data, const RunContext& context,
                           TrainableModel* model, DryRun* result) {
  EvaluateOptions options = EvaluateOptionsFromConfig(config);
  options.context = context;
  if (NeedsMainMetric(config.train)) {
    ETC_RETURN_IF_ERROR(
        ProbeMetric(model, task, *data.dev, options,
                    MainMetricOf(config.train, task.main_metric()).name));
  }
  const FirstRecords records(data.dev.get(), options.loader.batch_size);
  options.context.reporter = nullptr;
  const double begin = SteadySeconds();
  ETC_ASSIGN_OR_RETURN(const Evaluation evaluation,
                       Evaluate(model, task, records, options));
  result->evaluation_seconds = SteadySeconds() - begin;
  result->evaluated_examples = evaluation.num_examples;
  return absl::OkStatus();
}

// The time of all seeds, by the batches that were tried.
double EstimateSeconds(const RunPlan& plan, int64_t processes,
                       const DryRun& tried) {
  const int64_t here =
      (plan.loader.micro_batches() + processes - 1) / processes;
  const double per_evaluation =
      tried.evaluated_examples == 0
          ? 0
          : tried.evaluation_seconds *
                static_cast<double>(tried.num_dev_records) /
                static_cast<double>(tried.evaluated_examples * processes);
  return static_cast<double>(tried.num_seeds) *
         (static_cast<double>(tried.num_steps * here) * tried.seconds +
          static_cast<double>(tried.num_evaluations) * per_evaluation);
}

// Sets the sizes of a model, in a run of so many processes.
void SetSizes(const RunConfig& config, const Task& task,
              const TrainableModel& model, int64_t processes, DryRun* result) {
  const TrainedCounts parameters =
      CountTrained(config.train, SizesOf(model.NamedParameters()), processes);
  const ModelTask* const model_task = AsModelTask(task);
  const StepMemory memory =
      model_task == nullptr
          ? EstimateStepMemory(WithPlanOfLargest(config, parameters),
                               parameters)
          : EstimateEncoderDecoderMemory(config, parameters,
                                         model_task->ActivationBytes());
  result->num_parameters = parameters.trained;
  result->step_bytes = memory.without_cache();
  if (model_task == nullptr && result->num_dev_records > 0) {
    result->evaluation_bytes =
        EstimateEvaluationMemory(config, parameters).without_cache();
  }
  result->cache_bytes = memory.cache;
  result->checkpoint_bytes =
      EstimateCheckpoints(config, parameters,
                          MostCheckpoints(config, result->num_examples))
          .all;
}

}  // namespace

absl::StatusOr<DryRun> TryTrain(const RunConfig& config, const Task& task,
                                const TrainOptions& options) {
  if (Resumes(options.earlier)) {
    return absl::InvalidArgumentError("a dry run resumes no run");
  }
  const RunContext& context = options.context;
  ETC_RETURN_IF_ERROR(CheckWithoutData(config, options));
  ETC_RETURN_IF_ERROR(OnRankZero(
      context.group, [&] { return CheckDirectories(config, options); }));
  ETC_ASSIGN_OR_RETURN(const std::unique_ptr<RunData> data,
                       OpenRunData(config, task, context));
  ETC_ASSIGN_OR_RETURN(const CheckedRuns checked,
                       CheckRuns(config, task, data.get(), options));
  const torch::Device device = checked.device.device;
  const CurrentDevice current(device);
  ETC_RETURN_IF_ERROR(
      SetThreads(config.train.threads, "train.threads").status());
  ETC_ASSIGN_OR_RETURN(const RunFiles files,
                       FindRunFiles(config, OpeningListener(context),
                                    DataGroupOf(context.group)));
  DryRun result = {.output = config.output,
                   .num_seeds = static_cast<int64_t>(config.train.seeds.size()),
                   .num_examples = EpochExamples(task, *data->train, config),
                   .has_batches = AsModelTask(task) != nullptr,
                   .num_records = data->train->size(),
                   .num_dev_records = data->dev->size()};
  ETC_ASSIGN_OR_RETURN(const RunPlan plan,
                       PlanRun(config, {.seed = config.train.seeds.front(),
                                        .num_records = data->train->size(),
                                        .num_examples = result.num_examples,
                                        .files = files}));
  result.num_steps = plan.num_steps;
  const RunConfig planned = WithCacheOf(config, *data, files);
  ETC_RETURN_IF_ERROR(
      AnnounceRuns(planned, task, *data, checked.device, context));
  const RunOptions run = {
      .plan = plan,
      .train = *data->train,
      .make_loader = LoaderMakerOf(task, *data->train),
      .make_model =
          [&] { return MakeModel(planned, task, device, context.processes()); },
      .main_metric = MainMetricOf(config.train, task.main_metric()),
      .directory = SeedDirectory(config.output, plan.seed),
      .context = context};
  ETC_RETURN_IF_ERROR(CheckSameRun(run));
  Trial trial(run, &result);
  ETC_RETURN_IF_ERROR(trial.Run());
  if (data->dev->size() > 0) {
    result.num_evaluations =
        EvaluationsFrom(plan, /*step=*/1) + (plan.evaluate_at_start ? 1 : 0);
    ETC_RETURN_IF_ERROR(
        TryEvaluation(config, task, *data, context, trial.model(), &result));
  }
  SetSizes(planned, task, *trial.model(), context.processes(), &result);
  result.total_seconds = EstimateSeconds(plan, context.processes(), result);
  return result;
}

}  // namespace etc
