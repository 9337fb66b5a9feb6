#include "tasks/train/precision.h"

#include "base/bfloat16.h"

namespace etc {

LinearPrecision PrecisionOn(const torch::Device& device,
                            const FinetuneConfig& config) {
  return config.train.precision == "bf16" &&
                 (!device.is_cpu() || kernels::Bfloat16ProductsOfThisCpu() !=
                                          kernels::Bfloat16Products::kNone)
             ? LinearPrecision::kBfloat16
             : LinearPrecision::kFloat32;
}

}  // namespace etc
