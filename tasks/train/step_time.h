#ifndef ETC_TASKS_TRAIN_STEP_TIME_H_
#define ETC_TASKS_TRAIN_STEP_TIME_H_

#include <cstdint>
#include <optional>

#include "etc/config.h"
#include "tasks/head_cost.h"
#include "tasks/train/config.h"

namespace etc {

// What this machine computes in a second, on as many threads as LibTorch uses,
// beside its present load.
struct MachineRates {
  // FLOP of the products of a linear layer, forward and backward, in the sizes
  // and the precision of a configuration.
  double linear = 0;
  // FLOP of a large product in float32.
  double product = 0;
  // Bytes read or written by a pass over memory.
  double traffic = 0;
};

// Takes about half a second.
MachineRates MeasureRates(const FinetuneConfig& config);

// Seconds of one update with examples as long as the configuration allows.
struct StepTime {
  double linear = 0;
  double attention = 0;
  // What the head computes besides, HeadCost.
  double head = 0;
  // Passes over activations and scores: CountTrainingTraffic.
  double passes = 0;
  // Passes over parameters: gradients, their norm, the optimizer.
  double parameters = 0;

  double total() const {
    return linear + attention + head + passes + parameters;
  }
};

// Of updates that LargestUpdate(config) says the shape of. `parameters` are all
// numbers that are trained; `head` is TaskHead::CostOf.
StepTime EstimateStepTime(const FinetuneConfig& config, int64_t parameters,
                          const HeadCost& head, const MachineRates& rates);

// Operations of `head` in one update, forward and backward.
double CountHeadFlops(const EtcConfig& model, const HeadCost& head);

// Updates of one run as far as the configuration alone says: `train.steps`, or
// what `train.epochs` come to with `train.num_train_examples`.
std::optional<int64_t> UpdatesWithoutData(const FinetuneConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_STEP_TIME_H_
