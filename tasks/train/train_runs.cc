#include "tasks/train/train_runs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/memory_limit.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "etc/residual_choice.h"
#include "tasks/config/run_files.h"
#include "tasks/config/run_settings.h"
#include "tasks/data/example_count.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/output/checkpoint_record.h"
#include "tasks/output/results.h"
#include "tasks/train/checkpoint_space.h"
#include "tasks/train/device.h"
#include "tasks/train/estimate.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/memory_plan.h"
#include "tasks/train/model_files.h"
#include "tasks/train/model_task.h"
#include "tasks/train/open_data.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/shared_start.h"
#include "tasks/train/trained_counts.h"
#include "tasks/train/trainer.h"

namespace etc {
namespace {

// Checks that the model fits the memory, and that the training data fill a
// batch if there is an update, before the run writes anything to disk.
absl::Status CheckFits(const RunConfig& config, const torch::Device& device,
                       const TrainOptions& options, RunData* data) {
  // Elsewhere it is not this memory that they take.
  if (device.is_cpu()) {
    ETC_RETURN_IF_ERROR(CheckModelFits(config, options.context.processes()));
  }
  ETC_RETURN_IF_ERROR(CheckEvaluations(config, *data));
  const TrainingLoaderOptions loader = LoaderOptionsOf(config, /*seed=*/1);
  if (config.train.steps == 0 || loader.batch_size <= data->filled_batch) {
    return absl::OkStatus();
  }
  const auto report = [&](int64_t records) {
    if (options.context.reporter != nullptr) {
      options.context.reporter->Counting(
          {.records = records, .num_records = data->train->size()});
    }
  };
  ETC_RETURN_IF_ERROR(CheckFillsBatch(
      *data->train, loader.batch_size,
      {.on_bad_record = loader.on_bad_record,
       .stream = {.workers = loader.workers,
                  .max_prefetch_bytes = loader.max_prefetch_bytes,
                  .stop = options.context.stop},
       .listener = report}));
  data->filled_batch = loader.batch_size;
  return absl::OkStatus();
}

std::string DescribeRuns(const RunConfig& config, const Task& task,
                         const RunData& data, int64_t threads) {
  if (const ModelTask* const model_task = AsModelTask(task)) {
    return absl::StrCat(
        config.task, ": ",
        model_task->DescribeRuns(config, *data.train, *data.dev), "; ",
        Counted(NumStepsOf(config, EpochExamples(task, *data.train, config)),
                "update"),
        "; ", Counted(threads, "thread"));
  }
  // "14 training records, about 8 000 examples, 6 for evaluation".
  const bool has_more = data.train->size() < data.train_records->size();
  const std::string records =
      has_more
          ? absl::StrCat("the first ", data.train->size(), " of ",
                         Counted(data.train_records->size(), "training record"))
          : Counted(data.train->size(), "training record");
  const int64_t examples = data.train->expected_examples();
  const std::string expected =
      examples == data.train->size()
          ? ""
          : absl::StrCat("about ", Counted(examples, "example"), ", ");
  return absl::StrCat(
      config.task, ": ", records, ", ", expected, data.dev->size(),
      " for evaluation; ", Counted(NumStepsOf(config, examples), "update"),
      " of ", Counted(config.train.batch_size, "example"), ", ",
      config.train.micro_batch_size, " at a time; residual attention ",
      ResidualText(config.model), "; ", Counted(threads, "thread"));
}

// The first few good records, and the examples that they give.
struct FirstExamples {
  int64_t records = 0;
  int64_t examples = 0;
  // Long tokens, of BERT global ones, and those that are `unknown_id`.
  int64_t tokens = 0;
  int64_t unknown = 0;
};

FirstExamples LookAtFirst(const ExampleSource& records, int32_t unknown_id) {
  constexpr int64_t kLookedAt = 10;
  FirstExamples first;
  for (int64_t i = 0; i < std::min(kLookedAt, records.size()); ++i) {
    const absl::StatusOr<Examples> examples =
        records.Make(RequestForEvaluation(i));
    if (examples.ok()) {
      ++first.records;
      first.examples += std::ssize(*examples);
      for (const auto& example : *examples) {
        const std::vector<int32_t>& ids = example->long_token_ids.empty()
                                              ? example->global_token_ids
                                              : example->long_token_ids;
        first.tokens += std::ssize(ids);
        first.unknown += absl::c_count(ids, unknown_id);
      }
    }
  }
  return first;
}

// A warning where the vocabulary knows little of the text, as one of another
// language, or of lower case for text that is not folded; empty: it knows it.
std::string UnknownWarning(const RunConfig& config,
                           const FirstExamples& first) {
  constexpr double kMost = 0.03;
  const double share = static_cast<double>(first.unknown) /
                       static_cast<double>(std::max<int64_t>(first.tokens, 1));
  return share <= kMost
             ? ""
             : absl::StrFormat(
                   "%.1f %% of the tokens of the first %s are unknown to %s: "
                   "it may be of another language, or of lower case alone",
                   100 * share, Counted(first.records, "record"),
                   config.tokenizer.vocabulary);
}

// A warning where train.epochs, which decides the updates, counts the records
// of `train` although they have several examples each; empty: it does not, or
// the task counts so.
std::string RecordsWarning(const RunConfig& config, const Task& task,
                           const ExampleSource& train,
                           const FirstExamples& first) {
  const bool counts_records = !config.train.steps.has_value() &&
                              !config.train.num_train_examples.has_value() &&
                              config.train.max_examples == 0 &&
                              train.expected_examples() == train.size();
  if (!counts_records || task.epochs_count_records() ||
      first.examples <= first.records) {
    return "";
  }
  return absl::StrCat("train.epochs counts ", Counted(train.size(), "record"),
                      ", of which the first ", first.records, " give ",
                      first.examples,
                      " examples: set train.num_train_examples to the number "
                      "of examples that `realetc inspect --count` prints");
}

absl::Status DescribeData(const RunConfig& config, const Task& task,
                          const RunData& data, const RunContext& context) {
  // Parses all records of some tasks, for lines that rank 0 alone shows; the
  // others wait, at most train.timeout_s.
  ETC_RETURN_IF_ERROR(OnRankZero(context.group, [&]() -> absl::Status {
    ETC_ASSIGN_OR_RETURN(
        const Notices described,
        task.DescribeData(*data.train_records, *data.dev_records));
    for (const std::string& line : described.messages) {
      context.Message(line);
    }
    for (const std::string& warning : described.warnings) {
      context.Warn(warning);
    }
    return absl::OkStatus();
  }));
  std::string warning =
      ExamplesWarning(config, EpochExamples(task, *data.train, config));
  if (AsModelTask(task) == nullptr) {
    const FirstExamples first = LookAtFirst(*data.train, task.unknown_id());
    context.Warn(UnknownWarning(config, first));
    if (first.examples != first.records) {  // the number of all is not known
      warning = RecordsWarning(config, task, *data.train, first);
    }
  }
  context.Warn(warning);
  return absl::OkStatus();
}

// The allowed plan that takes the least memory for long documents.
MemoryPlan LeastPlan(const RunConfig& config) {
  const std::vector<MemoryPlan> allowed = AllowedPlans(config);
  return absl::c_linear_search(allowed, MemoryPlan::kFiles) ? MemoryPlan::kFiles
                                                            : allowed.back();
}

// The advice to allow a plan that takes less memory, in front of advice that
// changes what is learned; empty: there is none.
std::string PlanAdvice(const RunConfig& config) {
  RunConfig with_files = config;
  with_files.train.memory_plan = "auto";
  if (with_files.train.memory_directory.empty()) {
    with_files.train.memory_directory = "/tmp";
  }
  const MemoryPlan least = LeastPlan(with_files);
  if (least == LeastPlan(config)) {
    return "";
  }
  return absl::StrCat(
      config.train.memory_plan == "auto"
          ? ""
          : "set train.memory_plan to \"auto\", or ",
      least == MemoryPlan::kFiles && config.train.memory_directory.empty()
          ? "set train.memory_directory to a directory on a fast disk, or "
          : "");
}

// Returns true if cached examples are a part of the memory worth a message.
bool CachesMuch(const StepMemory& memory) {
  return memory.cache > 0.05 * memory.total();
}

// The message before a run whose longest examples would not fit in memory if
// all were kept; empty: they do. Shorter ones may be all there are.
std::string MemoryMessage(const RunConfig& config,
                          const TrainedCounts& parameters,
                          const StepShape& largest) {
  const MemoryPlan plan = MemoryPlanner(config, parameters).For(largest);
  const StepMemory memory =
      EstimateStepMemory(WithMemoryPlan(config, plan), parameters, largest);
  const double needed = memory.total();
  const double limit = MemoryLimit(config);
  const bool caches = CachesMuch(memory);
  const std::string update = absl::StrFormat(
      "an update of %d long and %d global tokens, %d examples at a time,%s",
      largest.long_length, largest.global_length, largest.batch,
      caches ? absl::StrFormat(" with %.1f GB for cached examples,",
                               1e-9 * memory.cache)
             : "");
  if (needed > limit) {
    return absl::StrFormat(
        "%s takes %.1f GB, and may have %.1f GB: %slower "
        "%strain.micro_batch_size, data.max_long_length or "
        "data.max_global_length, if there are examples so long",
        update, 1e-9 * needed, 1e-9 * limit, PlanAdvice(config),
        caches ? "data.cache_megabytes, " : "");
  }
  return plan == AllowedPlans(config).front()
             ? ""
             : absl::StrFormat(
                   "%s takes %.1f of %.1f GB by train.memory_plan \"%s\"; "
                   "shorter ones keep more and are faster",
                   update, 1e-9 * needed, 1e-9 * limit, MemoryPlanName(plan));
}

// The message before a run whose evaluations would not fit in memory with the
// longest examples; empty: they do.
std::string EvaluationMessage(const RunConfig& config,
                              const TrainedCounts& parameters) {
  const StepMemory memory = EstimateEvaluationMemory(config, parameters);
  const double limit = MemoryLimit(config);
  if (memory.total() <= limit) {
    return "";
  }
  const StepShape largest = LargestMicroBatch(config);
  const int64_t fits =
      EvaluationBatchWithin(limit - memory.cache, config, parameters);
  return absl::StrFormat(
      "an evaluation of %d long and %d global tokens, %d examples at a time, "
      "takes %.1f GB, and may have %.1f GB: %s, if there are examples so long",
      largest.long_length, largest.global_length,
      config.train.evaluation_batch_size, 1e-9 * memory.total(), 1e-9 * limit,
      fits > 0
          ? absl::StrCat("set train.evaluation_batch_size=", fits)
          : absl::StrCat("lower ",
                         CachesMuch(memory) ? "data.cache_megabytes, " : "",
                         "data.max_long_length or data.max_global_length"));
}

// Returns `status` of a run of so many processes, with advice if its memory was
// too little.
absl::Status WithAdvice(const absl::Status& status, const RunConfig& config,
                        const Task& task, const torch::Device& device,
                        int64_t processes) {
  if (!IsOutOfMemory(status)) {
    return status;
  }
  if (config.encoder_decoder.has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(status.message(),
                     "; lower translation.max_tokens, and raise "
                     "train.batch_size by as much: updates stay as large"));
  }
  const TrainedCounts parameters = CountWithoutHead(config, processes);
  const StepShape largest = LargestMicroBatch(config, task);
  const StepMemory memory = EstimateStepMemory(
      WithPlanFor(config, parameters, largest), parameters, largest);
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s; realetc estimate comes to %.1f GB for updates and %.1f GB for "
      "evaluations on the CPU%s; %slower "
      "train.micro_batch_size (now %d), data.max_long_length (%d), "
      "data.max_global_length (%d) or, for evaluations, "
      "train.evaluation_batch_size (%d)",
      status.message(), 1e-9 * memory.without_cache(),
      1e-9 * EstimateEvaluationMemory(config, parameters).without_cache(),
      device.is_cpu()
          ? absl::StrFormat(" and %.1f GB for examples (data.cache_megabytes), "
                            "of %.1f GB that this process may have",
                            1e-9 * memory.cache, 1e-9 * MemoryLimit(config))
          : ", and the device is " + device.str(),
      PlanAdvice(config), config.train.micro_batch_size,
      config.data.max_long_length, config.data.max_global_length,
      config.train.evaluation_batch_size));
}

