#ifndef ETC_TASKS_TRAIN_RUN_PLAN_H_
#define ETC_TASKS_TRAIN_RUN_PLAN_H_

#include <cstdint>

#include "tasks/data/loader.h"
#include "tasks/train/config.h"
#include "tasks/train/schedule.h"

namespace etc {

// What a configuration comes to for training data of `num_records` records.

// Examples of one epoch: `train.num_train_examples`, or one for each record.
int64_t NumExamplesOf(const FinetuneConfig& config, int64_t num_records);

// Updates of a run: `train.steps`, or what `train.epochs` come to.
int64_t NumStepsOf(const FinetuneConfig& config, int64_t num_records);

// Updates between evaluations: `train.evaluate_every`, or those of one epoch;
// 0: only at the end.
int64_t EvaluationIntervalOf(const FinetuneConfig& config, int64_t num_records);

LearningRateSchedule ScheduleOf(const FinetuneConfig& config,
                                int64_t num_steps);

TrainingLoaderOptions LoaderOptionsOf(const FinetuneConfig& config,
                                      int64_t seed);

OnBadRecord OnBadRecordOf(const DataConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_PLAN_H_
