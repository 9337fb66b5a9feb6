#include "tasks/train/memory_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process_memory.h"
#include "tasks/data/example_source.h"
#include "tasks/train/estimate.h"
#include "tasks/train/open_data.h"

namespace etc {
namespace {

constexpr MemoryPlan kPlans[] = {MemoryPlan::kKept, MemoryPlan::kLayers,
                                 MemoryPlan::kFiles, MemoryPlan::kSlices};

bool IsSliced(MemoryPlan plan) {
  return plan == MemoryPlan::kSlices || plan == MemoryPlan::kFiles;
}

// The reason why a run cannot have a plan; empty: it can.
std::string Hindrance(const RunConfig& config, MemoryPlan plan, bool is_cpu) {
  if (plan == MemoryPlan::kKept) {
    return "";
  }
  if (config.encoder_decoder.has_value()) {
    return "is for encoders, but task is \"translation\"";
  }
  if (!IsSliced(plan)) {
    return "";
  }
  if (!is_cpu) {
    return "is for the CPU";
  }
  if (config.train.watch_scores > 0) {
    return "computes no statistics of scores, but train.watch_scores is above "
           "0";
  }
  if (config.residual_attention != "off" &&
      config.train.score_storage != "reverse") {
    return absl::StrCat("needs train.score_storage \"reverse\", but it is \"",
                        config.train.score_storage, "\"");
  }
  if (plan == MemoryPlan::kFiles && config.train.memory_directory.empty()) {
    return "needs train.memory_directory";
  }
  return "";
}

}  // namespace

const char* MemoryPlanName(MemoryPlan plan) {
  switch (plan) {
    case MemoryPlan::kKept:
      return "kept";
    case MemoryPlan::kLayers:
      return "layers";
    case MemoryPlan::kFiles:
      return "files";
    case MemoryPlan::kSlices:
      return "slices";
  }
  return "";
}

RunConfig WithMemoryPlan(RunConfig config, MemoryPlan plan) {
  config.train.memory_plan = MemoryPlanName(plan);
  if (plan == MemoryPlan::kLayers) {
    config.model.grad_checkpointing_period = 1;
  }
  return config;
}

std::optional<LayerSlices> SlicesOf(const RunConfig& config) {
  if (config.train.memory_plan == MemoryPlanName(MemoryPlan::kSlices)) {
    return LayerSlices{};
  }
  if (config.train.memory_plan == MemoryPlanName(MemoryPlan::kFiles)) {
    return LayerSlices{.directory = config.train.memory_directory};
  }
  return std::nullopt;
}

std::vector<MemoryPlan> AllowedPlans(const RunConfig& config,
                                     StepBackend backend) {
  const bool is_cpu = backend == StepBackend::kCpu;
  std::vector<MemoryPlan> allowed;
  for (const MemoryPlan plan : kPlans) {
    const bool is_meant =
        config.train.memory_plan == "auto"
            ? is_cpu || plan == MemoryPlan::kKept
            : config.train.memory_plan == MemoryPlanName(plan);
    if (is_meant && Hindrance(config, plan, is_cpu).empty()) {
      allowed.push_back(plan);
    }
  }
  return allowed.empty() ? std::vector{MemoryPlan::kKept} : allowed;
}

absl::Status CheckMemoryPlan(const RunConfig& config, bool is_cpu) {
  for (const MemoryPlan plan : kPlans) {
    if (config.train.memory_plan != MemoryPlanName(plan)) {
      continue;
    }
    const std::string hindrance = Hindrance(config, plan, is_cpu);
    if (!hindrance.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "train.memory_plan \"", config.train.memory_plan, "\" ", hindrance));
    }
  }
  const std::string& directory = config.train.memory_directory;
  if (!directory.empty() && access(directory.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("train.memory_directory ", directory,
                            " should be a directory that can be written to"));
  }
  return absl::OkStatus();
}

double MemoryLimit(const RunConfig& config) {
  return config.train.memory_gigabytes > 0
             ? 1e9 * config.train.memory_gigabytes
             : static_cast<double>(MemoryOfProcess());
}

