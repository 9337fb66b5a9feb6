#include "tasks/train/finetune.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "etc/model_size.h"
#include "nlohmann/json.hpp"
#include "tasks/data/example_count.h"
#include "tasks/data/example_source.h"
#include "tasks/data/loader.h"
#include "tasks/train/device.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/run_files.h"
#include "tasks/train/run_plan.h"
#include "tasks/train/run_settings.h"
#include "tasks/train/step_memory.h"
#include "tasks/train/task_run_model.h"

namespace etc {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson MetricsToJson(const Metrics& metrics) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, value] : metrics) {
    json[name] = value;
  }
  return json;
}

OrderedJson SummaryToJson(const FinetuneConfig& config,
                          const std::string& main_metric,
                          const FinetuneResult& result) {
  OrderedJson runs = OrderedJson::array();
  for (const RunResult& run : result.runs) {
    runs.push_back({{"seed", run.seed},
                    {"directory", run.directory},
                    {"steps", run.steps},
                    {"best_step", run.best_step},
                    {"best", MetricsToJson(run.best)},
                    {"last", MetricsToJson(run.last)}});
  }
  OrderedJson scores = OrderedJson::object();
  for (const ScoreSummary& score : result.scores) {
    scores[score.name] = {
        {"median", score.median},
        {"standard_deviation", score.standard_deviation.has_value()
                                   ? OrderedJson(*score.standard_deviation)
                                   : OrderedJson()}};
  }
  return {{"task", config.task},
          {"main_metric", main_metric},
          {"scores", scores},
          {"runs", runs}};
}

// Every score that all runs have.
std::vector<ScoreSummary> Summarize(const std::vector<RunResult>& runs) {
  std::vector<ScoreSummary> scores;
  for (size_t i = 0; i < runs.front().best.size(); ++i) {
    std::vector<double> values;
    for (const RunResult& run : runs) {
      values.push_back(run.best[i].second);
    }
    scores.push_back(
        SummarizeScore(runs.front().best[i].first, std::move(values)));
  }
  return scores;
}

absl::Status CheckPaths(const FinetuneConfig& config) {
  if (config.output.empty()) {
    return absl::InvalidArgumentError(
        "output should be a directory, but is empty");
  }
  if (config.data.train.empty()) {
    return absl::InvalidArgumentError(
        "data.train should name at least one file, but is empty");
  }
  return absl::OkStatus();
}

// The data of a run. The memory for cached examples is divided between the two
// by their numbers of records.
struct DataSets {
  std::unique_ptr<ExampleSource> train_records;
  std::unique_ptr<ExampleSource> dev_records;
  std::unique_ptr<ExampleSource> train;
  std::unique_ptr<ExampleSource> dev;
};

absl::StatusOr<DataSets> OpenDataSets(const DataConfig& config,
                                      const Task& task,
                                      const FinetuneOptions& options) {
  DataSets data;
  OpenOptions open = {.use = RecordUse::kTraining,
                      .reporter = options.reporter,
                      .stop = options.stop,
                      .max_record_bytes = MaxRecordBytesOf(config)};
  ETC_ASSIGN_OR_RETURN(data.train_records,
                       OpenRecords(config.train, task, open));
  open.use = RecordUse::kEvaluation;
  ETC_ASSIGN_OR_RETURN(data.dev_records, OpenRecords(config.dev, task, open));
  const auto train_size = static_cast<double>(data.train_records->size());
  const auto dev_size = static_cast<double>(data.dev_records->size());
  const auto bytes = static_cast<double>(CacheBytesOf(config));
  const double bytes_per_record = bytes / std::max(1.0, train_size + dev_size);
  data.train = std::make_unique<CachedSource>(
      data.train_records.get(),
      static_cast<int64_t>(bytes_per_record * train_size));
  data.dev = std::make_unique<CachedSource>(
      data.dev_records.get(),
      static_cast<int64_t>(bytes_per_record * dev_size));
  return data;
}

// Whether the training data fill a batch. Checked before the run writes
// anything to disk.
absl::Status CheckTrainingData(const FinetuneConfig& config,
                               const ExampleSource& train,
                               const FinetuneOptions& options) {
  const TrainingLoaderOptions loader = LoaderOptionsOf(config, /*seed=*/1);
  return CheckFillsBatch(
      train, loader.batch_size,
      {.on_bad_record = loader.on_bad_record,
       .stream = {.workers = loader.workers,
                  .max_prefetch_bytes = loader.max_prefetch_bytes,
                  .stop = options.stop},
       .listener = [&](int64_t records) {
         options.reporter->Counting(
             {.records = records, .num_records = train.size()});
       }});
}

// Whether none of the first few records has an answer. False if one of them is
// bad: the evaluation reports that.
bool HasNoAnswers(const ExampleSource& records) {
  constexpr int64_t kLookedAt = 10;
  bool has_examples = false;
  for (int64_t i = 0; i < std::min(kLookedAt, records.size()); ++i) {
    const absl::StatusOr<Examples> examples =
        records.Make(RequestForEvaluation(i));
    if (!examples.ok()) {
      return false;
    }
    for (const auto& example : *examples) {
      if (example->has_answer) {
        return false;
      }
      has_examples = true;
    }
  }
  return has_examples;
}

