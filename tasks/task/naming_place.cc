#include "tasks/task/naming_place.h"

#include <c10/util/Exception.h>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/stop_guard.h"
#include "base/tensor_file.h"

namespace etc {

void RethrowWithPlace(const std::exception& error, const std::string& place) {
  if (IsOutOfMemory(error) ||
      dynamic_cast<const LimitReached*>(&error) != nullptr ||
      dynamic_cast<const Stopped*>(&error) != nullptr ||
      dynamic_cast<const TensorFileError*>(&error) != nullptr) {
    throw;
  }
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  C10_THROW_ERROR(Error, absl::StrCat(place, ": ",
                                      of_torch != nullptr
                                          ? of_torch->what_without_backtrace()
                                          : error.what()));
}

}  // namespace etc
