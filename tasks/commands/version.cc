#include "tasks/commands/version.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <hwy/targets.h>
#include <torch/version.h>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/counted.h"

namespace etc {
namespace {

// What OpenBLAS says of itself, or else the file of the library that has the
// matrix product.
std::string BlasDescription() {
  if (void* config = dlsym(RTLD_DEFAULT, "openblas_get_config")) {
    return reinterpret_cast<const char* (*)()>(config)();
  }
  void* product = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info library = {};
  if (product == nullptr || dladdr(product, &library) == 0) {
    return "unknown";
  }
  std::error_code ignored;
  const auto file = std::filesystem::canonical(library.dli_fname, ignored);
  return file.empty() ? library.dli_fname : file.string();
}

}  // namespace

std::string VersionText() {
  return absl::StrCat(
      "realetc ", ETC_VERSION, "\n", "LibTorch ", TORCH_VERSION, "\n",
      "kernels for ",
      hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()), "\n",
      "BLAS: ", BlasDescription(), "\n",
      Counted(at::get_num_threads(), "thread"), " of ",
      Counted(static_cast<int64_t>(std::thread::hardware_concurrency()),
              "core"));
}

}  // namespace etc
