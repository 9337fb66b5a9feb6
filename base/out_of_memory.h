#ifndef ETC_BASE_OUT_OF_MEMORY_H_
#define ETC_BASE_OUT_OF_MEMORY_H_

#include <exception>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace etc {

// Whether `error` says that memory could not be had: std::bad_alloc, a length
// that no container can have, or what LibTorch's allocators throw.
bool IsOutOfMemory(const std::exception& error);

// Runs `action`, which returns a Status or StatusOr, and turns running out of
// memory in it into
//
//   kResourceExhausted  "out of memory while <doing>"
//
// `doing` returns a string, and is called only then, when what `action` held is
// free again. Other exceptions pass.
template <typename Doing, typename Action>
std::invoke_result_t<Action> NamingOutOfMemory(const Doing& doing,
                                               const Action& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error)) {
      throw;
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("out of memory while ", doing()));
}

}  // namespace etc

#endif  // ETC_BASE_OUT_OF_MEMORY_H_
