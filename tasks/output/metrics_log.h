#ifndef ETC_TASKS_OUTPUT_METRICS_LOG_H_
#define ETC_TASKS_OUTPUT_METRICS_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// A file of one JSON object a line. Lines are not buffered in the process, so
// that the file can be followed.
class MetricsLog {
 public:
  // Opens `path` to append after its first `bytes` bytes; the rest is removed.
  // A resumed run passes size() as of its checkpoint, a new one 0. A shorter
  // file is left as it is. A new file's name is on disk when this returns.
  static absl::StatusOr<MetricsLog> Open(const std::string& path,
                                         int64_t bytes);

  MetricsLog(MetricsLog&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  MetricsLog& operator=(MetricsLog&&) = delete;
  ~MetricsLog();

  absl::Status Write(const nlohmann::ordered_json& line);

  // Puts all lines on disk; before a checkpoint that holds size().
  absl::Status Sync();

  // Bytes in the file.
  int64_t size() const { return size_; }

 private:
  MetricsLog(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
  int64_t size_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_METRICS_LOG_H_
