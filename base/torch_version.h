#ifndef ETC_BASE_TORCH_VERSION_H_
#define ETC_BASE_TORCH_VERSION_H_

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <cstddef>

namespace etc {

// What differs between the versions of LibTorch that the code compiles with,
// 1.13 and 2.x.

// A c10::Allocator of blocks that the CPU copies: Allocate() is what is its
// own.
class BlockAllocator : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR < 2
  c10::DataPtr allocate(size_t bytes) const final { return Allocate(bytes); }
#else
  c10::DataPtr allocate(size_t bytes) final { return Allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const final {
    default_copy_data(to, from, bytes);
  }
#endif

 protected:
  virtual c10::DataPtr Allocate(size_t bytes) const = 0;
};

}  // namespace etc

#endif  // ETC_BASE_TORCH_VERSION_H_
