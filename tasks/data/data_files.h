#ifndef ETC_TASKS_DATA_DATA_FILES_H_
#define ETC_TASKS_DATA_DATA_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// The files that `patterns` name, each a path or a pattern as a shell has them
// ("v1.0/train/nq-train-??.jsonl.gz"): `*` any characters but a slash, `?` one,
// `[0-4]` one of those, `\` before a character that stands for itself. The
// files of one pattern come sorted by name, in the place of the pattern. A path
// that exists is taken as it is, even with these characters in it; a path
// without any of them is returned without a check that it exists.
//   kNotFound  a pattern that matches no file, by name
absl::StatusOr<std::vector<std::string>> FindDataFiles(
    const std::vector<std::string>& patterns);

}  // namespace etc

#endif  // ETC_TASKS_DATA_DATA_FILES_H_
