#include "tasks/train/metrics_log.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace etc {

absl::StatusOr<MetricsLog> MetricsLog::Open(const std::string& path,
                                            int64_t bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open"));
  }
  MetricsLog log(path, file, bytes);
  std::error_code error;
  const auto found =
      static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (!error && found > bytes) {
    std::filesystem::resize_file(path, static_cast<uint64_t>(bytes), error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat(path, ": cannot shorten"));
  }
  log.size_ = std::min(found, bytes);
  return log;
}

absl::Status MetricsLog::Write(const nlohmann::ordered_json& line) {
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot write"));
  }
  size_ += static_cast<int64_t>(text.size());
  return absl::OkStatus();
}

}  // namespace etc
