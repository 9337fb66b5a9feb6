#ifndef ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
#define ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_

#include <torch/types.h>

#include <string>
#include <vector>

namespace etc {

// Tensors as bytes, for processes of one program on machines of one kind:
// dtype, shape and values, all of them to the bit. Tensors are on the CPU.
std::string TensorsToBytes(const std::vector<torch::Tensor>& tensors);

// Restores them. Throws c10::Error for bytes that TensorsToBytes did not make.
std::vector<torch::Tensor> TensorsFromBytes(const std::string& bytes);

// Tensors in the groups that are summed at a time, in their order: some 25 MB,
// of one dtype.
std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
