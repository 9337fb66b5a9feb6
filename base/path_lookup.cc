#include "base/path_lookup.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file_operations.h"
#include "base/status_macros.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

enum class Links { kFollow, kKeep };

absl::StatusOr<fs::file_status> LookUp(const std::string& path,
                                       Links links = Links::kFollow) {
  std::error_code error;
  const fs::file_status status = links == Links::kFollow
                                     ? fs::status(path, error)
                                     : fs::symlink_status(path, error);
  // Absence is no error here.
  if (status.type() == fs::file_type::none) {
    return ErrnoStatus(error.value(), "look up", path);
  }
  return status;
}

}  // namespace

absl::StatusOr<bool> PathExists(const std::string& path) {
  const absl::StatusOr<fs::file_status> status = LookUp(path);
  return status.ok() ? absl::StatusOr<bool>(fs::exists(*status))
                     : status.status();
}

absl::StatusOr<bool> EntryExists(const std::string& path) {
  const absl::StatusOr<fs::file_status> status = LookUp(path, Links::kKeep);
  return status.ok() ? absl::StatusOr<bool>(fs::exists(*status))
                     : status.status();
}

absl::StatusOr<bool> IsDirectory(const std::string& path) {
  const absl::StatusOr<fs::file_status> status = LookUp(path);
  return status.ok() ? absl::StatusOr<bool>(fs::is_directory(*status))
                     : status.status();
}

absl::Status CheckMayReplace(const std::string& path, bool overwrite) {
  ETC_ASSIGN_OR_RETURN(const bool is_there, PathExists(path));
  return is_there && !overwrite
             ? absl::AlreadyExistsError(absl::StrCat(
                   path, " is there already; --overwrite replaces it"))
             : absl::OkStatus();
}

}  // namespace etc
