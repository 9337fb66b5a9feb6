#include "tasks/train/device.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/cuda.h>

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "attention/sparse_attention.h"
#include "base/amx.h"
#include "base/bfloat16.h"
#include "base/device_time.h"
#include "base/matrix_product.h"
#include "base/status_macros.h"
#include "tasks/train/memory_plan.h"

namespace etc {
namespace {

// A function of the CUDA runtime that LibTorch has loaded; null if it has not.
// Its headers come with the toolkit, which nothing else here needs.
template <typename Function>
Function* OfCudaRuntime(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
constexpr int kCudaSuccess = 0;

double SecondsOfProduct(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr int64_t kTimes = 3;
  const auto multiply = [&] { MatrixProduct(a, b); };
  multiply();
  return MedianSecondsOn(torch::kCPU, kTimes, multiply);
}

// The seconds of a linear layer's product in bfloat16, rounded factors given,
// over those in float32.
double MeasuredBfloat16Time() {
  constexpr int64_t kRows = 1024;
  constexpr int64_t kFeatures = 768;
  static const double time = [] {
    const torch::Tensor a = torch::ones({kRows, kFeatures});
    const torch::Tensor b = torch::ones({kFeatures, kFeatures});
    return SecondsOfProduct(ToBfloat16(a), ToBfloat16(b)) /
           SecondsOfProduct(a, b);
  }();
  return time;
}

// In bfloat16 the devices of compute capability 8.0 have products.
constexpr int64_t kBfloat16Major = 8;

std::vector<int64_t> ComputeCapabilityMajors(int64_t devices) {
  constexpr int kComputeCapabilityMajor = 75;  // of cudaDeviceAttr
  auto* const get =
      OfCudaRuntime<int(int*, int, int)>("cudaDeviceGetAttribute");
  std::vector<int64_t> majors;
  for (int64_t i = 0; i < devices; ++i) {
    int major = 0;
    if (get == nullptr || get(&major, kComputeCapabilityMajor,
                              static_cast<int>(i)) != kCudaSuccess) {
      return {};
    }
    majors.push_back(major);
  }
  return majors;
}

}  // namespace

CudaDevices FindCudaDevices(int64_t local_rank) {
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  return {.built = at::Context::hasCUDART(),
          .count = count,
          .compute_capability_majors = ComputeCapabilityMajors(count),
          .local_rank = local_rank};
}

std::optional<DeviceMemory> MemoryOf(const torch::Device& device) {
  auto* const get = OfCudaRuntime<int(size_t*, size_t*)>("cudaMemGetInfo");
  if (!device.is_cuda() || get == nullptr) {
    return std::nullopt;
  }
  const CurrentDevice current(device);
  size_t free = 0;
  size_t total = 0;
  if (get(&free, &total) != kCudaSuccess) {
    return std::nullopt;
  }
  return DeviceMemory{.free = static_cast<int64_t>(free),
                      .total = static_cast<int64_t>(total)};
}

std::string PrecisionWarning(const torch::Device& device,
                             const std::string& precision) {
  if (!device.is_cpu() || precision != "bf16") {
    return "";
  }
  const kernels::Bfloat16Products products =
      kernels::Bfloat16ProductsOfThisCpu();
  return Bfloat16Warning(
      products,
      products == kernels::Bfloat16Products::kFast && !kernels::HasAmx()
          ? MeasuredBfloat16Time()
          : 0);
}

std::string Bfloat16Warning(kernels::Bfloat16Products products,
                            double bfloat16_time) {
  // Below it the precisions are as fast as each other, on a busy machine.
  constexpr double kSlower = 1.2;
  switch (products) {
    case kernels::Bfloat16Products::kFast:
      return bfloat16_time < kSlower
                 ? ""
                 : absl::StrFormat(
                       "train.precision is bf16, which is slower than fp32 on "
                       "this CPU: a product takes %.1f times as long",
                       bfloat16_time);
    case kernels::Bfloat16Products::kSlow:
      return "train.precision is bf16, which is slower than fp32 on this CPU: "
             "it has neither AVX512-BF16 nor AMX";
    case kernels::Bfloat16Products::kNone:
      return "train.precision is bf16, but on this CPU fp32 is used: oneDNN "
             "has no AVX-512 here";
  }
  return "";
}

std::string AttentionOn(const torch::Device& device, int64_t head_size) {
  const std::string reason = UnfusedReason(device, head_size);
  return reason.empty()
             ? "attention by fused kernels"
             : absl::StrCat("attention by tensor operations: ", reason);
}

DeviceSettings DeviceSettingsOf(const RunConfig& config) {
  return {.device = config.train.device,
          .precision = config.train.precision,
          .head_size = config.encoder_decoder.has_value()
                           ? config.encoder_decoder->head_size()
                           : config.model.head_size()};
}

absl::StatusOr<RunDevice> DeviceOfRun(const DeviceSettings& settings,
                                      const CudaDevices& found,
                                      const std::string& field) {
  ETC_ASSIGN_OR_RETURN(const ChosenDevice chosen,
                       ChooseDevice(field, settings.device, found));
  RunDevice run = {.message = absl::StrCat("device: ", chosen.name(), " (",
                                           chosen.reason, ")")};
  if (!chosen.cuda.has_value()) {
    run.warning = PrecisionWarning(run.device, settings.precision);
    return run;
  }
  const auto index = static_cast<size_t>(*chosen.cuda);
  const std::vector<int64_t>& majors = found.compute_capability_majors;
  if (settings.precision == "bf16" && index < majors.size() &&
      majors[index] < kBfloat16Major) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.precision is \"bf16\", which takes compute capability ",
        kBfloat16Major, ".0, but ", chosen.name(), " (", chosen.reason,
        ") has ", majors[index], ".x: set train.precision to \"fp32\", or ",
        field, " to another device"));
  }
  run.device =
      torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*chosen.cuda));
  absl::StrAppend(&run.message, "; ",
                  AttentionOn(run.device, settings.head_size));
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

LinearPrecision PrecisionOn(const torch::Device& device,
                            const RunConfig& config) {
  return config.train.precision == "bf16" &&
                 (!device.is_cpu() || kernels::Bfloat16ProductsOfThisCpu() !=
                                          kernels::Bfloat16Products::kNone)
             ? LinearPrecision::kBfloat16
             : LinearPrecision::kFloat32;
}

CudaDevices CudaDevicesOf(const ProcessGroup* group) {
  return FindCudaDevices(group == nullptr ? 0 : group->local_rank());
}

absl::StatusOr<RunDevice> JoinDevice(const RunConfig& config,
                                     ProcessGroup* group) {
  ETC_ASSIGN_OR_RETURN(RunDevice device, DeviceOfRun(DeviceSettingsOf(config),
                                                     CudaDevicesOf(group)));
  ETC_RETURN_IF_ERROR(CheckMemoryPlan(config, device.device.is_cpu()));
  if (group == nullptr || config.train.backend != "nccl") {
    return device;
  }
  const std::string asked = "train.backend is \"nccl\", but ";
  if (!device.device.is_cuda()) {
    return absl::FailedPreconditionError(
        absl::StrCat(asked, "that sums on CUDA devices, and ", device.message));
  }
  const absl::Status joined = group->UseNccl();
  if (!joined.ok()) {
    return absl::Status(joined.code(), absl::StrCat(asked, joined.message()));
  }
  return device;
}

}  // namespace etc
