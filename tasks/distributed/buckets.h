#ifndef ETC_TASKS_DISTRIBUTED_BUCKETS_H_
#define ETC_TASKS_DISTRIBUTED_BUCKETS_H_

#include <torch/types.h>

#include <vector>

namespace etc {

// Tensors in the groups that are summed at a time, in their order: some 25 MB,
// of one dtype.
std::vector<std::vector<torch::Tensor>> BucketsOf(
    const std::vector<torch::Tensor>& tensors);

}  // namespace etc

#endif  // ETC_TASKS_DISTRIBUTED_BUCKETS_H_
