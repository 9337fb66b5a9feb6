#include "tasks/train/trained_counts.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "etc/weights/encoder_parameters.h"
#include "tasks/train/optimizer.h"
#include "tasks/train/task_model.h"

namespace etc {
namespace {

bool IsFrozen(const TrainConfig& config, const std::string& name) {
  return std::any_of(config.frozen.begin(), config.frozen.end(),
                     [&](const std::string& pattern) {
                       return MatchesParameter(pattern, name);
                     });
}

int64_t ShareOf(const TrainConfig& config, int64_t trained, int64_t processes) {
  return config.shard_optimizer ? (trained + processes - 1) / processes
                                : trained;
}

}  // namespace

ParameterSizes SizesOf(const NamedTensors& parameters) {
  ParameterSizes sizes;
  for (const auto& [name, parameter] : parameters) {
    sizes[name] = parameter.numel();
  }
  return sizes;
}

ParameterSizes EncoderSizes(const EtcConfig& config) {
  ParameterSizes sizes;
  for (const EncoderParameter& parameter : EncoderParameters(config)) {
    sizes[kEncoderPrefix + parameter.name] =
        std::accumulate(parameter.shape.begin(), parameter.shape.end(),
                        int64_t{1}, std::multiplies<>());
  }
  return sizes;
}

TrainedCounts CountTrained(const TrainConfig& config,
                           const ParameterSizes& parameters,
                           int64_t processes) {
  TrainedCounts counts = 0;
  for (const auto& [name, size] : parameters) {
    counts.all += size;
    counts.trained += IsFrozen(config, name) ? 0 : size;
  }
  counts.updated = ShareOf(config, counts.trained, processes);
  return counts;
}

TrainedCounts CountWithoutHead(const RunConfig& config, int64_t processes) {
  if (config.encoder_decoder.has_value()) {
    TrainedCounts counts = CountParameters(*config.encoder_decoder);
    counts.trained = config.train.frozen.empty() ? counts.all : 0;
    counts.updated = ShareOf(config.train, counts.trained, processes);
    return counts;
  }
  return CountTrained(config.train, EncoderSizes(config.model), processes);
}

}  // namespace etc
