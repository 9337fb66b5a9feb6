#ifndef ETC_TASKS_OUTPUT_METRICS_LOG_H_
#define ETC_TASKS_OUTPUT_METRICS_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/output/appended_file.h"

namespace etc {

// Field of the last line of a run that has diverged: the reason, for people. A
// run that goes on removes the line with all that its checkpoint does not
// count.
inline constexpr char kDivergence[] = "diverged";

// A file of one JSON object a line, which can be followed.
class MetricsLog {
 public:
  // Opens `path` to append after its first `bytes` bytes; the rest is removed
  // (AppendedFile). A resumed run passes size() as of its checkpoint, a new one
  // 0. Of a shorter file, as in a copy that was cut, the whole lines are kept:
  // size() is less than `bytes` then.
  static absl::StatusOr<MetricsLog> Open(const std::string& path,
                                         int64_t bytes);

  absl::Status Write(const nlohmann::ordered_json& line);

  // Puts all lines on disk; before a checkpoint that holds size().
  absl::Status Sync() { return file_.Sync(); }

  // Bytes in the file.
  int64_t size() const { return file_.size(); }

 private:
  explicit MetricsLog(AppendedFile file) : file_(std::move(file)) {}

  AppendedFile file_;
};

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_METRICS_LOG_H_
