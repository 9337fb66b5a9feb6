#include "tasks/train/checkpoint_store.h"

#include <filesystem>
#include <random>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kOwner[] = "owner.json";

std::string StepName(int64_t step) {
  return absl::StrFormat("step-%08d", step);
}

// 128 random bits, in hexadecimal.
std::string DrawRun() {
  std::random_device device;
  std::string run;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppendFormat(&run, "%08x", device());
  }
  return run;
}

// The text of a field of a small JSON file, or nothing if there is none.
std::string FieldOf(const std::string& path, const std::string& field) {
  constexpr uint64_t kMostBytes = 4096;
  const auto text = ReadFile(path, kMostBytes);
  if (!text.ok()) {
    return "";
  }
  const nlohmann::json json =
      nlohmann::json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(field) || !json[field].is_string()) {
    return "";
  }
  return json[field].get<std::string>();
}

// The last name in `path`: "step-1" also of "/runs/a/checkpoints/step-1/".
std::string EntryOf(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename().string()
                               : normal.parent_path().filename().string();
}

}  // namespace

std::string CheckpointStore::PathOf(const std::string& name) const {
  return absl::StrCat(directory_, "/", name);
}

std::string CheckpointStore::UnfinishedName(const std::string& name) const {
  return absl::StrCat(name, ".unfinished-", run_);
}

absl::Status CheckpointStore::TakeOver() {
  ETC_RETURN_IF_ERROR(CreateDirectories(directory_));
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(directory_));
  ETC_RETURN_IF_ERROR(FindRun());
  ETC_RETURN_IF_ERROR(DeleteUnlinked());
  for (const auto& linked : {last(), best()}) {
    if (linked.has_value()) {
      ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(*linked));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::FindRun() {
  run_ = FieldOf(PathOf(kOwner), "run");
  if (!run_.empty()) {
    return absl::OkStatus();
  }
  run_ = DrawRun();
  return WriteFileAtomically(PathOf(kOwner),
                             JsonText(nlohmann::json{{"run", run_}}) + "\n");
}

std::optional<std::string> CheckpointStore::Target(
    const std::string& link) const {
  std::error_code error;
  const fs::path name = fs::read_symlink(PathOf(link), error);
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
  return PathOf(*name);
}

absl::Status CheckpointStore::Save(
    int64_t step,
    const std::function<absl::Status(const std::string& directory)>& write) {
  std::string name = StepName(step);
  std::error_code ignored;
  for (int copy = 2; fs::exists(fs::symlink_status(PathOf(name), ignored));
       ++copy) {
    name = absl::StrCat(StepName(step), "-", copy);
  }
  const std::string unfinished = PathOf(UnfinishedName(name));
  ETC_RETURN_IF_ERROR(RemoveTree(unfinished));
  ETC_RETURN_IF_ERROR(CreateDirectories(unfinished));
  absl::Status written = write(unfinished);
  if (written.ok()) {
    written = WriteFileAtomically(
        absl::StrCat(unfinished, "/", kOwner),
        JsonText(nlohmann::json{{"name", name}, {"run", run_}}) + "\n");
  }
  if (!written.ok()) {
    RemoveTree(unfinished).IgnoreError();  // the first error is the cause
    return written;
  }
  ETC_RETURN_IF_ERROR(SyncDirectory(unfinished));
  ETC_RETURN_IF_ERROR(RenameEntry(unfinished, PathOf(name)));
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
  return ReplaceLink(PathOf(link), name, PathOf(UnfinishedName(link)));
}

bool CheckpointStore::IsOurCheckpoint(const std::string& name) const {
  std::error_code ignored;
  const std::string owner = absl::StrCat(PathOf(name), "/", kOwner);
  return absl::StartsWith(name, "step-") &&
         fs::is_directory(fs::symlink_status(PathOf(name), ignored)) &&
         FieldOf(owner, "run") == run_ && FieldOf(owner, "name") == name;
}

absl::Status CheckpointStore::DeleteUnlinked() const {
  std::set<std::string> linked;  // by any link, also a user's
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
    const std::optional<std::string> target = Target(names.back());
    if (target.has_value() &&
        !absl::EndsWith(names.back(), UnfinishedName(""))) {
      linked.insert(EntryOf(*target));
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat(directory_, ": cannot list"));
  }
  for (const std::string& name : names) {
    if (absl::EndsWith(name, UnfinishedName(""))) {
      ETC_RETURN_IF_ERROR(RemoveTree(PathOf(name)));
    } else if (linked.count(name) == 0 && IsOurCheckpoint(name)) {
      // Renamed first: should the deletion be interrupted, the new name still
      // proves that it is this run's.
      const std::string unfinished = PathOf(UnfinishedName(name));
      ETC_RETURN_IF_ERROR(RemoveTree(unfinished));
      ETC_RETURN_IF_ERROR(RenameEntry(PathOf(name), unfinished));
      ETC_RETURN_IF_ERROR(RemoveTree(unfinished));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::WithLastGood(const absl::Status& status) const {
  if (!absl::IsAborted(status) && !absl::IsResourceExhausted(status)) {
    return status;
  }
  const std::optional<std::string> good = last();
  return absl::Status(
      status.code(),
      absl::StrCat(std::filesystem::path(directory_).parent_path().string(),
                   ": ", status.message(), "; ",
                   good.has_value()
                       ? absl::StrCat("the last good checkpoint is ", *good)
                       : "there is no checkpoint yet"));
}

}  // namespace etc
