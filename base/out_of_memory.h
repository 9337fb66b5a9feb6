#ifndef ETC_BASE_OUT_OF_MEMORY_H_
#define ETC_BASE_OUT_OF_MEMORY_H_

#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace etc {

// The prefix of every error message here.
inline constexpr char kOutOfMemory[] = "out of memory while ";

// A limit of ours that a text or a record reaches, other than the memory: of
// the steps of a regular expression, say. The message names it.
class LimitReached : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns true if `error` means that memory ran out: std::bad_alloc, a length
// that no container can have, or an error of LibTorch's allocators for the CPU
// and for CUDA devices.
bool IsOutOfMemory(const std::exception& error);

// Returns true if NamingOutOfMemory made `status`; a full disk has the same
// code.
bool IsOutOfMemory(const absl::Status& status);

// The size of the failed request, where LibTorch's allocators say it: "4000.0
// GB", "37.5 MB", "2.00 GiB"; else, and below 0.1 MB, empty.
std::string MemoryAskedFor(const std::exception& error);

// Runs `action`, which returns a Status or StatusOr, and turns running out of
// memory in it into
//
//   kResourceExhausted  "out of memory while <doing>", and where it is known
//                       ", which asked for 2.00 GiB"
//
// and LimitReached into "<its message>, while <doing>" of the same code.
// `doing` returns a string, and is called only then, when the memory that
// `action` held is free again. Other exceptions pass.
template <typename Doing, typename Action>
std::invoke_result_t<Action> NamingOutOfMemory(const Doing& doing,
                                               const Action& action) {
  std::string asked_for;
  try {
    return action();
  } catch (const LimitReached& limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat(limit.what(), ", while ", doing()));
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error)) {
      throw;
    }
    asked_for = MemoryAskedFor(error);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(kOutOfMemory, doing(),
                   asked_for.empty() ? "" : ", which asked for ", asked_for));
}

}  // namespace etc

#endif  // ETC_BASE_OUT_OF_MEMORY_H_
