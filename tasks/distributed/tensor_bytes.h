#ifndef ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
#define ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_

#include <torch/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace etc {

// Tensors as bytes, for processes of one program on machines of one kind:
// dtype, shape and values, all of them to the bit. Tensors are on the CPU.
std::string TensorsToBytes(const std::vector<torch::Tensor>& tensors);

// Restores them. Throws c10::Error for bytes that TensorsToBytes did not make.
std::vector<torch::Tensor> TensorsFromBytes(const std::string& bytes);

// Enough that the time of a message is that of its bytes.
inline constexpr size_t kBucketBytes = size_t{25} << 20;

// Tensors in the groups that are summed at a time, in their order: each ends
// with the tensor that brings it to `bucket_bytes`. A group is of one dtype, if
// the tensors are.
std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors,
    size_t bucket_bytes = kBucketBytes);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
