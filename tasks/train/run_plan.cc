#include "tasks/train/run_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

// Examples of one epoch: a trial on the first records has theirs alone.
int64_t NumExamplesOf(const RunConfig& config, int64_t num_examples) {
  return config.train.max_examples > 0
             ? num_examples
             : config.train.num_train_examples.value_or(num_examples);
}

// `train.evaluate_every`, or the updates of one epoch.
int64_t EvaluationIntervalOf(const RunConfig& config, int64_t num_examples) {
  return config.train.evaluate_every.value_or(std::max<int64_t>(
      1, NumExamplesOf(config, num_examples) / config.train.batch_size));
}

LearningRateSchedule ScheduleOf(const RunConfig& config, int64_t num_steps) {
  return {.type = ScheduleTypeFromName(config.schedule.type),
          .learning_rate = config.train.learning_rate,
          .num_steps = num_steps,
          .warmup_steps = config.schedule.warmup_steps.value_or(
              NumWarmupSteps(num_steps, config.schedule.warmup_proportion)),
          .start_warmup_step = config.schedule.start_warmup_step,
          .poly_power = config.schedule.poly_power,
          .initial_rate = config.schedule.initial_learning_rate,
          .min_rate = config.schedule.min_learning_rate};
}

}  // namespace

absl::Status CheckHasUpdate(const RunConfig& config, int64_t num_records,
                            int64_t num_examples) {
  if (config.train.steps == 0) {
    return absl::OkStatus();
  }
  const int64_t num_steps = NumStepsOf(config, num_examples);
  const int64_t warmup_steps = config.schedule.warmup_steps.value_or(0);
  if (num_steps >= 1 && warmup_steps > num_steps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule.warmup_steps should be at most the updates of the run (",
        num_steps, "), but is ", warmup_steps));
  }
  if (num_steps >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("train.epochs (", config.train.epochs,
                   ") come to no update: the training data have ",
                   Counted(num_records, "record"), " and train.batch_size is ",
                   config.train.batch_size));
}

absl::Status CheckSchedule(const RunConfig& config) {
  const ScheduleConfig& schedule = config.schedule;
  const ScheduleConfig defaults;
  const ScheduleType type = ScheduleTypeFromName(schedule.type);
  std::vector<std::string> of_other_type;
  if (schedule.min_learning_rate != defaults.min_learning_rate &&
      type != ScheduleType::kLinear && type != ScheduleType::kCosine) {
    of_other_type.emplace_back("min_learning_rate");
  }
  if (schedule.poly_power != defaults.poly_power &&
      type != ScheduleType::kPoly) {
    of_other_type.emplace_back("poly_power");
  }
  ETC_RETURN_IF_ERROR(
      RefuseFields(config, "schedule", of_other_type,
                   absl::StrCat("with schedule.type \"", schedule.type, "\"")));
  if (schedule.warmup_steps.has_value() ? *schedule.warmup_steps > 0
                                        : schedule.warmup_proportion > 0) {
    return absl::OkStatus();
  }
  std::vector<std::string> of_warmup;
  if (schedule.initial_learning_rate != defaults.initial_learning_rate) {
    of_warmup.emplace_back("initial_learning_rate");
  }
  if (schedule.start_warmup_step != defaults.start_warmup_step &&
      type != ScheduleType::kInverseSqrt) {
    of_warmup.emplace_back("start_warmup_step");
  }
  return RefuseFields(config, "schedule", of_warmup, "without a warm-up");
}

MainMetric MainMetricOf(const TrainConfig& config, const std::string& of_task) {
  MainMetric metric = {.name = config.main_metric.empty() ? of_task
                                                          : config.main_metric};
  metric.lower_is_better = config.main_metric_direction == "auto"
                               ? IsLowerBetter(metric.name)
                               : config.main_metric_direction == "min";
  return metric;
}

bool NeedsMainMetric(const TrainConfig& config) {
  return !config.main_metric.empty() || config.early_stopping > 0;
}

