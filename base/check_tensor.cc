#include "base/check_tensor.h"

#include <c10/util/Exception.h>

namespace etc {

torch::Tensor AsBoolMask(const torch::Tensor& mask, const std::string& name) {
  const torch::ScalarType type = mask.scalar_type();
  if (type == torch::kBool) {
    return mask;
  }
  TORCH_CHECK(c10::isIntegralType(type, /*includeBool=*/false), name,
              " should be bool, or integers 0 and 1, true where attention is "
              "allowed, but is ",
              type,
              ". Of a mask that is added to scores, 0 where attention is "
              "allowed, give `mask == 0`");
  if (mask.numel() > 0) {
    const auto lowest = mask.min().item<int64_t>();
    const auto highest = mask.max().item<int64_t>();
    TORCH_CHECK(lowest >= 0 && highest <= 1, name,
                " should be bool, or integers 0 and 1, but has integers from ",
                lowest, " to ", highest);
  }
  return mask.to(torch::kBool);
}

void CheckIntegers(const torch::Tensor& ids, const std::string& name) {
  TORCH_CHECK(ids.defined(), name, " should be int64, but is undefined");
  TORCH_CHECK(
      ids.scalar_type() == torch::kInt64 || ids.scalar_type() == torch::kInt32,
      name, " should be int64, but is ", ids.scalar_type());
}

void CheckFloating(const torch::Tensor& values, const std::string& name) {
  TORCH_CHECK(values.is_floating_point(), name,
              " should be floating-point numbers, but is ",
              values.scalar_type());
}

void CheckSameDevice(const torch::Tensor& tensor, const std::string& name,
                     const torch::Tensor& other, const char* other_name) {
  TORCH_CHECK(tensor.device() == other.device(), name, " should be on ",
              other.device(), ", as ", other_name, ", but is on ",
              tensor.device());
}

}  // namespace etc
