#include "tasks/output/metrics_log.h"

#include "base/file.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {

absl::StatusOr<MetricsLog> MetricsLog::Open(const std::string& path,
                                            int64_t bytes) {
  ETC_ASSIGN_OR_RETURN(AppendedFile file, AppendedFile::Open(path, bytes));
  if (file.size() < bytes) {
    ETC_ASSIGN_OR_RETURN(const std::string found, ReadFile(path));
    const size_t newline = found.rfind('\n');
    return Open(path, newline == std::string::npos
                          ? 0
                          : static_cast<int64_t>(newline) + 1);
  }
  return MetricsLog(std::move(file));
}

absl::Status MetricsLog::Write(const nlohmann::ordered_json& line) {
  return file_.Append(JsonText(line) + "\n");
}

}  // namespace etc
