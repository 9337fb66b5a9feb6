#ifndef ETC_TASKS_TRAIN_TRAINED_COUNTS_H_
#define ETC_TASKS_TRAIN_TRAINED_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "etc/config.h"
#include "etc/weights/checkpoint.h"
#include "tasks/config/config.h"

namespace etc {

// Bytes that an optimizer (tasks/train/optimizer.h) keeps for each element of a
// parameter: all types have two float32 moments.
inline constexpr int64_t kOptimizerBytesPerElement = 2 * sizeof(float);

// The elements of parameters, all float32, that one process of a run has in
// memory.
struct TrainedCounts {
  // Implicit: all are trained, and the optimizer's state is not sharded.
  TrainedCounts(int64_t parameters)
      : all(parameters), trained(parameters), updated(parameters) {}

  int64_t all = 0;
  // Elements that have a gradient: all but train.frozen.
  int64_t trained = 0;
  // Elements whose optimizer state is in this process: its share, on average,
  // with train.shard_optimizer.
  int64_t updated = 0;

  double weight_bytes() const {
    return sizeof(float) * static_cast<double>(all);
  }
  double gradient_bytes() const {
    return sizeof(float) * static_cast<double>(trained);
  }
  double optimizer_bytes() const {
    return kOptimizerBytesPerElement * static_cast<double>(updated);
  }
  // Bytes of a checkpoint, which has the optimizer's state of all processes.
  double checkpoint_bytes() const {
    return weight_bytes() +
           kOptimizerBytesPerElement * static_cast<double>(trained);
  }
};

// Numbers of elements by the names of parameters.
using ParameterSizes = std::map<std::string, int64_t>;
ParameterSizes SizesOf(const NamedTensors& parameters);
// Returns the sizes of the encoder of a TaskModel.
ParameterSizes EncoderSizes(const EtcConfig& config);

// The counts of a process, one of `processes`, in a run of these parameters.
TrainedCounts CountTrained(const TrainConfig& config,
                           const ParameterSizes& parameters,
                           int64_t processes = 1);

// The same of the model of a configuration without the head of its task. Of an
// encoder-decoder with train.frozen no parameter counts as trained, because the
// names are not known.
TrainedCounts CountWithoutHead(const RunConfig& config, int64_t processes = 1);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_TRAINED_COUNTS_H_
