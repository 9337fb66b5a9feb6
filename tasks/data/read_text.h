#ifndef ETC_TASKS_DATA_READ_TEXT_H_
#define ETC_TASKS_DATA_READ_TEXT_H_

#include <string>

#include "absl/status/statusor.h"

namespace etc {

// The contents of a file, unpacked if it is packed by gzip, which its first
// bytes decide, not its name.
//   kDataLoss  damaged gzip data
// and errors of RandomAccessFile.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_DATA_READ_TEXT_H_
