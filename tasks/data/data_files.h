#ifndef ETC_TASKS_DATA_DATA_FILES_H_
#define ETC_TASKS_DATA_DATA_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace etc {

// The files that `patterns` name, each a path or a pattern as a shell has them
// ("v1.0/train/nq-train-??.jsonl.gz"): `*` any characters but a slash, `?` one,
// `[0-4]` one of those, `\` before a character that is to stand for itself. The
// files of one pattern come sorted by name, in the place of the pattern. What
// is the path of a file is taken as that, whatever is in it; a path without any
// of these characters is not looked for here.
//   kNotFound  a pattern that matches no file, by name
absl::StatusOr<std::vector<std::string>> FindDataFiles(
    const std::vector<std::string>& patterns);

}  // namespace etc

#endif  // ETC_TASKS_DATA_DATA_FILES_H_
