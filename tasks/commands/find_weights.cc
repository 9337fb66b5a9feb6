#include "tasks/commands/find_weights.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "etc/weights/checkpoint.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/find_checkpoint.h"

namespace etc {

absl::StatusOr<std::string> FindWeights(const std::string& path) {
  if (!absl::IsNotFound(TensorReader::Open(path).status())) {
    ETC_RETURN_IF_ERROR(CheckCheckpointFiles(path));
    return path;
  }
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(path);
  if (absl::IsNotFound(found.status())) {
    return path;
  }
  ETC_RETURN_IF_ERROR(found.status());
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(found->directory));
  std::cerr << absl::StrCat("checkpoint: ", found->directory,
                            found->reason.empty() ? "" : ", ", found->reason)
            << std::endl;
  return found->directory;
}

}  // namespace etc
