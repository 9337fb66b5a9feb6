#ifndef ETC_TASKS_HEAD_COST_H_
#define ETC_TASKS_HEAD_COST_H_

#include "etc/step_cost.h"

namespace etc {

// What a head computes in an update beside the encoder's run on its examples.
struct HeadCost {
  // Floating-point operations of its products, forward and backward.
  double flops = 0;
  // What it reads of the encoder's outputs.
  OutputCounts outputs;
  // What else the encoder reads, once without and once with a gradient; no
  // examples: nothing.
  StepShape targets = {.batch = 0};
};

}  // namespace etc

#endif  // ETC_TASKS_HEAD_COST_H_
