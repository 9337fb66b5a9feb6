#ifndef ETC_TASKS_TRAIN_METRICS_LOG_H_
#define ETC_TASKS_TRAIN_METRICS_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
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
  // one 0. A file that is shorter is taken as it is.
  static absl::StatusOr<MetricsLog> Open(const std::string& path,
                                         int64_t bytes);

  absl::Status Write(const nlohmann::ordered_json& line);

  // Bytes in the file.
  int64_t size() const { return size_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  MetricsLog(std::string path, std::FILE* file, int64_t size)
      : path_(std::move(path)), file_(file), size_(size) {}

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t size_;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_METRICS_LOG_H_
