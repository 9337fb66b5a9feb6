#include "base/onednn_loader.h"

#include "base/module_loader.h"

namespace etc {
namespace {

constexpr ModuleFile kModule = {
    .user = "A product of matrices",
    .name = "realetc_onednn.so",
    .function = kOnednnModuleFunction,
    .version = kOnednnModuleVersion,
    // A guard variable of std::call_once in gemm_info_t<float, float,
    // float>::jit_init(): of two libraries that define it, one would never
    // compile its products.
    .clashing_symbol =
        "_ZZNSt9once_flag18_Prepare_executionC4IZSt9call_onceIZN4dnnl4impl3cp"
        "u3x6411gemm_info_tIfffE8jit_initEvEUlvE_JEEvRS_OT_DpOT0_EUlvE_EERSB_"
        "ENUlvE_4_FUNEv",
    .library = "libdnnl.so",
};

}  // namespace

const absl::StatusOr<const OnednnModule*>& LoadedOnednn() {
  static const absl::StatusOr<const OnednnModule*> module =
      OpenModule<OnednnModule>(kModule);
  return module;
}

}  // namespace etc
