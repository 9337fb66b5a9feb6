#include "base/out_of_memory.h"

#include <new>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace etc {

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return true;
  }
  // This layer is without LibTorch. Its c10::Error has no type of its own for
  // the CPU's allocator, which says "DefaultCPUAllocator: can't allocate
  // memory"; that of a GPU says "CUDA out of memory".
  const absl::string_view message = error.what();
  return absl::StrContains(message, "can't allocate memory") ||
         absl::StrContains(message, "not enough memory") ||
         absl::StrContains(message, "out of memory");
}

}  // namespace etc
