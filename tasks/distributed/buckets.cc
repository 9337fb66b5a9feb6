#include "tasks/distributed/buckets.h"

#include <cstddef>

namespace etc {

std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors) {
  constexpr size_t kBucketBytes = size_t{25} << 20;
  std::vector<std::vector<torch::Tensor>> buckets;
  size_t bytes = kBucketBytes;
  for (const torch::Tensor& tensor : tensors) {
    if (bytes >= kBucketBytes) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(tensor);
    bytes += tensor.nbytes();
  }
  return buckets;
}

}  // namespace etc
