#include "tasks/train/run_plan.h"

#include <algorithm>

namespace etc {

int64_t NumExamplesOf(const FinetuneConfig& config, int64_t num_records) {
  return config.train.num_train_examples.value_or(num_records);
}

int64_t NumStepsOf(const FinetuneConfig& config, int64_t num_records) {
  return config.train.steps.value_or(
      NumTrainingSteps(NumExamplesOf(config, num_records),
                       config.train.batch_size, config.train.epochs));
}

int64_t EvaluationIntervalOf(const FinetuneConfig& config,
                             int64_t num_records) {
  return config.train.evaluate_every.value_or(std::max<int64_t>(
      1, NumExamplesOf(config, num_records) / config.train.batch_size));
}

LearningRateSchedule ScheduleOf(const FinetuneConfig& config,
                                int64_t num_steps) {
  return {.learning_rate = config.train.learning_rate,
          .num_steps = num_steps,
          .warmup_steps =
              NumWarmupSteps(num_steps, config.schedule.warmup_proportion),
          .start_warmup_step = config.schedule.start_warmup_step,
          .poly_power = config.schedule.poly_power};
}

TrainingLoaderOptions LoaderOptionsOf(const FinetuneConfig& config,
                                      int64_t seed) {
  return {.seed = static_cast<uint64_t>(seed),
          .batch_size = config.train.batch_size,
          .micro_batch_size = config.train.micro_batch_size,
          .bucket_batches = config.data.bucket_batches,
          .workers = config.data.workers,
          .on_bad_record = OnBadRecordOf(config.data)};
}

OnBadRecord OnBadRecordOf(const DataConfig& config) {
  return config.on_bad_record == "skip" ? OnBadRecord::kSkip
                                        : OnBadRecord::kError;
}

}  // namespace etc
