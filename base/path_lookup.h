#ifndef ETC_BASE_PATH_LOOKUP_H_
#define ETC_BASE_PATH_LOOKUP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// True if there is a file, a directory or something else at `path`, links
// followed. Returns the system's error, with the path in the message, where the
// system cannot tell: a name that is too long, a directory that may not be
// searched, links that go in a circle.
absl::StatusOr<bool> PathExists(const std::string& path);
// The same, but true also of a link that leads nowhere: a file that a directory
// lists is not absent, and opening it says why it cannot be read.
absl::StatusOr<bool> EntryExists(const std::string& path);
// PathExists for a directory.
absl::StatusOr<bool> IsDirectory(const std::string& path);

// Checks that a command may write the file `path`.
//   kAlreadyExists  it is there, and not `overwrite`, the command's --overwrite
absl::Status CheckMayReplace(const std::string& path, bool overwrite);

}  // namespace etc

#endif  // ETC_BASE_PATH_LOOKUP_H_
