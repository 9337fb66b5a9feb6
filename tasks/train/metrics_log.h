#ifndef ETC_TASKS_TRAIN_METRICS_LOG_H_
#define ETC_TASKS_TRAIN_METRICS_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// A file of one JSON object a line. Every line is handed to the system as soon
// as it is written, so that it can be followed.
class MetricsLog {
 public:
  // Opens `path` to write on after its first `bytes` bytes; what lies behind
  // them is removed. A resumed run passes size() as of its checkpoint, a new
  // one 0. A file that is shorter is taken as it is. A new file's name is on
  // disk when this returns.
  static absl::StatusOr<MetricsLog> Open(const std::string& path,
                                         int64_t bytes);

  MetricsLog(MetricsLog&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  MetricsLog& operator=(MetricsLog&&) = delete;
  ~MetricsLog();

  absl::Status Write(const nlohmann::ordered_json& line);

  // Puts all lines on disk, as a checkpoint that counts on them needs.
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

#endif  // ETC_TASKS_TRAIN_METRICS_LOG_H_
