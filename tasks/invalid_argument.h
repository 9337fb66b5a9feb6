#ifndef ETC_TASKS_INVALID_ARGUMENT_H_
#define ETC_TASKS_INVALID_ARGUMENT_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace etc {

// kInvalidArgument with a message made of `parts`, which StrCat joins.
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace etc

#endif  // ETC_TASKS_INVALID_ARGUMENT_H_
