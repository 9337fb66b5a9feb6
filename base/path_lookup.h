#ifndef ETC_BASE_PATH_LOOKUP_H_
#define ETC_BASE_PATH_LOOKUP_H_

#include <string>

#include "absl/status/statusor.h"

namespace etc {

// Whether there is a file, a directory or something else at `path`, links
// followed. Where the system cannot tell, its error, with the path in the
// message: a name that is too long, a directory that may not be searched, links
// that go in a circle.
absl::StatusOr<bool> PathExists(const std::string& path);
// The same for a directory.
absl::StatusOr<bool> IsDirectory(const std::string& path);

}  // namespace etc

#endif  // ETC_BASE_PATH_LOOKUP_H_
