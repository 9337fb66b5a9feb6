#ifndef ETC_BASE_CHECK_TENSOR_H_
#define ETC_BASE_CHECK_TENSOR_H_

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace etc {

// Checks of tensors that callers give. `name` begins the message. All throw
// c10::Error.

// `mask` as bool: itself, or of integers that are 0 and 1. Refuses other
// integers and floating masks, of which the usual ones are added to scores (0
// where attention is allowed, else -inf): read as bool they say the reverse.
torch::Tensor AsBoolMask(const torch::Tensor& mask, const std::string& name);

// Integers: int64, or int32 where LibTorch takes them.
void CheckIntegers(const torch::Tensor& ids, const std::string& name);

// Real floating-point numbers.
void CheckFloating(const torch::Tensor& values, const std::string& name);

// Indices of rows, [R] int64 or int32 in [0, count). Does not read those on
// other devices than the CPU.
void CheckRows(const torch::Tensor& rows, int64_t count,
               const std::string& name);

// Throws unless `tensor` is on the device of `other`, called `other_name`.
void CheckSameDevice(const torch::Tensor& tensor, const std::string& name,
                     const torch::Tensor& other, const char* other_name);

// Throws in a backward pass that is to be differentiated itself, for a function
// whose gradients have none. `what` has that function, and `instead` is used
// for gradients of gradients; empty: nothing is.
void RefuseSecondGradients(const std::string& what,
                           const std::string& instead = "");

}  // namespace etc

#endif  // ETC_BASE_CHECK_TENSOR_H_
