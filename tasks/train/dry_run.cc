#include "tasks/train/dry_run.h"

#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/config/run_files.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/data/record_gate.h"
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

// A dry run reads batches of so many examples at most (of translation, so many
// micro-batches), and of so many tokens if all are of full length: enough to
// meet records that are cut, and few seconds.
constexpr int64_t kExamplesToRead = 1000;
constexpr int64_t kTokensToRead = 10'000'000;

// The number of batches to read, at least one.
int64_t BatchesToRead(const RunConfig& config, int64_t batch_size) {
  const int64_t length =
      config.data.max_long_length + config.data.max_global_length;
  return std::max<int64_t>(
      1, std::min(kExamplesToRead, kTokensToRead / length) / batch_size);
}

// Tokens that the model computes, with padding.
int64_t PaddedTokens(const Examples& examples) {
  int64_t longest = 0;
  for (const auto& example : examples) {
    longest = std::max(longest, example->num_tokens());
  }
  return longest * static_cast<int64_t>(examples.size());
}

// Leaves out all micro-batches but one.
TrainingBatch KeepMicroBatch(TrainingBatch batch, size_t kept) {
  for (size_t i = 0; i < batch.micro_batches.size(); ++i) {
    if (i != kept) {
      batch.micro_batches[i].clear();
    }
  }
  return batch;
}

TrainingBatch KeepFirstMicroBatch(TrainingBatch batch) {
  const Examples* const first = batch.first_here();
  const size_t kept =
      first == nullptr
          ? 0
          : static_cast<size_t>(first - batch.micro_batches.data());
  return KeepMicroBatch(std::move(batch), kept);
}

TrainingBatch KeepLargestMicroBatch(TrainingBatch batch) {
  const auto begin = batch.micro_batches.begin();
  const auto largest =
      std::max_element(begin, batch.micro_batches.end(),
                       [](const Examples& left, const Examples& right) {
                         return PaddedTokens(left) < PaddedTokens(right);
                       });
  const auto kept = static_cast<size_t>(largest - begin);
  return KeepMicroBatch(std::move(batch), kept);
}

// Says which of the records that were read are not used, or not whole.
void TellUnused(const RunContext& context, const std::string& data,
                const SkippedRecords& skipped, int64_t num_records) {
  const std::string part =
      skipped.records < num_records
          ? absl::StrCat(", ", skipped.records, " of ",
                         Counted(num_records, "record"), " read")
          : "";
  for (const std::string& text : UnusedTexts(skipped)) {
    context.MessageOnce(absl::StrCat(data, part, ": ", text));
  }
}

// The model of a dry run, and what is tried with it. Everything referred to
// must outlive it.
class Trial {
 public:
  Trial(const RunConfig& config, const RunOptions& run, DryRun* result)
      : config_(config), run_(run), result_(result) {}

  // Makes the model, reads batches and tries two micro-batches.
  absl::Status Run();
  TrainableModel* model() { return made_.files.model.get(); }

 private:
  // The batch of the first update, and that of the largest micro-batch: of each
  // rank its first micro-batch, and its largest.
  struct Batches {
    TrainingBatch first;
    TrainingBatch largest;
  };

  // Makes the model with its first weights, and its optimizer.
  absl::Status MakeModel();
  absl::StatusOr<Batches> ReadBatches();
  absl::Status InitializeModel(const TrainingBatch& first);
  absl::Status TryMicroBatches();
  // Computes the micro-batch of each rank forward and backward, and sets the
  // seconds that it took.
  absl::StatusOr<TrainStepResult> Try(const TrainingBatch& batch,
                                      double* seconds);

  const RunConfig& config_;
  const RunOptions& run_;
  DryRun* const result_;
  ModelToTrain made_;
};

absl::Status Trial::Run() {
  ETC_RETURN_IF_ERROR(
      NamingOutOfMemory([] { return "making the model and its optimizer"; },
                        [&] { return MakeModel(); }));
  return NamingOutOfMemory([] { return "trying a micro-batch"; },
                           [&] { return TryMicroBatches(); });
}

absl::Status Trial::MakeModel() {
  ETC_ASSIGN_OR_RETURN(made_, MakeModelToTrain(run_));
  // Each rank reads them: a dry run broadcasts none.
  ETC_ASSIGN_OR_RETURN(const Notices notices,
                       made_.files.load_initial_weights());
  run_.runs.context.TellOnce(notices);
  return absl::OkStatus();
}