absl::Status CheckHasMainMetric(const Metrics& scores,
                                const std::string& metric) {
  if (FindMetric(scores, metric).has_value()) {
    return absl::OkStatus();
  }
  if (scores.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no score \"", metric,
        "\", which train.main_metric or train.early_stopping need: no record "
        "of the evaluation data has an answer"));
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : scores) {
    names.push_back(name);
  }
  const std::string nearest = NearestName(metric, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "train.main_metric should be \"", absl::StrJoin(names, "\" or \""),
      "\", the scores of an evaluation, but is \"", metric, "\"",
      nearest.empty() ? ""
                      : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

absl::StatusOr<RunPlan> PlanRun(const RunConfig& config,
                                const RunInputs& inputs) {
  ETC_RETURN_IF_ERROR(
      CheckHasUpdate(config, inputs.num_records, inputs.num_examples));
  const int64_t num_steps = NumStepsOf(config, inputs.num_examples);
  return RunPlan{
      .seed = inputs.seed,
      .num_steps = num_steps,
      .epoch_examples = NumExamplesOf(config, inputs.num_examples),
      .evaluate_every = EvaluationIntervalOf(config, inputs.num_examples),
      .evaluate_at_start = config.train.evaluate_at_start || num_steps == 0,
      .configuration = JsonText(config.json, /*indent=*/2),
      .train = config.train,
      .optimizer = config.optimizer,
      .schedule = ScheduleOf(config, num_steps),
      .loader = LoaderOptionsOf(config, inputs.seed),
      .settings = RunSettings(config, inputs)};
}

int64_t NumStepsOf(const RunConfig& config, int64_t num_examples) {
  return config.train.steps.value_or(
      NumTrainingSteps(NumExamplesOf(config, num_examples),
                       config.train.batch_size, config.train.epochs));
}

int64_t EvaluationsFrom(const RunPlan& plan, int64_t step) {
  const int64_t every = plan.evaluate_every > 0
                            ? plan.evaluate_every
                            : std::max<int64_t>(1, plan.num_steps);
  return (plan.num_steps + every - 1) / every - (step - 1) / every;
}

int64_t MostCheckpoints(const RunConfig& config, int64_t num_examples) {
  const int64_t num_steps = NumStepsOf(config, num_examples);
  const auto times = [&](int64_t every) {
    return every > 0 ? num_steps / every : 0;
  };
  return std::min(num_steps + 1,
                  times(EvaluationIntervalOf(config, num_examples)) +
                      times(config.train.checkpoint_every) + 2);
}

std::string ExamplesWarning(const RunConfig& config, int64_t num_examples) {
  constexpr double kTolerance = 0.05;
  const int64_t stated = NumExamplesOf(config, num_examples);
  const auto difference = static_cast<double>(stated - num_examples);
  return std::abs(difference) <= kTolerance * static_cast<double>(stated)
             ? ""
             : absl::StrCat(
                   "train.num_train_examples, by which epochs are counted, is ",
                   stated, ", but data.train comes to ", num_examples,
                   "; --set train.num_train_examples=null counts epochs by "
                   "these");
}

TrainingLoaderOptions LoaderOptionsOf(const RunConfig& config, int64_t seed) {
  return {.seed = static_cast<uint64_t>(seed),
          .batch_size = config.train.batch_size,
          .micro_batch_size = config.train.micro_batch_size,
          .bucket_batches = config.data.bucket_batches,
          .workers = config.data.workers,
          .on_bad_record = OnBadRecordOf(config.data),
          .max_prefetch_bytes = CacheBytesOf(config.data),
          .max_pool_bytes = MemoryOfProcess() / 2};
}

int64_t CacheBytesOf(const DataConfig& config) {
  return kMegabyte * config.cache_megabytes;
}

OnBadRecord OnBadRecordOf(const DataConfig& config) {
  return config.on_bad_record == "skip" ? OnBadRecord::kSkip
                                        : OnBadRecord::kError;
}

}  // namespace etc
