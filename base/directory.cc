#include "base/directory.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_operations.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kTemporaryMark[] = ".realetc-";
constexpr char kTemporaryEnd[] = ".tmp";

// The entries of `directory`, read before any of them is changed.
absl::StatusOr<std::vector<fs::path>> EntriesOf(const std::string& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) {
    return ErrnoStatus(error.value(), "list", directory);
  }
  return entries;
}

absl::Status Unlink(const std::string& path) {
  if (FileOperations::Current().Unlink(path) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, "remove", path);
  }
  return absl::OkStatus();
}

// The beginning of the part of a TemporaryName behind the mark.
std::string OwnPlace() {
  return absl::StrCat(HostName(), "-", ProcessScope(), "-");
}

// The process that made a file of this name in this scope; nothing if the name
// is not that of such a file.
std::optional<pid_t> WriterOf(absl::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == absl::string_view::npos ||
      !absl::ConsumeSuffix(&name, kTemporaryEnd)) {
    return std::nullopt;
  }
  name.remove_prefix(mark + sizeof(kTemporaryMark) - 1);
  const bool here =
      !ProcessScope().empty() && absl::ConsumePrefix(&name, OwnPlace());
  const std::vector<absl::string_view> numbers = absl::StrSplit(name, '-');
  pid_t process = 0;
  uint64_t number = 0;
  if (!here || numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &process) ||
      process <= 0 || !absl::SimpleAtoi(numbers[1], &number)) {
    return std::nullopt;
  }
  return process;
}

// `path` or, where it is missing, its nearest ancestor that exists.
absl::StatusOr<std::string> NearestEntry(std::string path) {
  ETC_ASSIGN_OR_RETURN(bool exists, PathExists(path));
  while (!exists && FolderOf(path) != path) {
    path = FolderOf(path);
    ETC_ASSIGN_OR_RETURN(exists, PathExists(path));
  }
  return path;
}

bool IsOtherRunningProcess(pid_t process) {
  return process != getpid() && (kill(process, 0) == 0 || errno != ESRCH);
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

absl::Status CheckWritableDirectory(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const std::string there, NearestEntry(directory));
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(there));
  if (!is_directory) {
    return absl::InvalidArgumentError(absl::StrCat(there, " is no directory"));
  }
  if (access(there.c_str(), W_OK | X_OK) != 0) {
    return ErrnoStatus(errno, "write", there);
  }
  return absl::OkStatus();
}

std::optional<uint64_t> FreeBytes(const std::string& directory) {
  const absl::StatusOr<std::string> there = NearestEntry(directory);
  if (!there.ok()) {
    return std::nullopt;
  }
  std::error_code error;
  const fs::space_info space = fs::space(*there, error);
  // Some file systems count no blocks.
  return error || space.capacity == 0
             ? std::nullopt
             : std::optional<uint64_t>(space.available);
}

absl::Status SyncDirectory(const std::string& directory) {
  FileOperations& operations = FileOperations::Current();
  const int descriptor =
      operations.Open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (descriptor < 0) {
    // EACCES: entries may be made here, but not listed.
    return errno == EACCES ? absl::OkStatus()
                           : ErrnoStatus(errno, "open", directory);
  }
  const int error = operations.Sync(descriptor) == 0 ? 0 : errno;
  operations.Close(descriptor);
  // EINVAL: this file system does not sync directories.
  return error == 0 || error == EINVAL ? absl::OkStatus()
                                       : ErrnoStatus(error, "sync", directory);
}

absl::Status RenameEntry(const std::string& from, const std::string& to) {
  if (FileOperations::Current().Rename(from, to) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", from, " to"), to);
  }
  return SyncDirectory(FolderOf(to));
}

absl::Status ExchangeEntries(const std::string& path, const std::string& fresh,
                             const std::string& aside) {
  FileOperations& operations = FileOperations::Current();
  if (operations.Exchange(path, fresh) == 0) {
    return SyncDirectory(FolderOf(path));
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return ErrnoStatus(errno, absl::StrCat("exchange ", fresh, " with"), path);
  }
  absl::Status named = RenameEntry(path, aside);
  if (named.ok()) {
    named = RenameEntry(fresh, path);
  }
  if (!named.ok()) {
    // A rename may have worked whose sync failed. The first error is the cause.
    RenameEntry(aside, path).IgnoreError();
    return named;
  }
  return RenameEntry(aside, fresh);
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) {
    return absl::OkStatus();
  }
  if (!fs::is_directory(status)) {
    return Unlink(path);
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, EntriesOf(path));
  for (const fs::path& entry : entries) {
    ETC_RETURN_IF_ERROR(RemoveTree(entry.string()));
  }
  if (FileOperations::Current().RemoveDirectory(path) != 0) {
    return ErrnoStatus(errno, "remove directory", path);
  }
  return absl::OkStatus();
}

absl::Status ReplaceLink(const std::string& path, const std::string& target,
                         const std::string& temporary) {
  ETC_RETURN_IF_ERROR(Unlink(temporary));
  if (FileOperations::Current().SymbolicLink(target, temporary) != 0) {
    return ErrnoStatus(errno, "create the link", temporary);
  }
  return RenameEntry(temporary, path);
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
    return "unknown";
  }
  std::string host = name.data();
  for (char& letter : host) {
    letter =
        absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '.'
            ? letter
            : '_';
  }
  return host;
}

std::string TemporaryName(const std::string& path, uint64_t number) {
  return absl::StrCat(path, kTemporaryMark, OwnPlace(), getpid(), "-", number,
                      kTemporaryEnd);
}

std::string ProcessScope() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;  // "96925e17-16c9-..."
  std::error_code error;
  std::string space = fs::read_symlink("/proc/self/ns/pid", error).string();
  if (!std::getline(file, boot) || error) {
    return "";
  }
  std::erase_if(space, [](unsigned char letter) {  // "pid:[4026531836]"
    return !absl::ascii_isdigit(letter);
  });
  return absl::StrCat(boot.substr(0, boot.find('-')), "_", space);
}

absl::Status RemoveAbandonedTemporaries(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<std::vector<fs::path>> entries = EntriesOf(directory);
  if (absl::IsPermissionDenied(entries.status())) {
    return absl::OkStatus();  // entries may be made here, but not listed
  }
  ETC_RETURN_IF_ERROR(entries.status());
  for (const fs::path& entry : *entries) {
    const std::optional<pid_t> writer = WriterOf(entry.filename().string());
    if (!writer.has_value() || IsOtherRunningProcess(*writer)) {
      continue;
    }
    const fs::file_status status = fs::symlink_status(entry, error);
    if (fs::is_regular_file(status) || fs::is_directory(status)) {
      const absl::Status removed = RemoveTree(entry.string());
      // Another user's stay; another process may have removed it meanwhile.
      if (!absl::IsPermissionDenied(removed) && !absl::IsNotFound(removed)) {
        ETC_RETURN_IF_ERROR(removed);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