// An error if there is nothing to train on, a warning if nothing to evaluate.
absl::Status CheckDataSets(const DataConfig& config, const DataSets& data,
                           RunReporter* reporter) {
  if (data.train->size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.train: there are no records in ",
                     absl::StrJoin(config.train, ", ")));
  }
  const std::string files = absl::StrJoin(config.dev, ", ");
  const char kNoBest[] =
      ": training goes on without scores, and no checkpoint becomes `best`";
  if (config.dev.empty() && data.dev->size() == 0) {
    reporter->Message(absl::StrCat("warning: data.dev is empty", kNoBest));
  } else if (data.dev->size() == 0) {
    reporter->Message(absl::StrCat(
        "warning: data.dev: there are no records in ", files, kNoBest));
  } else if (HasNoAnswers(*data.dev)) {
    reporter->Message(absl::StrCat("warning: data.dev: the records of ", files,
                                   " have no answers", kNoBest));
  }
  return absl::OkStatus();
}

std::string DescribeRuns(const FinetuneConfig& config, const DataSets& data,
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

// `status` of a run, with what to do where its memory was too little.
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

// Joins the task, its data and its model to the trainer, for one seed at a
// time. Everything referred to must outlive it.
struct SeedRunner {
  const FinetuneConfig& config;
  const Task& task;
  const DataSets& data;
  const RunFiles& files;
  torch::Device device;
  const FinetuneOptions& options;

  absl::StatusOr<RunResult> Run(int64_t seed) const {
    ETC_ASSIGN_OR_RETURN(
        const RunPlan plan,
        PlanRun(config, {.seed = seed,
                         .num_records = data.train->size(),
                         .num_examples = data.train->expected_examples(),
                         .files = files}));
    EvaluateOptions evaluate = EvaluateOptionsFromConfig(config);
    evaluate.reporter = options.reporter;
    evaluate.stop = options.stop;
    evaluate.group = options.group;
    const TaskEvaluator evaluator(&task, data.dev.get(), evaluate);
    absl::StatusOr<RunResult> result = TrainOneSeed(
        {.plan = plan,
         .train = *data.train,
         .make_model =
             [this] { return TaskRunModel::Make(config, task, device); },
         .evaluator = data.dev->size() > 0 ? &evaluator : nullptr,
         .directory = absl::StrCat(config.output, "/seed-", seed),
         .resume = options.resume,
         .allow_changes = options.allow_changes,
         .reporter = options.reporter,
         .group = options.group,
         .stop = options.stop});
    if (!result.ok()) {
      return WithAdvice(result.status(), config, device);
    }
    return result;
  }
};

}  // namespace

int64_t SetThreads(int64_t threads) {
  int64_t all = 0;
  const char* const said = std::getenv("OMP_NUM_THREADS");
  if (said == nullptr || !absl::SimpleAtoi(said, &all) || all < 1) {
    all = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  }
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : all));
  return at::get_num_threads();
}

ScoreSummary SummarizeScore(std::string name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  const size_t middle = count / 2;
  ScoreSummary summary{.name = std::move(name)};
  summary.median = count % 2 == 1 ? values[middle]
                                  : (values[middle - 1] + values[middle]) / 2;
  if (count > 1) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) /
                        static_cast<double>(count);
    double squares = 0;
    for (const double value : values) {
      squares += (value - mean) * (value - mean);
    }
    summary.standard_deviation =
        std::sqrt(squares / static_cast<double>(count - 1));
  }
  return summary;
}

absl::StatusOr<FinetuneResult> Finetune(const FinetuneConfig& config,
                                        const Task& task,
                                        const FinetuneOptions& options) {
  ETC_RETURN_IF_ERROR(CheckPaths(config));
  ETC_RETURN_IF_ERROR(CheckFieldNames(config, options.allow_changes));
  ETC_ASSIGN_OR_RETURN(const RunDevice device, DeviceOfRun(config));
  const CurrentDevice current(device.device);
  const int64_t threads = SetThreads(config.train.threads);
  ETC_ASSIGN_OR_RETURN(const DataSets data,
                       OpenDataSets(config.data, task, options));
  ETC_RETURN_IF_ERROR(CheckDataSets(config.data, data, options.reporter));
  const OpenOptions open = {.reporter = options.reporter, .stop = options.stop};
  ETC_ASSIGN_OR_RETURN(const RunFiles files,
                       FindRunFiles(config, OpeningListener(open)));
  options.reporter->Message(DescribeRuns(config, data, threads));
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> described,
      task.DescribeData(*data.train_records, *data.dev_records));
  for (const std::string& line : described) {
    options.reporter->Message(line);
  }
  options.reporter->Message(device.message);
  // Elsewhere it is not this memory that they take.
  if (device.device.is_cpu()) {
    ETC_RETURN_IF_ERROR(CheckModelFits(config));
  }
  ETC_RETURN_IF_ERROR(CheckTrainingData(config, *data.train, options));
  const bool writes = options.group == nullptr || options.group->is_first();
  if (writes) {
    // Left by a process that was killed while it wrote the summary.
    ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(config.output));
  }
  const SeedRunner runner = {.config = config,
                             .task = task,
                             .data = data,
                             .files = files,
                             .device = device.device,
                             .options = options};
  FinetuneResult result;
  for (const int64_t seed : config.train.seeds) {
    options.reporter->Message(absl::StrCat("seed ", seed));
    ETC_ASSIGN_OR_RETURN(RunResult run, runner.Run(seed));
    result.runs.push_back(std::move(run));
    if (!result.runs.back().finished) {
      return result;
    }
  }
  result.finished = true;
  result.scores = Summarize(result.runs);
  if (writes) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(
        config.output + "/summary.json",
        SummaryToJson(config, task.main_metric(), result).dump(2) + "\n"));
  }
  return result;
}

}  // namespace etc
