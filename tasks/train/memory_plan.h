#ifndef ETC_TASKS_TRAIN_MEMORY_PLAN_H_
#define ETC_TASKS_TRAIN_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/memory_limit.h"
#include "etc/model.h"
#include "etc/step_cost.h"
#include "tasks/config/config.h"
#include "tasks/config/run_files.h"
#include "tasks/train/trained_counts.h"

namespace etc {

struct RunData;

// Plans of what a forward pass keeps for the backward pass, from the fastest to
// the slowest. Gradients are the same up to rounding.
//
//   kKept    all of it; or as model.grad_checkpointing_period says
//   kLayers  each layer's input; layers are computed again
//   kFiles   that and the contexts of attention, in files in
//            train.memory_directory; layers are computed again, a few heads or
//            tokens at a time (etc/sliced_layer.h)
//   kSlices  each layer's input, in memory; layers as with kFiles, attention
//            twice
//
// Long documents take the least memory with kFiles, then with kSlices.
enum class MemoryPlan { kKept, kLayers, kFiles, kSlices };

// "kept", "layers", "files", "slices".
const char* MemoryPlanName(MemoryPlan plan);

// `config` with the plan as its train.memory_plan.
RunConfig WithMemoryPlan(RunConfig config, MemoryPlan plan);

// The slices of a configuration whose plan is "slices" or "files"; others have
// none.
std::optional<LayerSlices> SlicesOf(const RunConfig& config);

// The plans that train.memory_plan allows on the CPU or on a device, at least
// one, in the order above. "auto" leaves out what cannot be: slices where
// scores are watched or not in one buffer, files without a directory, all but
// kKept on a device and for an encoder-decoder.
std::vector<MemoryPlan> AllowedPlans(const RunConfig& config,
                                     StepBackend backend = StepBackend::kCpu);

// Returns an error if train.memory_plan cannot be: slices or files on a device,
// any but kKept for an encoder-decoder, slices or files with train.watch_scores
// or another storage of residual scores, files without a directory that can be
// written to.
absl::Status CheckMemoryPlan(const RunConfig& config, bool is_cpu);

// Bytes that training may take: train.memory_gigabytes, or MemoryOfProcess.
double MemoryLimit(const RunConfig& config);

// Checks that a process with `memory` bytes, one of `processes`, can hold the
// model's weights, their gradients and the optimizer's state, whatever the
// batch.
//   kResourceExhausted  it cannot
absl::Status CheckModelFits(const RunConfig& config, int64_t processes,
                            int64_t memory = MemoryOfProcess());

// Chooses plans for micro-batches.
class MemoryPlanner {
 public:
  // `config` as of WithCacheOf, where the data are known.
  MemoryPlanner(const RunConfig& config, const TrainedCounts& parameters,
                StepBackend backend = StepBackend::kCpu);

  // The first allowed plan that fits; if none does, the one of least memory.
  MemoryPlan For(const StepShape& shape) const;
  // Makes the model compute its next passes so.
  void Apply(MemoryPlan plan, EtcModel* model) const;

 private:
  struct Planned {
    MemoryPlan plan;
    RunConfig config;  // WithMemoryPlan
  };

  std::vector<Planned> allowed_;
  const TrainedCounts parameters_;
  const StepBackend backend_;
  const double limit_;
};

// `config` with the part of data.cache_megabytes that the examples of its data
// can fill, at most about: none where each epoch has other examples, else by
// the sizes of its files and the numbers of records. For plans and estimates of
// memory alone: loaders may prefetch as much as before.
RunConfig WithCacheOf(RunConfig config, const RunData& data,
                      const RunFiles& files);

// `config` with the plan that a micro-batch of this shape will have.
RunConfig WithPlanFor(const RunConfig& config, const TrainedCounts& parameters,
                      const StepShape& shape,
                      StepBackend backend = StepBackend::kCpu);

// Warns, for people, where train.memory_plan is "layers" and takes more for a
// micro-batch of this shape than "kept"; empty: it does not.
std::string PlanWarning(const RunConfig& config,
                        const TrainedCounts& parameters, const StepShape& shape,
                        StepBackend backend = StepBackend::kCpu);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_MEMORY_PLAN_H_
