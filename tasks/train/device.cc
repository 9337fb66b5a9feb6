#include "tasks/train/device.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <torch/cuda.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {

CudaDevices FindCudaDevices() {
  return {.built = at::Context::hasCUDART(),
          .count = static_cast<int64_t>(torch::cuda::device_count())};
}

absl::StatusOr<RunDevice> DeviceOfRun(const FinetuneConfig& config,
                                      const CudaDevices& found,
                                      const std::string& field) {
  ETC_ASSIGN_OR_RETURN(const ChosenDevice chosen,
                       ChooseDevice(field, config.train.device, found));
  RunDevice run = {.message = absl::StrCat("device: ", chosen.name(), " (",
                                           chosen.reason, ")")};
  if (!chosen.cuda.has_value()) {
    return run;
  }
  if (config.train.precision == "bf16") {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.precision is \"bf16\", which works on the CPU only, but the "
        "device is ",
        chosen.name(), " (", chosen.reason,
        "): set train.precision to \"fp32\", or ", field, " to \"cpu\""));
  }
  run.device =
      torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*chosen.cuda));
  return run;
}

torch::Device DeviceOf(const NamedTensors& parameters) {
  if (parameters.empty()) {
    return torch::kCPU;
  }
  const auto& [first_name, first] = *parameters.begin();
  for (const auto& [name, parameter] : parameters) {
    TORCH_CHECK(parameter.device() == first.device(), "parameter ", first_name,
                " is on ", first.device(), ", but ", name, " on ",
                parameter.device());
  }
  return first.device();
}

}  // namespace etc
