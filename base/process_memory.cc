#include "base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>  // says __GLIBC__
#include <fstream>

// The sanitizers have a malloc of their own, which finds more mistakes where
// blocks begin and end where tensors do.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ETC_TUNES_MALLOC 1
#endif

#ifdef ETC_TUNES_MALLOC
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/torch_version.h"
#endif

namespace etc {

#ifdef ETC_TUNES_MALLOC
namespace {

// LibTorch's allocator calls posix_memalign, which in glibc before 2.38 asks
// for more than it then takes, so that no block fits into the hole that one of
// the same size has left. Here the room for the alignment stays part of the
// block, whose address is stored before the address given away, which therefore
// suffices to free it: raw_allocate(), by which LibTorch gives memory to
// oneDNN, has nothing else.
class ReusingAllocator final : public BlockAllocator {
 public:
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }

 protected:
  c10::DataPtr Allocate(size_t bytes) const override {
    constexpr uintptr_t kAlignment = 64;
    static_assert(alignof(max_align_t) >= sizeof(void*));
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) {
      return {nullptr, cpu};
    }
    void* const block =
        bytes <= SIZE_MAX - kAlignment ? malloc(bytes + kAlignment) : nullptr;
    TORCH_CHECK(
        block != nullptr,
        "DefaultCPUAllocator: not enough memory: you tried to allocate ", bytes,
        " bytes");
    // At least one pointer behind the block's begin: malloc aligns for those.
    const uintptr_t begin =
        (reinterpret_cast<uintptr_t>(block) / kAlignment + 1) * kAlignment;
    auto* const given = reinterpret_cast<void**>(begin);
    given[-1] = block;
    return {given, given, &Free, cpu};
  }

 private:
  static void Free(void* given) {
    if (given != nullptr) {
      free(static_cast<void**>(given)[-1]);
    }
  }
};

std::atomic<bool> keeps_freed_memory = false;

}  // namespace
#endif

int64_t PageFaults() {
  struct rusage usage = {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

int64_t ResidentBytesAtStart() {
  static const int64_t bytes = [] {
    // Pages of the whole program, then those in memory (proc(5)).
    std::ifstream counts("/proc/self/statm");
    int64_t all = 0;
    int64_t resident = 0;
    return counts >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
  }();
  return bytes;
}

void KeepFreedMemory() {
  ResidentBytesAtStart();
#ifdef ETC_TUNES_MALLOC
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
  // Never destroyed: tensors may outlive static objects.
  static auto* const allocator = new ReusingAllocator();
  c10::SetCPUAllocator(allocator);
  keeps_freed_memory = true;
#endif
}

void ReturnFreedMemory(bool returns) {
#ifdef ETC_TUNES_MALLOC
  constexpr int kBlocks = 65536;  // glibc's default
  constexpr int kLargest = 32 << 20;
  static std::atomic<bool> returns_now = false;
  if (!keeps_freed_memory || returns_now.exchange(returns) == returns) {
    return;
  }
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_MMAP_MAX, returns ? kBlocks : 0);
  if (returns) {
    malloc_trim(0);
  }
#else
  static_cast<void>(returns);
#endif
}

}  // namespace etc