// Finishes `result`, of which all runs are.
absl::Status Summarize(const RunConfig& config, const MainMetric& main_metric,
                       const TrainOptions& options,
                       const nlohmann::json& settings, TrainResult* result) {
  result->finished = true;
  ProcessGroup* const group = options.context.group;
  WrittenSummary written;
  ETC_RETURN_IF_ERROR(OnRankZero(group, [&]() -> absl::Status {
    ETC_ASSIGN_OR_RETURN(written, WriteSummary(OutputOf(config), main_metric,
                                               result->runs, settings));
    for (const std::string& message : written.messages) {
      options.context.Message(message);
    }
    return absl::OkStatus();
  }));
  std::vector<Metrics> best;
  std::string scored;  // "0" or "1" for each run, by rank 0
  for (const RunResult& run : result->runs) {
    scored += written.left_out.contains(run.seed) ? '0' : '1';
  }
  if (group != nullptr) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         group->Gather(scored));
    scored = all.front();
  }
  for (size_t i = 0; i < scored.size(); ++i) {
    if (scored[i] == '1') {
      best.push_back(result->runs[i].best);
    }
  }
  result->scores = SummarizeScores(best);
  result->num_scored = std::ssize(best);
  return absl::OkStatus();
}

// Updates that the seeds of a configuration, from the one with index `first`
// on, have left of `num_steps` each, by their checkpoints.
int64_t StepsLeft(const RunConfig& config, const TrainOptions& options,
                  size_t first, int64_t num_steps) {
  const std::vector<int64_t>& seeds = config.train.seeds;
  int64_t left = 0;
  for (size_t i = first; i < seeds.size(); ++i) {
    int64_t done = 0;
    if (Resumes(options.earlier)) {
      const absl::StatusOr<CheckpointRecord> record = ReadCheckpointRecord(
          SeedDirectory(config.output, seeds[i]) + "/checkpoints");
      if (record.ok() && record->checkpoints.contains(record->last)) {
        done = record->checkpoints.at(record->last).step;
      }
    }
    left += std::max<int64_t>(0, num_steps - done);
  }
  return left;
}

