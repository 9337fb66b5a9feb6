#ifndef ETC_BASE_STATUS_MACROS_H_
#define ETC_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

// Debian's Abseil has no such macros.

// Returns the status of `expression` from the calling function unless it is OK.
#define ETC_RETURN_IF_ERROR(expression)                             \
  do {                                                              \
    if (absl::Status etc_status = (expression); !etc_status.ok()) { \
      return etc_status;                                            \
    }                                                               \
  } while (false)

#define ETC_STATUS_CONCATENATE_INNER(x, y) x##y
#define ETC_STATUS_CONCATENATE(x, y) ETC_STATUS_CONCATENATE_INNER(x, y)

// ETC_ASSIGN_OR_RETURN(const int64_t size, ReadSize(file));
// Declares or assigns the left side, or returns the status of the right one.
#define ETC_ASSIGN_OR_RETURN(left, ...)                                        \
  ETC_ASSIGN_OR_RETURN_INNER(ETC_STATUS_CONCATENATE(etc_status_or_, __LINE__), \
                             left, __VA_ARGS__)
#define ETC_ASSIGN_OR_RETURN_INNER(status_or, left, ...) \
  auto status_or = (__VA_ARGS__);                        \
  if (!status_or.ok()) {                                 \
    return std::move(status_or).status();                \
  }                                                      \
  left = *std::move(status_or)

namespace etc {

// kInvalidArgument with a message made of `parts`, which StrCat joins.
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace etc

#endif  // ETC_BASE_STATUS_MACROS_H_
