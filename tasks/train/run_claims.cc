#include "tasks/train/run_claims.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/config/run_settings.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_store.h"
#include "tasks/output/event_log.h"
#include "tasks/train/training_state.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string CheckpointsIn(const std::string& directory) {
  return directory + "/checkpoints";
}

std::string EventsIn(const std::string& directory) {
  return directory + "/tensorboard";
}

// Checks that the run of a seed can be removed as a whole.
absl::Status CheckRemovable(const std::string& directory,
                            const CheckpointStore& store) {
  ETC_RETURN_IF_ERROR(store.CheckRemovable());
  return CheckWritableDirectory(EventsIn(directory));
}

// Removes the averages of a run's checkpoints, which would pass for those of
// the run that takes its place.
absl::Status RemoveAverages(const std::string& directory) {
  std::vector<std::string> averages;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    if (IsAverage(entry->path().string())) {
      averages.push_back(entry->path().string());
    }
  }
  for (const std::string& average : averages) {
    // A part of one would be none to `realetc average`.
    const std::string removed = TemporaryName(average, /*number=*/0);
    ETC_RETURN_IF_ERROR(RenameEntry(average, removed));
    ETC_RETURN_IF_ERROR(RemoveTree(removed));
  }
  return absl::OkStatus();
}

// Checks the settings of the run to resume, as far as possible without its
// files.
absl::Status CheckSettings(const RunConfig& config, int64_t seed,
                           const ClaimOptions& options) {
  const std::optional<std::string> last =
      CheckpointStore(CheckpointsIn(SeedDirectory(config.output, seed))).last();
  if (!last.has_value()) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const nlohmann::json then,
                       ReadCheckpointSettings(*last));
  return CheckSameSettings(then, SettingsWithFilesOf(config, seed, then),
                           options.allow_changes)
      .status();
}

}  // namespace

