#include "tasks/train/checkpoint_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "etc/formats/file.h"
#include "etc/formats/status_macros.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = ".unfinished";

std::string StepName(int64_t step) {
  return absl::StrFormat("step-%08d", step);
}

// What `action` on `path` came to.
absl::Status Result(const std::error_code& error, const std::string& path,
                    const std::string& action) {
  if (!error) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat(path, ": cannot ", action));
}

// Puts the names in `directory` on disk; its files are there already.
absl::Status Sync(const std::string& directory) {
  const int descriptor =
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(directory, ": cannot open"));
  }
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat(directory, ": cannot sync"));
  }
  return absl::OkStatus();
}

absl::Status Delete(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return Result(error, path, "delete");
}

}  // namespace

absl::StatusOr<CheckpointStore> CheckpointStore::Open(
    const std::string& directory) {
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  CheckpointStore store(directory);
  ETC_RETURN_IF_ERROR(store.DeleteUnlinked());
  return store;
}

std::optional<std::string> CheckpointStore::Target(
    const std::string& link) const {
  std::error_code error;
  const fs::path name = fs::read_symlink(fs::path(directory_) / link, error);
  if (error) {
    return std::nullopt;
  }
  return name.string();
}

std::optional<std::string> CheckpointStore::Directory(
    const std::string& link) const {
  const std::optional<std::string> name = Target(link);
  if (!name.has_value()) {
    return std::nullopt;
  }
  return absl::StrCat(directory_, "/", *name);
}

absl::Status CheckpointStore::Save(
    int64_t step,
    const std::function<absl::Status(const std::string& directory)>& write) {
  std::string name = StepName(step);
  std::error_code ignored;
  for (int copy = 2; fs::exists(fs::path(directory_) / name, ignored); ++copy) {
    name = absl::StrCat(StepName(step), "-", copy);
  }
  const std::string final_path = absl::StrCat(directory_, "/", name);
  const std::string unfinished = final_path + kUnfinished;
  ETC_RETURN_IF_ERROR(Delete(unfinished));
  ETC_RETURN_IF_ERROR(CreateDirectories(unfinished));
  absl::Status written = write(unfinished);
  if (!written.ok()) {
    Delete(unfinished).IgnoreError();  // the first failure says more
    return written;
  }
  ETC_RETURN_IF_ERROR(Sync(unfinished));
  std::error_code error;
  fs::rename(unfinished, final_path, error);
  ETC_RETURN_IF_ERROR(Result(error, unfinished, "rename"));
  ETC_RETURN_IF_ERROR(Sync(directory_));
  ETC_RETURN_IF_ERROR(PointLink("last", name));
  return DeleteUnlinked();
}

absl::Status CheckpointStore::MarkLastAsBest() {
  const std::optional<std::string> last = Target("last");
  if (!last.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory_, " has no checkpoint to mark as the best"));
  }
  ETC_RETURN_IF_ERROR(PointLink("best", *last));
  return DeleteUnlinked();
}

absl::Status CheckpointStore::PointLink(const std::string& link,
                                        const std::string& name) {
  const std::string path = absl::StrCat(directory_, "/", link);
  const std::string unfinished = path + kUnfinished;
  ETC_RETURN_IF_ERROR(Delete(unfinished));
  std::error_code error;
  fs::create_directory_symlink(name, unfinished, error);
  ETC_RETURN_IF_ERROR(Result(error, unfinished, "link"));
  fs::rename(unfinished, path, error);
  ETC_RETURN_IF_ERROR(Result(error, unfinished, "rename"));
  return Sync(directory_);
}

absl::Status CheckpointStore::DeleteUnlinked() const {
  std::set<std::string> kept = {absl::StrCat(directory_, "/last"),
                                absl::StrCat(directory_, "/best")};
  for (const auto& target : {last(), best()}) {
    if (target.has_value()) {
      kept.insert(*target);
    }
  }
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    if (kept.count(entry->path().string()) == 0) {
      ETC_RETURN_IF_ERROR(Delete(entry->path().string()));
    }
  }
  return Result(error, directory_, "list");
}

}  // namespace etc
