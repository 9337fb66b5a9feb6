#include "tasks/distributed/nccl_sums.h"

#ifdef ETC_NCCL
#include <torch/cuda.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace etc {

#ifdef ETC_NCCL
namespace {

class C10dNcclSums final : public NcclSums {
 public:
  C10dNcclSums(const ProcessPlace& place, c10::intrusive_ptr<c10d::Store> store,
               std::chrono::milliseconds timeout)
      : timeout_(timeout) {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    // c10d's watchdog ends the process after this time. A waiting rank reaches
    // its own timeout before, and names the missing one.
    options->timeout = 2 * timeout;
    nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        std::move(store), static_cast<int>(place.rank),
        static_cast<int>(place.world_size), std::move(options));
  }

  // Operations of a process that is gone would never end.
  ~C10dNcclSums() override { nccl_->abort(); }

  std::function<void()> Begin(const torch::Tensor& tensor) override {
    std::vector<torch::Tensor> tensors = {tensor};
    return [work = nccl_->allreduce(tensors), timeout = timeout_] {
      work->wait(timeout);
    };
  }

 private:
  const std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclSums>> MakeNcclSums(
    const ProcessPlace& place, c10::intrusive_ptr<c10d::Store> store,
    std::chrono::milliseconds timeout) {
  if (torch::cuda::device_count() == 0) {
    return absl::FailedPreconditionError(
        "NCCL sums on CUDA devices, and LibTorch finds none");
  }
  return std::make_unique<C10dNcclSums>(place, std::move(store), timeout);
}
#else
absl::StatusOr<std::unique_ptr<NcclSums>> MakeNcclSums(
    const ProcessPlace& /*place*/, c10::intrusive_ptr<c10d::Store> /*store*/,
    std::chrono::milliseconds /*timeout*/) {
  return absl::FailedPreconditionError(
      "this program was built without NCCL: configure the build with "
      "-DETC_NCCL=ON and a LibTorch for CUDA");
}
#endif

}  // namespace etc
