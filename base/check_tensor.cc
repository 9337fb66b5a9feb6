#include "base/check_tensor.h"

#include <c10/core/GradMode.h>
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
  TORCH_CHECK(ids.defined(), name,
              " should be int64 or int32, but is undefined");
  TORCH_CHECK(
      ids.scalar_type() == torch::kInt64 || ids.scalar_type() == torch::kInt32,
      name, " should be int64 or int32, but is ", ids.scalar_type());
}

void CheckFloating(const torch::Tensor& values, const std::string& name) {
  TORCH_CHECK(values.is_floating_point(), name,
              " should be floating-point numbers, but is ",
              values.scalar_type());
}

void CheckRows(const torch::Tensor& rows, int64_t count,
               const std::string& name) {
  TORCH_CHECK(rows.dim() == 1 && (rows.scalar_type() == torch::kInt64 ||
                                  rows.scalar_type() == torch::kInt32),
              name, " should be [R] int64 or int32, but are ", rows.sizes(),
              " ", rows.scalar_type());
  if (rows.device().is_cpu() && rows.numel() > 0) {
    const auto first = rows.min().item<int64_t>();
    const auto last = rows.max().item<int64_t>();
    TORCH_CHECK(first >= 0 && last < count, name, " should be in [0, ", count,
                "), but are from ", first, " to ", last);
  }
}

void CheckSameDevice(const torch::Tensor& tensor, const std::string& name,
                     const torch::Tensor& other, const char* other_name) {
  TORCH_CHECK(tensor.device() == other.device(), name, " should be on ",
              other.device(), ", as ", other_name, ", but is on ",
              tensor.device());
}

void RefuseSecondGradients(const std::string& what,
                           const std::string& instead) {
  TORCH_CHECK(!c10::GradMode::is_enabled(),
              "gradients of gradients do not pass ", what,
              instead.empty() ? "" : "; use " + instead + " for them");
}

}  // namespace etc