absl::StatusOr<Trial::Batches> Trial::ReadBatches() {
  ETC_ASSIGN_OR_RETURN(const TrainingLoaderOptions options,
                       RankLoaderOptions(run_));
  const std::unique_ptr<BatchLoader> loader = MakeLoader(run_, options);
  Batches read;
  double most = -1;
  const int64_t count = BatchesToRead(config_, options.batch_size);
  bool ends = false;
  for (int64_t i = 0; i < count && !ends; ++i) {
    absl::StatusOr<TrainingBatch> next = loader->Next();
    ETC_RETURN_IF_ERROR(run_.runs.context.Agree(next.status()));
    if (next->epoch > 0) {
      break;
    }
    ends = next->next.epoch > 0;
    if (i == 0) {
      read.first = KeepFirstMicroBatch(*next);
    }
    TrainingBatch largest = KeepLargestMicroBatch(*std::move(next));
    const Examples* const here = largest.first_here();
    // All ranks take the same batch: only its micro-batches are dealt to them.
    const torch::Tensor tokens = torch::full(
        {1}, here == nullptr ? 0 : PaddedTokens(*here), torch::kFloat64);
    if (run_.runs.context.group != nullptr) {
      ETC_RETURN_IF_ERROR(run_.runs.context.group->Sum({tokens}));
    }
    if (tokens.item<double>() > most) {
      most = tokens.item<double>();
      read.largest = std::move(largest);
    }
  }
  TellUnused(run_.runs.context, "training", loader->skipped(),
             run_.train.size());
  return read;
}

absl::Status Trial::InitializeModel(const TrainingBatch& first) {
  if (made_.files.initialize_by_data == nullptr) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::string message,
                       InitializeByData(run_.runs.context.group,
                                        {.model = made_.files,
                                         .batch = first,
                                         .device = made_.train_step->device(),
                                         .seed = run_.plan.seed}));
  if (!message.empty()) {
    run_.runs.context.Message(message);
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainStepResult> Trial::Try(const TrainingBatch& batch,
                                           double* seconds) {
  const double begin = SteadySeconds();
  ETC_ASSIGN_OR_RETURN(const std::optional<TrainStepResult> tried,
                       made_.train_step->Try(batch, run_.runs.context.stop));
  if (!tried.has_value()) {
    return absl::CancelledError("the dry run was stopped");
  }
  *seconds = SteadySeconds() - begin;
  return *tried;
}

absl::Status Trial::TryMicroBatches() {
  if (run_.plan.num_steps == 0) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const Batches read, ReadBatches());
  ETC_RETURN_IF_ERROR(InitializeModel(read.first));
  double cold = 0;  // it takes memory from the system, which later ones have
  ETC_RETURN_IF_ERROR(Try(read.first, &cold).status());
  ETC_ASSIGN_OR_RETURN(const TrainStepResult largest,
                       Try(read.largest, &result_->largest_seconds));
  result_->largest_examples = largest.examples;
  result_->largest_tokens = largest.tokens;
  ETC_ASSIGN_OR_RETURN(const TrainStepResult first,
                       Try(read.first, &result_->seconds));
  result_->loss = first.loss;
  result_->examples = first.examples;
  result_->tokens = first.tokens;
  const Examples* const here = read.first.first_here();
  return run_.runs.context.Agree(
      here == nullptr
          ? absl::OkStatus()
          : NamingOutOfMemory([] { return "trying the loss of a checkpoint"; },
                              [&] {
                                return made_.train_step->CheckLoss(*here,
                                                                   /*step=*/0);
                              }));
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
  TellUnused(context, "evaluation", evaluation.skipped, data.dev->size());
  return absl::OkStatus();
}

// The time of all seeds, if a micro-batch takes so many seconds and evaluations
// are like the batch that was tried.
double EstimateSeconds(const RunPlan& plan, int64_t processes,
                       double micro_batch_seconds, const DryRun& tried) {
  const int64_t here =
      (plan.loader.micro_batches() + processes - 1) / processes;
  const double per_evaluation =
      tried.evaluated_examples == 0
          ? 0
          : tried.evaluation_seconds *
                static_cast<double>(tried.num_dev_records) /
                static_cast<double>(tried.evaluated_examples * processes);
  return static_cast<double>(tried.num_seeds) *
         (static_cast<double>(tried.num_steps * here) * micro_batch_seconds +
          static_cast<double>(tried.num_evaluations) * per_evaluation);
}

// Sets the sizes of a model, in a run of so many processes.
void SetSizes(const RunConfig& config, const Task& task,
              const TrainableModel& model, int64_t processes, DryRun* result) {
  const TrainedCounts parameters =
      CountTrained(config.train, SizesOf(model.NamedParameters()), processes);
  const StepShape largest = LargestMicroBatch(config, task);
  const ModelTask* const model_task = AsModelTask(task);
  const StepMemory memory =
      model_task == nullptr
          ? EstimateStepMemory(WithPlanFor(config, parameters, largest),
                               parameters, largest)
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
      .runs = options};
  ETC_RETURN_IF_ERROR(CheckSameRun(run));
  Trial trial(config, run, &result);
  ETC_RETURN_IF_ERROR(trial.Run());
  if (data->dev->size() > 0) {
    result.num_evaluations =
        EvaluationsFrom(plan, /*step=*/1) + (plan.evaluate_at_start ? 1 : 0);
    ETC_RETURN_IF_ERROR(
        TryEvaluation(config, task, *data, context, trial.model(), &result));
  }
  SetSizes(planned, task, *trial.model(), context.processes(), &result);
  result.total_seconds =
      EstimateSeconds(plan, context.processes(), result.seconds, result);
  result.largest_total_seconds = EstimateSeconds(
      plan, context.processes(), result.largest_seconds, result);
  return result;
}

}  // namespace etc
