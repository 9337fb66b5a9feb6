#include "tasks/distributed/tensor_bytes.h"

#include <torch/serialize.h>
#include <torch/utils.h>

#include <sstream>

namespace etc {

std::string TensorsToBytes(const std::vector<torch::Tensor>& tensors) {
  std::ostringstream bytes;
  torch::save(tensors, bytes);
  return bytes.str();
}

std::vector<torch::Tensor> TensorsFromBytes(const std::string& bytes) {
  std::vector<torch::Tensor> tensors;
  std::istringstream stream(bytes);
  torch::load(tensors, stream);
  return tensors;
}

std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors, size_t bucket_bytes) {
  std::vector<std::vector<torch::Tensor>> buckets;
  size_t bytes = bucket_bytes;
  for (const torch::Tensor& tensor : tensors) {
    if (bytes >= bucket_bytes) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(tensor);
    bytes += tensor.nbytes();
  }
  return buckets;
}

}  // namespace etc
