#ifndef ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
#define ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_

#include <torch/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace etc {

// Tensors as the bytes of torch::save: dtype, shape and values to the bit.
// Tensors are on the CPU.
std::string TensorsToBytes(const std::vector<torch::Tensor>& tensors);

// Restores them. Throws c10::Error for bytes that TensorsToBytes did not make.
std::vector<torch::Tensor> TensorsFromBytes(const std::string& bytes);

// Bucket size from which bandwidth, not latency, decides the time of an
// all-reduce.
inline constexpr size_t kBucketBytes = size_t{25} << 20;

// Splits tensors, in order, into buckets that each end with the tensor that
// reaches `bucket_bytes`. A bucket is of one dtype, if the tensors are.
std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors,
    size_t bucket_bytes = kBucketBytes);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_TENSOR_BYTES_H_
