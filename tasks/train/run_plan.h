#ifndef ETC_TASKS_TRAIN_RUN_PLAN_H_
#define ETC_TASKS_TRAIN_RUN_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "base/memory_limit.h"
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

// A pool may take half of the process's memory.
TrainingLoaderOptions LoaderOptionsOf(const FinetuneConfig& config,
                                      int64_t seed);

// `data.cache_megabytes` and `data.max_record_megabytes` in bytes.
int64_t CacheBytesOf(const DataConfig& config);
uint64_t MaxRecordBytesOf(const DataConfig& config);

// Whether a process with `memory` bytes can train the model: hold its weights,
// their gradients and the optimizer's two moments, whatever the batch.
//   kResourceExhausted  it cannot
absl::Status CheckModelFits(const FinetuneConfig& config,
                            int64_t memory = MemoryOfProcess());

OnBadRecord OnBadRecordOf(const DataConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_RUN_PLAN_H_
