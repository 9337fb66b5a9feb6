#ifndef ETC_ATTENTION_BACKENDS_CUDA_DEVICE_RUNS_H_
#define ETC_ATTENTION_BACKENDS_CUDA_DEVICE_RUNS_H_

#include <torch/types.h>

#include <memory>
#include <vector>

#include "attention/key_runs.h"

namespace etc {

// The runs of a pattern on a device, as the CUDA kernels read them
// (kernels/arguments.h): int32, one dimension. Copied once for each pattern and
// device: layers and passes share a pattern, and the copy is kept until that is
// gone and another one is asked for. Thread-safe if all calls for a device use
// one CUDA stream: the copy is ready on the stream of the first call. Throws
// c10::Error if there are 2^31 integers or more.
torch::Tensor RunsOnDevice(
    const std::shared_ptr<const std::vector<SoftmaxRuns>>& runs,
    const torch::Device& device);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CUDA_DEVICE_RUNS_H_