absl::Status CheckRunDirectory(const std::string& directory,
                               EarlierRun earlier) {
  const CheckpointStore store(CheckpointsIn(directory));
  ETC_RETURN_IF_ERROR(store.Check());
  if (earlier == EarlierRun::kOverwrite) {
    ETC_RETURN_IF_ERROR(CheckRemovable(directory, store));
  }
  if (store.last().has_value()) {
    return earlier != EarlierRun::kRefuse
               ? absl::OkStatus()
               : absl::AlreadyExistsError(absl::StrCat(
                     directory,
                     " has a run already: resume it, replace it "
                     "(--overwrite), or choose another output directory"));
  }
  // A run writes owner.json first, and metrics of updates that were not saved
  // are written again.
  const std::string metrics = directory + "/metrics.jsonl";
  std::error_code error;
  const uint64_t bytes = fs::file_size(metrics, error);
  if (!error && bytes > 0 &&
      !Exists(absl::StrCat(CheckpointsIn(directory), "/", kOwnerFile))) {
    return absl::FailedPreconditionError(absl::StrCat(
        metrics, " is that of a run whose checkpoints are gone: restore ",
        CheckpointsIn(directory), ", or move the file away to begin anew"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RemoveRuns(const RunConfig& config) {
  FileOperations& operations = FileOperations::Current();
  std::vector<std::string> removed;
  ETC_RETURN_IF_ERROR(CheckSummary(config.output));
  std::vector<std::string> directories;
  std::vector<CheckpointStore> stores;
  for (const int64_t seed : config.train.seeds) {
    directories.push_back(SeedDirectory(config.output, seed));
    stores.emplace_back(CheckpointsIn(directories.back()));
    ETC_RETURN_IF_ERROR(CheckRemovable(directories.back(), stores.back()));
  }
  // A run that goes on writes these again, and `realetc average` its averages.
  operations.Unlink(config.output + "/summary.json");
  for (const std::string& directory : directories) {
    operations.Unlink(directory + "/result.json");
    ETC_RETURN_IF_ERROR(RemoveAverages(directory));
  }
  // All of them, before anything else is deleted: a start that is killed after
  // this is resumed with none of the earlier runs.
  for (size_t i = 0; i < stores.size(); ++i) {
    if (stores[i].last().has_value()) {
      removed.push_back(directories[i]);
    }
    ETC_RETURN_IF_ERROR(stores[i].BeginRemoval());
  }
  for (const std::string& directory : directories) {
    ETC_RETURN_IF_ERROR(EventLog::Remove(EventsIn(directory)));
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    // Before the checkpoints: a directory with metrics alone is refused.
    operations.Unlink(directories[i] + "/metrics.jsonl");
    ETC_RETURN_IF_ERROR(stores[i].FinishRemoval());
  }
  return removed;
}

absl::StatusOr<RunLock> ClaimRunDirectory(const std::string& directory,
                                          EarlierRun earlier) {
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_ASSIGN_OR_RETURN(RunLock lock, RunLock::Take(directory));
  ETC_RETURN_IF_ERROR(CheckRunDirectory(directory, earlier));
  for (const std::string& path :
       {FolderOf(directory), directory, CheckpointsIn(directory)}) {
    ETC_RETURN_IF_ERROR(CheckWritableDirectory(path));
  }
  // Appended to; other files are replaced.
  const std::string metrics = directory + "/metrics.jsonl";
  if (Exists(metrics) && access(metrics.c_str(), W_OK) != 0) {
    return ErrnoStatus(errno, "write", metrics);
  }
  return lock;
}

// The claim of one directory.
class RunClaims::Claim {
 public:
  Claim(std::string directory, const std::atomic<bool>* stop)
      : directory_(std::move(directory)), stop_(stop) {
    has_new_lock_ = !Exists(LockFile());
    for (std::string folder = directory_; !Exists(folder);
         folder = FolderOf(folder)) {
      new_folders_.push_back(folder);
    }
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() {
    if (stop_ == nullptr || !*stop_) {
      RemoveIfUnused();
    }
  }

  absl::Status Take(EarlierRun earlier) {
    ETC_ASSIGN_OR_RETURN(RunLock lock, ClaimRunDirectory(directory_, earlier));
    lock_.emplace(std::move(lock));
    return absl::OkStatus();
  }
  const std::string& directory() const { return directory_; }
  const RunLock& lock() const { return *lock_; }

 private:
  std::string LockFile() const { return directory_ + "/lock"; }

  // The lock is held until the file is gone.
  void RemoveIfUnused() {
    FileOperations& operations = FileOperations::Current();
    std::error_code error;
    int64_t entries = 0;
    for (fs::directory_iterator entry(directory_, error), end;
         !error && entry != end; entry.increment(error)) {
      ++entries;
    }
    if (lock_.has_value() && has_new_lock_ && !error && entries == 1) {
      operations.Unlink(LockFile());
    }
    for (const std::string& folder : new_folders_) {
      operations.RemoveDirectory(folder);  // fails where something is in it
    }
  }

  const std::string directory_;
  const std::atomic<bool>* const stop_;
  std::optional<RunLock> lock_;
  bool has_new_lock_ = false;
  // Directories that did not exist before this claim, innermost first.
  std::vector<std::string> new_folders_;
};

RunClaims::RunClaims() = default;
RunClaims::RunClaims(RunClaims&& other) noexcept = default;
RunClaims& RunClaims::operator=(RunClaims&& other) noexcept = default;

// The first one made the directory that all are in, and removes it when the
// others have removed theirs.
RunClaims::~RunClaims() {
  while (!claims_.empty()) {
    claims_.pop_back();
  }
}

absl::StatusOr<std::unique_ptr<RunClaims::Claim>> RunClaims::TakeOne(
    const RunConfig& config, int64_t seed, const ClaimOptions& options) {
  auto claim =
      std::make_unique<Claim>(SeedDirectory(config.output, seed), options.stop);
  ETC_RETURN_IF_ERROR(claim->Take(options.earlier));
  if (options.earlier != EarlierRun::kOverwrite) {
    ETC_RETURN_IF_ERROR(CheckSettings(config, seed, options));
  }
  return claim;
}

absl::StatusOr<RunClaims> RunClaims::Take(const RunConfig& config,
                                          const ClaimOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSummary(config.output));
  RunClaims claims;
  for (const int64_t seed : config.train.seeds) {
    ETC_ASSIGN_OR_RETURN(claims.claims_.emplace_back(),
                         TakeOne(config, seed, options));
  }
  for (const auto& claim : claims.claims_) {
    ETC_RETURN_IF_ERROR(claim->lock().WriteHolder());
  }
  return claims;
}

const RunLock* RunClaims::Find(const std::string& directory) const {
  for (const auto& claim : claims_) {
    if (claim->directory() == directory) {
      return &claim->lock();
    }
  }
  return nullptr;
}

absl::Status CheckLaterRuns(const RunConfig& config,
                            const ClaimOptions& options) {
  ETC_RETURN_IF_ERROR(CheckSummary(config.output));
  for (const int64_t seed : config.train.seeds) {
    if (Exists(SeedDirectory(config.output, seed))) {
      ETC_RETURN_IF_ERROR(RunClaims::TakeOne(config, seed, options).status());
    }
  }
  return CheckWritableDirectory(config.output);
}

bool IsBegun(const std::string& output) {
  // The directory of a seed is made when its run begins.
  return !SeedDirectories(output).empty() || Exists(output + "/grid.json");
}

absl::Status CheckHasRun(const std::string& output,
                         const std::vector<std::string>& directories) {
  if (std::any_of(directories.begin(), directories.end(), IsBegun)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(
      output,
      Exists(output) ? " has no run to resume: no seed was begun there"
                     : " does not exist: there is no run to resume",
      "; --resume-or-begin begins one"));
}

}  // namespace etc
