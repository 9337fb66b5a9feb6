#include "tasks/commands/output_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"
#include "tasks/output/find_checkpoint.h"

namespace etc {
namespace {

// Device and inode, which are those of one file under all of its names; nothing
// if there is none.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> IdOf(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return FileId(status.st_dev, status.st_ino);
}

absl::Status CheckNotRead(const std::string& option, const std::string& path,
                          const std::vector<std::string>& read) {
  const std::optional<FileId> id = IdOf(path);
  for (const std::string& input : read) {
    if (id.has_value() && IdOf(input) == id) {
      return absl::AlreadyExistsError(absl::StrCat(
          option, " should not replace what is read, but ", path, " is ",
          path == input ? "read" : absl::StrCat("the file ", input)));
    }
  }
  return absl::OkStatus();
}

// Checks that `path` does not exist, or is a regular file that is none of
// `read`.
absl::Status CheckReplaceable(const std::string& option,
                              const std::string& path,
                              const std::vector<std::string>& read) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, " should name a file, but ", path,
        S_ISDIR(status.st_mode) ? " is a directory" : " is no regular file"));
  }
  return CheckNotRead(option, path, read);
}

// Returns `written`; an error also says which option names `path`.
absl::Status WithOption(const std::string& option, const std::string& path,
                        const absl::Status& written) {
  return written.ok() ? written
                      : absl::Status(written.code(),
                                     absl::StrCat(option, " names ", path,
                                                  ", which cannot be written: ",
                                                  written.message()));
}

}  // namespace

absl::Status CheckOutputFile(const std::string& option, const std::string& path,
                             const std::vector<std::string>& read) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " should name a file, but is empty"));
  }
  if (absl::EndsWith(path, ".gz")) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " names ", path, ", but nothing is packed here: ",
                     "leave .gz out, and run gzip on the file"));
  }
  const std::string file = FileBehindLinks(path);
  const std::string folder = FolderOf(file);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat(
        option, " names ", path, ", which cannot be written: ", folder,
        " is no directory"));
  }
  ETC_RETURN_IF_ERROR(CheckReplaceable(option, path, read));
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(folder));
  // No question to the system knows all that it refuses: names that are too
  // long with what a temporary one has more, quotas, /proc.
  TemporaryFile trial(file);
  return WithOption(option, path, trial.Create());
}

absl::Status CheckOutputDirectory(const std::string& option,
                                  const std::string& directory,
                                  const std::vector<std::string>& read) {
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " should name a directory, but is empty"));
  }
  for (const std::string& path : FilesAt(directory)) {
    if (path != directory) {
      ETC_RETURN_IF_ERROR(CheckNotRead(option, path, read));
    }
  }
  ETC_RETURN_IF_ERROR(
      WithOption(option, directory, CheckWritableDirectory(directory)));
  return RemoveAbandonedTemporaries(directory);
}

std::string FileBehindLinks(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return path;
  }
  constexpr int kMostLinks = 40;  // as the system's
  std::filesystem::path file = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(file, error);
    if (error) {
      return file.string();
    }
    // An absolute target stands for itself.
    file = file.parent_path() / target;
  }
  return path;
}

std::vector<std::string> FilesAt(const std::string& path) {
  std::vector<std::string> files = {path};
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end;
       !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path().string());
  }
  return files;
}

std::vector<std::string> FilesOfWeights(const std::string& path) {
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(path);
  return found.ok() ? FilesOfCheckpoint(found->directory) : FilesAt(path);
}

}  // namespace etc