absl::Status CheckModelFits(const RunConfig& config, int64_t processes,
                            int64_t memory) {
  const TrainedCounts parameters = CountWithoutHead(config, processes);
  const double bytes = parameters.weight_bytes() + parameters.gradient_bytes() +
                       parameters.optimizer_bytes();
  if (bytes <= static_cast<double>(memory)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the model has %d parameters; weights, gradients and the two moments of "
      "the optimizer take %.1f GB, and this process may have %.1f GB; see "
      "realetc estimate",
      parameters.all, 1e-9 * bytes, 1e-9 * static_cast<double>(memory)));
}

MemoryPlanner::MemoryPlanner(const RunConfig& config,
                             const TrainedCounts& parameters,
                             StepBackend backend)
    : parameters_(parameters), backend_(backend), limit_(MemoryLimit(config)) {
  for (const MemoryPlan plan : AllowedPlans(config, backend)) {
    allowed_.push_back({.plan = plan, .config = WithMemoryPlan(config, plan)});
  }
}

MemoryPlan MemoryPlanner::For(const StepShape& shape) const {
  MemoryPlan least = allowed_.front().plan;
  double least_bytes = std::numeric_limits<double>::infinity();
  for (const Planned& planned : allowed_) {
    const double bytes =
        EstimateStepMemory(planned.config, parameters_, shape, backend_)
            .total();
    if (bytes <= limit_) {
      return planned.plan;
    }
    if (bytes < least_bytes) {
      least = planned.plan;
      least_bytes = bytes;
    }
  }
  return least;
}

void MemoryPlanner::Apply(MemoryPlan plan, EtcModel* model) const {
  for (const Planned& planned : allowed_) {
    if (planned.plan == plan) {
      (*model)->set_grad_checkpointing_period(
          planned.config.model.grad_checkpointing_period);
      (*model)->set_layer_slices(SlicesOf(planned.config));
      ReturnFreedMemory(IsSliced(plan));
    }
  }
}

namespace {

// Bytes of the examples of all `records`, of the files that `field` names, at
// most about: a piece of some four bytes has 30 bytes of ids and pattern, in
// several windows where these overlap.
double CachedBytes(const ExampleSource& records, const RunFiles& files,
                   const std::string& field) {
  constexpr double kPerRecord = 2048;
  constexpr double kPerByte = 32;
  constexpr double kPerPackedByte = 8 * kPerByte;
  if (records.depends_on_key()) {
    return 0;
  }
  double bytes = kPerRecord * static_cast<double>(records.size());
  if (const auto found = files.find(field); found != files.end()) {
    for (const RunFile& file : found->second) {
      bytes += (absl::EndsWith(file.path, ".gz") ? kPerPackedByte : kPerByte) *
               static_cast<double>(file.digest.bytes);
    }
  }
  return bytes;
}

}  // namespace

RunConfig WithCacheOf(RunConfig config, const RunData& data,
                      const RunFiles& files) {
  // Without data.dev evaluations are on a part of the files of data.train.
  const double needed = CachedBytes(*data.train, files, "data.train") +
                        CachedBytes(*data.dev, files, "data.dev");
  int64_t& megabytes = config.data.cache_megabytes;
  megabytes = static_cast<int64_t>(
      std::min(static_cast<double>(megabytes), std::ceil(1e-6 * needed)));
  return config;
}

RunConfig WithPlanFor(const RunConfig& config, const TrainedCounts& parameters,
                      const StepShape& shape, StepBackend backend) {
  return WithMemoryPlan(config,
                        MemoryPlanner(config, parameters, backend).For(shape));
}

std::string PlanWarning(const RunConfig& config,
                        const TrainedCounts& parameters, const StepShape& shape,
                        StepBackend backend) {
  if (config.train.memory_plan != MemoryPlanName(MemoryPlan::kLayers)) {
    return "";
  }
  const auto bytes = [&](MemoryPlan plan) {
    return EstimateStepMemory(WithMemoryPlan(config, plan), parameters, shape,
                              backend)
        .total();
  };
  const double layers = bytes(MemoryPlan::kLayers);
  const double kept = bytes(MemoryPlan::kKept);
  return layers <= kept
             ? ""
             : absl::StrFormat(
                   "train.memory_plan \"layers\" takes %.1f GB for an update, "
                   "and \"kept\" %.1f GB: with train.score_storage \"%s\" "
                   "each layer keeps a copy of the scores from below",
                   1e-9 * layers, 1e-9 * kept, config.train.score_storage);
}

}  // namespace etc
