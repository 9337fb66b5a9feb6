#ifndef ETC_TESTS_SUPPORT_STAND_IN_CUDA_H_
#define ETC_TESTS_SUPPORT_STAND_IN_CUDA_H_

#include <cstdint>

namespace etc {

// Linked into a test, stand_in_cuda.cc makes a LibTorch without CUDA find two
// CUDA devices, which compute on the CPU. They are stricter than they are fast:
//
//   - their memory cannot be read or written but by operations: a data_ptr that
//     is followed ends the process (SIGSEGV);
//   - an operation on tensors of two devices throws, unless the one on the CPU
//     is a scalar, or it is a copy;
//   - each has a random generator of its own;
//   - a process that was forked cannot compute on its parent's memory;
//   - backward passes run on threads of their own, as those of CUDA do.
//
// Differences from CUDA: every operation has ended when it returns, so nothing
// shows a missing wait; and every operation works that the CPU has a kernel
// for. Only for LibTorch 1.
inline constexpr int kStandInDevices = 2;

// Counts the waits of the CPU for a device, to read a number from it or a
// tensor.
int64_t StandInWaits();
// Counts the tensors that went through pinned memory.
int64_t StandInPinned();

// Limits the memory of devices as long as it lives; an allocation beyond it
// throws the same error as CUDA's.
class StandInMemoryLimit {
 public:
  explicit StandInMemoryLimit(int64_t bytes);
  ~StandInMemoryLimit();
  StandInMemoryLimit(const StandInMemoryLimit&) = delete;
  StandInMemoryLimit& operator=(const StandInMemoryLimit&) = delete;
};
// In use now, in bytes, in whole pages. The CUDA runtime's functions say it
// too (that is, cudaMemGetInfo; and a compute capability of 8).
int64_t StandInMemoryInUse();

// Lets the CPU at the memory of all devices as long as it lives: for kernels
// that are emulated. One at a time.
class StandInAccess {
 public:
  StandInAccess();
  ~StandInAccess();
  StandInAccess(const StandInAccess&) = delete;
  StandInAccess& operator=(const StandInAccess&) = delete;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_STAND_IN_CUDA_H_