// The runs of a configuration, one seed after the other. Everything referred to
// must outlive it.
struct SeedRuns {
  const RunConfig& config;
  const Task& task;
  const RunData& data;
  const RunClaims& claims;
  const RunDevice& device;
  const TrainOptions& options;
  // WithCacheOf, by Announce.
  RunConfig planned = {};

  // Says which runs these are; returns the files that they read.
  absl::StatusOr<RunFiles> Announce();
  // Trains them, from plans to the summary.
  absl::StatusOr<TrainResult> Train(const RunFiles& files) const;
  // Removes the runs that they replace.
  absl::Status RemoveEarlier() const;
  // Trains one of them, before `later_steps` updates of other seeds.
  absl::StatusOr<RunResult> TrainOne(const RunPlan& plan,
                                     int64_t later_steps) const;
};

absl::StatusOr<RunFiles> SeedRuns::Announce() {
  ETC_ASSIGN_OR_RETURN(RunFiles files,
                       FindRunFiles(config, OpeningListener(options.context),
                                    DataGroupOf(options.context.group)));
  planned = WithCacheOf(config, data, files);
  ETC_RETURN_IF_ERROR(
      AnnounceRuns(planned, task, data, device, options.context));
  return files;
}

absl::Status SeedRuns::RemoveEarlier() const {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> removed,
                       RemoveRuns(config));
  for (const std::string& directory : removed) {
    options.context.Message(
        absl::StrCat("removed the earlier run in ", directory));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> SeedRuns::TrainOne(const RunPlan& plan,
                                             int64_t later_steps) const {
  EvaluateOptions evaluation = EvaluateOptionsFromConfig(config);
  evaluation.context = options.context;
  const auto evaluate = [&](TrainableModel* model) {
    return Evaluate(model, task, *data.dev, evaluation);
  };
  TrainOptions runs = options;
  runs.later_steps += later_steps;
  RunOptions run = {
      .plan = plan,
      .train = *data.train,
      .make_loader = LoaderMakerOf(task, *data.train),
      .make_model =
          [this] {
            return MakeModel(planned, task, device.device,
                             options.context.processes());
          },
      .main_metric = MainMetricOf(config.train, task.main_metric()),
      .directory = SeedDirectory(config.output, plan.seed),
      .lock = claims.Find(SeedDirectory(config.output, plan.seed)),
      .runs = std::move(runs)};
  run.go_on = [&] { return WithdrawResult(OutputOf(config), plan.seed); };
  // The first one removes those of all seeds: one that is stopped can then be
  // resumed with all of them.
  if (options.earlier == EarlierRun::kOverwrite &&
      plan.seed == config.train.seeds.front()) {
    run.remove_earlier = [this] { return RemoveEarlier(); };
  }
  if (data.dev->size() > 0) {
    run.evaluate = evaluate;
    if (NeedsMainMetric(config.train)) {
      run.probe = [&](TrainableModel* model) {
        return ProbeMetric(model, task, *data.dev, evaluation,
                           run.main_metric.name);
      };
    }
  }
  absl::StatusOr<RunResult> result = TrainOneSeed(run);
  if (!result.ok()) {
    return WithAdvice(result.status(), planned, task, device.device,
                      options.context.processes());
  }
  return result;
}

absl::StatusOr<TrainResult> SeedRuns::Train(const RunFiles& files) const {
  if (options.context.is_first()) {
    // Left by a process that was killed while it wrote the summary.
    ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(config.output));
  }
  TrainResult result;
  const int64_t num_examples = EpochExamples(task, *data.train, config);
  nlohmann::json settings;  // of the last seed
  for (const int64_t seed : config.train.seeds) {
    options.context.Message(absl::StrCat("seed ", seed));
    ETC_ASSIGN_OR_RETURN(RunPlan plan,
                         PlanRun(config, {.seed = seed,
                                          .num_records = data.train->size(),
                                          .num_examples = num_examples,
                                          .files = files}));
    plan.evaluates_train_files = task.holds_out() && config.data.dev.empty() &&
                                 config.data.dev_records.empty();
    const size_t next = result.runs.size() + 1;
    ETC_ASSIGN_OR_RETURN(
        RunResult run,
        TrainOne(plan, StepsLeft(config, options, next, plan.num_steps)));
    result.runs.push_back(std::move(run));
    if (!result.runs.back().finished) {
      return result;
    }
    ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, [&] {
      return WriteRunResult(result.runs.back(), plan.settings);
    }));
    settings = plan.settings;
  }
  ETC_RETURN_IF_ERROR(Summarize(config,
                                MainMetricOf(config.train, task.main_metric()),
                                options, settings, &result));
  return result;
}

}  // namespace

