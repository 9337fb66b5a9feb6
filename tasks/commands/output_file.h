#ifndef ETC_TASKS_COMMANDS_OUTPUT_FILE_H_
#define ETC_TASKS_COMMANDS_OUTPUT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace etc {

// Checks, before anything long begins, that a file can be written to `path`, by
// making a temporary one beside it, and that it is none of those that are read,
// by whatever names and links. Removes what killed processes left in its
// directory (RemoveAbandonedTemporaries): to be called before this process
// writes there. `option` starts each message: "--output".
//   kInvalidArgument  the path is empty, ends in .gz, or is of something that
//                     is no file
//   kNotFound         its directory (FileBehindLinks) is not there
//   kAlreadyExists    it is one of the files `read`, which it would replace
// and the system's errors where no file can be made.
absl::Status CheckOutputFile(const std::string& option, const std::string& path,
                             const std::vector<std::string>& read);

// Checks the same of a directory, which may be missing: files can be written to
// it, by what the system says of it (none is made), and no file in it is one
// that is read.
absl::Status CheckOutputDirectory(const std::string& option,
                                  const std::string& directory,
                                  const std::vector<std::string>& read);

// The file that `path` stands for: symbolic links are followed, also to one
// that is not there yet. Written under its own name, an output keeps the links
// to it, which a renaming would replace (base/file.h). `path` itself where it
// stands for no regular file: the links of /proc name pipes that have no path.
std::string FileBehindLinks(const std::string& path);

// `path`, and if it is a directory the files in it.
std::vector<std::string> FilesAt(const std::string& path);

// The files that are read of the checkpoint that `path` names or stands for
// (FindCheckpoint), with those of its run; of other weights FilesAt(path).
std::vector<std::string> FilesOfWeights(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_OUTPUT_FILE_H_
