#ifndef ETC_TASKS_CONFIG_RUN_FILES_H_
#define ETC_TASKS_CONFIG_RUN_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_digest.h"
#include "tasks/config/config.h"
#include "tasks/data/data_files.h"
#include "tasks/data/example_source.h"

namespace etc {

// A file of a run. A resumed run compares its contents, not its path.
struct RunFile {
  std::string path;
  FileDigest digest;
};

// The files of a run by the field that names them ("data.train"), in the order
// in which the run reads them.
using RunFiles = std::map<std::string, std::vector<RunFile>>;

// Finds the files that each field of the configuration names, and computes
// their digests, on as many threads as there are cores. A list holds patterns
// of names (tasks/data/data_files.h); a single string is a file, the prefix of
// a TensorFlow checkpoint, or a directory: those of its files that are read
// (weights in the format that is looked for first and their configuration,
// Punkt's tables; all, if none is known), so that others may come and go. With
// a vocabulary come the files beside it that are read (FilesBesideVocabulary),
// and those beside `init` that complete them (TakeUnstated).
// A field whose value names no file at all has no entry.
//
// A collective operation: rank r reads files i with i % size == r, and the
// digests are all-gathered. A rank takes another one's digest if samples of its
// own file, 1 MiB in all, are the same; else it reads its file, so that the
// digests differ as the files do.
//   kNotFound         there is no such file; the message names the field
//   kUnavailable      another process has ended
// and the error of the listener, on any rank: all ranks return the same one.
absl::StatusOr<RunFiles> FindRunFiles(const RunConfig& config,
                                      const FilesListener& listener,
                                      const DataGroup& group = {});

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_RUN_FILES_H_