absl::Status AnnounceRuns(const RunConfig& config, const Task& task,
                          const RunData& data, const RunDevice& device,
                          const RunContext& context) {
  context.Message(DescribeRuns(config, task, data, at::get_num_threads()));
  ETC_RETURN_IF_ERROR(DescribeData(config, task, data, context));
  context.Message(device.message);
  context.Warn(device.warning);
  context.Warn(ThreadsWarning(config.train.threads, "train.threads"));
  if (device.device.is_cpu() && !config.encoder_decoder.has_value()) {
    const TrainedCounts parameters =
        CountWithoutHead(config, context.processes());
    const StepShape largest = LargestMicroBatch(config, task);
    context.Warn(PlanWarning(config, parameters, largest));
    for (const std::string& message :
         {MemoryMessage(config, parameters, largest),
          data.dev->size() > 0 ? EvaluationMessage(config, parameters) : ""}) {
      if (!message.empty()) {
        context.Message(message);
      }
    }
  }
  const CheckpointSpace disk = EstimateCheckpoints(
      config, CountWithoutHead(config),
      MostCheckpoints(config, EpochExamples(task, *data.train, config)));
  if (context.is_first()) {
    context.Warn(DiskWarning(config, disk.all));
  }
  return absl::OkStatus();
}

absl::Status CheckWithoutData(const RunConfig& config,
                              const TrainOptions& options) {
  if (config.output.empty()) {
    return absl::InvalidArgumentError(
        "output should be a directory, but is empty");
  }
  if (config.train.steps == 0 && config.init.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.source,
                     ": train.steps is 0, so that init should name weights, "
                     "but is empty"));
  }
  ETC_RETURN_IF_ERROR(CheckSchedule(config));
  return CheckFieldNames(config, options.allow_changes);
}

