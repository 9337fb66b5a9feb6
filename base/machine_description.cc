#include "base/machine_description.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <hwy/targets.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/amx.h"
#include "base/bfloat16.h"
#include "base/counted.h"
#include "base/onednn_loader.h"

namespace etc {
namespace {

// A function of the program or of a library it has opened, or null.
template <typename Function>
Function* Find(const char* name, void* library = RTLD_DEFAULT) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::string DescribeOnednn() {
  const auto& onednn = LoadedOnednn();
  if (!onednn.ok()) {
    return std::string(onednn.status().message());
  }
  return absl::StrCat("oneDNN ", (*onednn)->library_version(), " for ",
                      absl::StripPrefix((*onednn)->instructions(), "cpu_isa_"),
                      ", ", (*onednn)->library_file());
}

std::string DescribeBfloat16() {
  if (kernels::HasAmx()) {
    return "products by AMX";
  }
  switch (kernels::Bfloat16ProductsOfThisCpu()) {
    case kernels::Bfloat16Products::kNone:
      return "no products";
    case kernels::Bfloat16Products::kSlow:
      return "products by oneDNN, emulated";
    case kernels::Bfloat16Products::kFast:
      return "products by oneDNN";
  }
  return "unknown";
}

CpuVectors VectorsOfThisCpu() {
  const auto has = [](int64_t target) {
    return (hwy::SupportedTargets() & target) != 0;
  };
  return has(HWY_AVX3)   ? CpuVectors::kAvx512
         : has(HWY_AVX2) ? CpuVectors::kAvx2
                         : CpuVectors::kNone;
}

// Asks OpenBLAS or MKL to describe itself; otherwise names the library file
// that has the matrix product.
std::string DescribeBlas() {
  if (auto* const config = Find<const char*()>("openblas_get_config")) {
    return DescribeOpenBlas(config(), VectorsOfThisCpu());
  }
  if (auto* const version = Find<void(char*, int)>("MKL_Get_Version_String")) {
    char text[200] = {};
    version(text, sizeof(text) - 1);
    return absl::StrCat("MKL: ", text);
  }
  void* const product = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info library = {};
  if (product == nullptr || dladdr(product, &library) == 0) {
    return "unknown";
  }
  std::error_code ignored;
  const auto file = std::filesystem::canonical(library.dli_fname, ignored);
  return file.empty() ? library.dli_fname : file.string();
}

// Asks the driver, whose functions have no versions: LibTorch reveals device
// names only to code with CUDA's headers.
std::string CudaDeviceName(int index) {
  constexpr int kSuccess = 0;
  // Already loaded since LibTorch counted the devices.
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  auto* const get = Find<int(int*, int)>("cuDeviceGet", driver);
  auto* const name = Find<int(char*, int, int)>("cuDeviceGetName", driver);
  int device = 0;
  char text[256] = {};
  if (get == nullptr || name == nullptr || get(&device, index) != kSuccess ||
      name(text, sizeof(text) - 1, device) != kSuccess) {
    return "CUDA device of unknown name";
  }
  return text;
}

// Asks NVIDIA's management library, which comes with the driver.
std::string DriverVersion() {
  constexpr int kSuccess = 0;
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
  auto* const begin = Find<int()>("nvmlInit_v2", library);
  auto* const end = Find<int()>("nvmlShutdown", library);
  auto* const version =
      Find<int(char*, unsigned)>("nvmlSystemGetDriverVersion", library);
  char text[96] = {};
  if (library == nullptr || begin == nullptr || end == nullptr ||
      version == nullptr || begin() != kSuccess) {
    return "of unknown version";
  }
  const int result = version(text, sizeof(text) - 1);
  end();
  return result == kSuccess ? text : "of unknown version";
}

std::string DescribeDevices() {
  const int count = static_cast<int>(torch::cuda::device_count());
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(absl::StrCat("cuda:", i, " ", CudaDeviceName(i)));
  }
  return devices.empty() ? "no CUDA device"
                         : absl::StrCat(absl::StrJoin(devices, ", "),
                                        ", driver ", DriverVersion());
}

}  // namespace

std::string DescribeOpenBlas(const std::string& config, CpuVectors vectors) {
  // The oldest CPU of 64 bits, whose code all others can run.
  if (vectors == CpuVectors::kNone || !absl::StrContains(config, " Prescott")) {
    return config;
  }
  return absl::StrCat(config, ": does not know this CPU and ",
                      kComputesWithoutAvx, "; set OPENBLAS_CORETYPE=",
                      vectors == CpuVectors::kAvx512 ? "SkylakeX" : "Haswell");
}

std::vector<MachineFact> DescribeMachine() {
  return {
      {"LibTorch", TORCH_VERSION},
      {"linear layers", DescribeOnednn()},
      {"bfloat16", DescribeBfloat16()},
      {"BLAS", DescribeBlas()},
      {"kernels", hwy::TargetName(hwy::SupportedAndGeneratedTargets().front())},
      {"devices", DescribeDevices()},
      {"threads", absl::StrCat(at::get_num_threads(), " of ",
                               Counted(static_cast<int64_t>(
                                           std::thread::hardware_concurrency()),
                                       "core"))},
  };
}

}  // namespace etc
