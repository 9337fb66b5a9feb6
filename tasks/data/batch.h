#ifndef ETC_TASKS_DATA_BATCH_H_
#define ETC_TASKS_DATA_BATCH_H_

#include <torch/types.h>

#include <memory>
#include <vector>

#include "etc/model.h"
#include "tasks/data/example.h"

namespace etc {

// Examples side by side, as long as the longest of them: B examples, L and G
// the largest lengths. Padding has token id 0 and type id 0; the patterns end
// where each example ends, so no token attends to padding.
struct Batch {
  std::vector<std::shared_ptr<const Example>> examples;
  // Tokens, type ids (as segments) and patterns, on one device. The rest is
  // undefined: a head sets it in a copy.
  EtcInput input;

  int64_t size() const { return static_cast<int64_t>(examples.size()); }
};

// Its tensors are made on the CPU and then copied to `device` (ToDevice).
// Throws c10::Error if there are no examples.
Batch MakeBatch(std::vector<std::shared_ptr<const Example>> examples,
                const torch::Device& device = torch::kCPU);

}  // namespace etc

#endif  // ETC_TASKS_DATA_BATCH_H_