absl::StatusOr<RunClaims> ClaimRuns(const RunConfig& config,
                                    const TrainOptions& options) {
  RunClaims claims;
  ETC_RETURN_IF_ERROR(OnRankZero(options.context.group, [&]() -> absl::Status {
    ETC_ASSIGN_OR_RETURN(
        claims, RunClaims::Take(config, {.earlier = options.earlier,
                                         .allow_changes = options.allow_changes,
                                         .stop = options.context.stop}));
    return absl::OkStatus();
  }));
  return claims;
}

absl::StatusOr<CheckedRuns> CheckRuns(const RunConfig& config, const Task& task,
                                      RunData* data,
                                      const TrainOptions& options) {
  CheckedRuns checked = {.data = data};
  ETC_ASSIGN_OR_RETURN(checked.device,
                       JoinDevice(config, options.context.group));
  ETC_RETURN_IF_ERROR(options.context.Agree(
      CheckFits(config, checked.device.device, options, data)));
  const int64_t num_examples = EpochExamples(task, *data->train, config);
  ETC_RETURN_IF_ERROR(
      CheckHasUpdate(config, data->train->size(), num_examples));
  checked.steps_left =
      StepsLeft(config, options, /*first=*/0, NumStepsOf(config, num_examples));
  return checked;
}

absl::StatusOr<TrainResult> TrainChecked(const RunConfig& config,
                                         const Task& task,
                                         const CheckedRuns& checked,
                                         const RunClaims& claims,
                                         const TrainOptions& options) {
  const CurrentDevice current(checked.device.device);
  ETC_RETURN_IF_ERROR(
      SetThreads(config.train.threads, "train.threads").status());
  SeedRuns runs = {.config = config,
                   .task = task,
                   .data = *checked.data,
                   .claims = claims,
                   .device = checked.device,
                   .options = options};
  ETC_ASSIGN_OR_RETURN(const RunFiles files, runs.Announce());
  return runs.Train(files);
}

}  // namespace etc
