#ifndef ETC_TESTS_SUPPORT_THREAD_COUNTS_H_
#define ETC_TESTS_SUPPORT_THREAD_COUNTS_H_

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <vector>

namespace etc {

// Expects the tensors of compute() to be the same bits on 2 and 3 threads as on
// one. Afterwards LibTorch has as many threads as before.
inline void ExpectSameOnAnyNumberOfThreads(
    const std::function<std::vector<torch::Tensor>()>& compute) {
  const int threads_before = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<torch::Tensor> first = compute();
  EXPECT_FALSE(first.empty());
  for (const int threads : {2, 3}) {
    at::set_num_threads(threads);
    const std::vector<torch::Tensor> again = compute();
    EXPECT_EQ(again.size(), first.size());
    for (size_t i = 0; i < first.size() && i < again.size(); ++i) {
      EXPECT_TRUE(again[i].equal(first[i]))
          << "tensor " << i << " on " << threads << " threads";
    }
  }
  at::set_num_threads(threads_before);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_THREAD_COUNTS_H_
