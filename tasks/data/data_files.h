#ifndef ETC_TASKS_DATA_DATA_FILES_H_
#define ETC_TASKS_DATA_DATA_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// The files that `patterns` name, each a path or a pattern as a shell has them
// ("v1.0/train/nq-train-??.jsonl.gz"): `*` any characters but a slash, `?` one,
// `[0-4]` one of those, `\` before a character that stands for itself. The
// files of one pattern come sorted by name, in the place of the pattern. A path
// that exists is taken as it is, even with these characters in it; a path
// without any of them is returned without a check that it exists.
//   kNotFound         a pattern that matches no file, by name
//   kInvalidArgument  a pattern is the name of a directory
// and the errors of the system for a directory that may hold such files and
// cannot be read.
absl::StatusOr<std::vector<std::string>> FindDataFiles(
    const std::vector<std::string>& patterns);

// Checks that `paths` are different files or directories, whatever the spelling
// of their names; messages call one of them `noun`.
//   kInvalidArgument  one is named twice
absl::Status CheckNamedOnce(const std::vector<std::string>& paths,
                            absl::string_view noun = "file");

// Called with the bytes read so far, of `num_bytes`; its error ends the reading
// and is returned. By one thread at a time.
using FilesListener =
    std::function<absl::Status(uint64_t bytes, uint64_t num_bytes)>;
// Called with the bytes read since the last call.
using BytesListener = std::function<absl::Status(uint64_t bytes)>;

// Reads files, or other parts such as records, on as many threads as there are
// cores: calls read(i, report) for 0 <= i < num_files, beginning in this order.
// `read` calls `report` with the bytes (of records, their number) that it has
// read since the last call, and ends with the error that it returns. After an
// error no other part is begun. Returns the error of the first part that has
// one.
absl::Status ReadInParallel(
    size_t num_files, uint64_t num_bytes, const FilesListener& listener,
    const std::function<absl::Status(size_t file, const BytesListener& report)>&
        read);

}  // namespace etc

#endif  // ETC_TASKS_DATA_DATA_FILES_H_
