#ifndef ETC_BASE_TORCH_VERSION_H_
#define ETC_BASE_TORCH_VERSION_H_

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <cstddef>
#include <cstring>

// c10::getDeviceAllocator, which counts a device's tensors and gives back what
// it keeps, without CUDA's headers.
#define ETC_HAS_DEVICE_ALLOCATOR \
  (TORCH_VERSION_MAJOR > 2 ||    \
   (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9))
#if ETC_HAS_DEVICE_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace etc {

// Differences between the versions of LibTorch that the code compiles with,
// 1.13 and 2.x.

// A c10::Allocator on the CPU; subclasses implement Allocate(). In some
// versions allocate() is const, and only in some is there a copy_data(): a
// function here that overrides nothing is not called either.
class BlockAllocator : public c10::Allocator {
 public:
  // NOLINTBEGIN(modernize-use-override)
  c10::DataPtr allocate(size_t bytes) { return Allocate(bytes); }
  c10::DataPtr allocate(size_t bytes) const { return Allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
  // NOLINTEND(modernize-use-override)

 protected:
  virtual c10::DataPtr Allocate(size_t bytes) const = 0;
};

}  // namespace etc

#endif  // ETC_BASE_TORCH_VERSION_H_
