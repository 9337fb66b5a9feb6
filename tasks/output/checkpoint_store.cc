#include "tasks/output/checkpoint_store.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

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

// The last name in `path`: "step-1" also of "/runs/a/checkpoints/step-1/".
std::string EntryOf(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename().string()
                               : normal.parent_path().filename().string();
}

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool IsKnownDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// Returns the target of the link at `path`; empty if it is none.
std::string TargetOf(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : target.string();
}

}  // namespace

std::string CheckpointStore::PathOf(const std::string& name) const {
  return absl::StrCat(directory_, "/", name);
}

std::string CheckpointStore::UnfinishedName(const std::string& name) const {
  return UnfinishedCheckpoint(name, run_);
}

absl::StatusOr<std::vector<std::string>> CheckpointStore::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return ErrnoStatus(error.value(), "list", directory_);
  }
  return names;
}

absl::Status CheckpointStore::TakeOver() {
  ETC_RETURN_IF_ERROR(CreateDirectories(directory_));
  CheckpointSurvey found = SurveyCheckpoints(directory_);
  ETC_RETURN_IF_ERROR(found.refusal);
  messages_ = std::move(found.messages);
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(directory_));
  ETC_RETURN_IF_ERROR(FindRun(found));
  for (std::string* entry : {&found.last, &found.best}) {
    if (!entry->empty()) {
      ETC_ASSIGN_OR_RETURN(const std::string name, NameOf(*entry));
      if (*entry == UnfinishedName(name) && IsThere(PathOf(*entry))) {
        ETC_RETURN_IF_ERROR(RenameEntry(PathOf(*entry), PathOf(name)));
      }
      *entry = name;
    }
  }
  ETC_RETURN_IF_ERROR(RenameFollowedLinks());
  NoteDeletion(DeleteUnfinished());
  if (!found.last.empty()) {
    ETC_RETURN_IF_ERROR(FillRecord(found));
  } else if (!found.record.superseded.empty()) {
    // Killed before FinishRemoval came to its end.
    record_ = found.record;
    ETC_RETURN_IF_ERROR(Commit(found.record));
  }
  for (const auto& checkpoint : {last(), best()}) {
    if (checkpoint.has_value()) {
      ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(*checkpoint));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::FindRun(const CheckpointSurvey& found) {
  run_ = found.run.empty() ? DrawRun() : found.run;
  const std::string path = PathOf(kOwnerFile);
  const std::string text = SealJson(nlohmann::json{{"run", run_}});
  const absl::StatusOr<std::string> before = ReadFile(path);
  return before.ok() && *before == text ? absl::OkStatus()
                                        : WriteFileAtomically(path, text);
}

absl::StatusOr<std::string> CheckpointStore::NameOf(
    const std::string& entry) const {
  if (entry != "last" && entry != "best" &&
      !absl::EndsWith(entry, UnfinishedName(""))) {
    return entry;
  }
  ETC_ASSIGN_OR_RETURN(const CheckpointOwner owner,
                       ReadCheckpointOwner(PathOf(entry)));
  // A link, for instance, through which later files would be written elsewhere.
  if (IsThere(PathOf(owner.name)) && !IsCheckpointOf(owner.name, run_)) {
    return absl::FailedPreconditionError(
        absl::StrCat(PathOf(owner.name), " is in the way of ", PathOf(entry),
                     ", the checkpoint of this name: move it away"));
  }
  return owner.name;
}

absl::Status CheckpointStore::RenameFollowedLinks() {
  for (const std::string link : {"last", "best"}) {
    const absl::StatusOr<CheckpointOwner> owner =
        ReadCheckpointOwner(PathOf(link));
    if (!IsKnownDirectory(PathOf(link)) || !owner.ok() || owner->run != run_ ||
        !IsCheckpointName(owner->name) ||
        !CheckCheckpointSizes(PathOf(link), *owner).ok()) {
      continue;
    }
    std::string name = owner->name;
    for (int copy = 1; IsThere(PathOf(name)); ++copy) {
      name = absl::StrCat(owner->name, "-copy", copy);
    }
    ETC_RETURN_IF_ERROR(RenameEntry(PathOf(link), PathOf(name)));
    messages_.push_back(absl::StrCat(
        PathOf(link), " was a directory, as where links are followed in ",
        "copying: it is now called ", name,
        name == owner->name ? "" : ", and is not needed by the run"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordedCheckpoint> CheckpointStore::Recorded(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const CheckpointOwner owner,
                       ReadCheckpointOwner(PathOf(name)));
  return RecordedCheckpoint{.step = StepOfCheckpoint(name),
                            .is_interim = owner.is_interim};
}

absl::Status CheckpointStore::FillRecord(const CheckpointSurvey& found) {
  CheckpointRecord record = found.record;
  record.run = run_;
  record.last = found.last;
  record.best = found.best;
  std::erase_if(record.checkpoints, [&](const auto& entry) {
    return !IsThere(PathOf(entry.first));
  });
  const bool is_recorded = record.checkpoints.contains(found.last);
  for (const std::string& name : {found.last, found.best}) {
    if (!name.empty() && !record.checkpoints.contains(name)) {
      ETC_ASSIGN_OR_RETURN(record.checkpoints[name], Recorded(name));
    }
  }
  // As the Save would have done that was killed before it recorded this one.
  // The others stay: the caller may want one of them for the best.
  if (!is_recorded) {
    Supersede(&record);
  }
  record_ = found.record;
  return Commit(std::move(record));
}

std::set<std::string> CheckpointStore::KeptNames(
    const CheckpointRecord& record) const {
  std::set<std::string> kept = {record.last, record.best};
  std::vector<std::pair<int64_t, std::string>> by_step;
  std::vector<std::pair<double, std::string>> by_score;
  for (const auto& [name, checkpoint] : record.checkpoints) {
    if (name != record.last && !checkpoint.is_interim &&
        IsThere(PathOf(name))) {
      by_step.emplace_back(-checkpoint.step, name);
    }
  }
  std::sort(by_step.begin(), by_step.end());
  for (const auto& [name, checkpoint] : record.checkpoints) {
    const std::optional<double> score =
        FindMetric(checkpoint.scores, kept_.metric.name);
    if (name != record.best && score.has_value() && !std::isnan(*score) &&
        IsThere(PathOf(name))) {
      by_score.emplace_back(kept_.metric.lower_is_better ? -*score : *score,
                            name);
    }
  }
  // Names are in the order of steps: of equal scores the latest is kept.
  std::sort(by_score.begin(), by_score.end(), std::greater<>());
  const auto keep = [&](const auto& names, int64_t count) {
    for (int64_t i = 0; i < std::min<int64_t>(count, std::ssize(names)); ++i) {
      kept.insert(names[static_cast<size_t>(i)].second);
    }
  };
  keep(by_step, kept_.last - 1);
  keep(by_score, kept_.best - 1);
  kept.erase("");
  return kept;
}

void CheckpointStore::Supersede(CheckpointRecord* record) const {
  const std::set<std::string> kept = KeptNames(*record);
  for (const auto& [name, checkpoint] : record->checkpoints) {
    if (!kept.contains(name)) {
      record->superseded.insert(name);
    }
  }
  std::erase_if(record->checkpoints,
                [&](const auto& entry) { return !kept.contains(entry.first); });
}

absl::Status CheckpointStore::Commit(CheckpointRecord record) {
  std::erase_if(record.superseded, [&](const std::string& name) {
    return record.checkpoints.contains(name) ||
           (!IsThere(PathOf(name)) && !IsThere(PathOf(UnfinishedName(name))));
  });
  if (!(record == record_)) {
    ETC_RETURN_IF_ERROR(WriteCheckpointRecord(record, directory_));
    record_ = std::move(record);
  }
  PointLink("last", record_.last);
  PointLink("best", record_.best);
  NoteDeletion(DeleteSuperseded());
  return absl::OkStatus();
}

absl::Status CheckpointStore::Save(
    int64_t step,
    const std::function<absl::Status(const std::string& directory)>& write,
    bool is_interim) {
  std::string name = StepName(step);
  for (int copy = 2; IsThere(PathOf(name)); ++copy) {
    name = absl::StrCat(StepName(step), "-", copy);
  }
  const std::string unfinished = PathOf(UnfinishedName(name));
  ETC_RETURN_IF_ERROR(RemoveTree(unfinished));
  ETC_RETURN_IF_ERROR(CreateDirectories(unfinished));
  absl::Status written = write(unfinished);
  if (written.ok()) {
    written = WriteCheckpointOwner(
        {.name = name, .run = run_, .is_interim = is_interim}, unfinished);
  }
  if (!written.ok()) {
    RemoveTree(unfinished).IgnoreError();  // the first error is the cause
    return written;
  }
  ETC_RETURN_IF_ERROR(SyncDirectory(unfinished));
  ETC_RETURN_IF_ERROR(RenameEntry(unfinished, PathOf(name)));
  CheckpointRecord record = record_;
  record.run = run_;
  record.last = name;
  ETC_ASSIGN_OR_RETURN(record.checkpoints[name], Recorded(name));
  Supersede(&record);
  return Commit(std::move(record));
}

absl::Status CheckpointStore::NoteEvaluation(const Metrics& scores,
                                             bool is_best) {
  if (record_.last.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory_, " has no checkpoint to mark as the best"));
  }
  CheckpointRecord record = record_;
  RecordedCheckpoint& last = record.checkpoints[record.last];
  last.scores = scores;
  last.is_interim = false;
  if (is_best) {
    record.best = record.last;
  }
  Supersede(&record);
  return Commit(std::move(record));
}

absl::Status CheckpointStore::MarkAsBest(int64_t step) {
  CheckpointRecord record = record_;
  const auto before = record.checkpoints.find(record.best);
  if (before != record.checkpoints.end() && before->second.step == step) {
    return absl::OkStatus();
  }
  // Names of one step are in the order in which they were given.
  for (const auto& [name, checkpoint] : record.checkpoints) {
    if (checkpoint.step == step) {
      record.best = name;
    }
  }
  Supersede(&record);
  return Commit(std::move(record));
}

std::map<std::string, RecordedCheckpoint> CheckpointStore::Present() const {
  CheckpointRecord record = record_;
  if (run_.empty()) {
    CheckpointSurvey found = SurveyCheckpoints(directory_);
    record = std::move(found.record);
    for (const std::string& name : {found.last, found.best}) {
      record.checkpoints.try_emplace(
          name, RecordedCheckpoint{.step = StepOfCheckpoint(name)});
    }
    record.checkpoints.erase("");
  }
  std::erase_if(record.checkpoints, [&](const auto& entry) {
    return !IsThere(PathOf(entry.first));
  });
  return std::move(record.checkpoints);
}

bool CheckpointStore::HasCheckpoint(int64_t step) const {
  const auto present = Present();
  return std::any_of(present.begin(), present.end(), [step](const auto& entry) {
    return entry.second.step == step;
  });
}

std::vector<RecordedCheckpoint> CheckpointStore::evaluated() const {
  std::vector<RecordedCheckpoint> found;
  for (const auto& [name, checkpoint] : Present()) {
    if (!checkpoint.scores.empty()) {
      found.push_back(checkpoint);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const RecordedCheckpoint& a,
                      const RecordedCheckpoint& b) { return a.step < b.step; });
  return found;
}

std::optional<std::string> CheckpointStore::last() const {
  const std::string name =
      run_.empty() ? SurveyCheckpoints(directory_).last : record_.last;
  return name.empty() ? std::nullopt : std::optional(PathOf(name));
}

std::optional<std::string> CheckpointStore::best() const {
  const std::string name =
      run_.empty() ? SurveyCheckpoints(directory_).best : record_.best;
  return name.empty() ? std::nullopt : std::optional(PathOf(name));
}

void CheckpointStore::PointLink(const std::string& link,
                                const std::string& name) {
  const std::string path = PathOf(link);
  if (TargetOf(path) == name) {
    return;
  }
  absl::Status pointed;
  if (!name.empty()) {
    pointed = ReplaceLink(path, name, PathOf(UnfinishedName(link)));
  }
  // One that leads to another checkpoint would be followed.
  if ((name.empty() || !pointed.ok()) &&
      absl::StartsWith(TargetOf(path), "step-")) {
    FileOperations::Current().Unlink(path);
  }
  if (!pointed.ok() && !said_no_links_) {
    said_no_links_ = true;
    messages_.push_back(absl::StrCat(
        "no link `", link, "` in ", directory_, " (", pointed.message(), "): ",
        kRecordFile, " says which checkpoints are the last and the ", "best"));
  }
}

bool CheckpointStore::IsCheckpointOf(const std::string& name,
                                     const std::string& run) const {
  const absl::StatusOr<CheckpointOwner> owner =
      ReadCheckpointOwner(PathOf(name));
  return IsCheckpointName(name) && IsKnownDirectory(PathOf(name)) &&
         owner.ok() && owner->run == run && owner->name == name;
}

bool CheckpointStore::IsRemovable(const std::string& name,
                                  const std::string& run) const {
  const std::string path = PathOf(name);
  if (name == "last" || name == "best") {
    return absl::StartsWith(TargetOf(path), "step-");
  }
  if (name == kOwnerFile || name == kRecordFile) {
    return !IsKnownDirectory(path);
  }
  if (absl::EndsWith(name, UnfinishedCheckpoint("", run))) {
    return true;
  }
  return IsCheckpointOf(name, run);
}

absl::Status CheckpointStore::CheckRemovable() const {
  if (!IsThere(directory_)) {
    return absl::OkStatus();
  }
  const CheckpointSurvey found = SurveyCheckpoints(directory_);
  ETC_RETURN_IF_ERROR(found.refusal);
  ETC_ASSIGN_OR_RETURN(std::vector<std::string> names, Names());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!IsRemovable(name, found.run)) {
      return absl::FailedPreconditionError(
          absl::StrCat(PathOf(name),
                       " is not of the run that is to be replaced: move it "
                       "away, or choose another output directory"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::BeginRemoval() {
  ETC_RETURN_IF_ERROR(CheckRemovable());
  if (!IsThere(directory_)) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(TakeOver());
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  CheckpointRecord record;
  record.run = run_;
  for (const std::string& name : names) {
    if (IsCheckpointOf(name, run_)) {
      record.superseded.insert(name);
    }
  }
  ETC_RETURN_IF_ERROR(WriteCheckpointRecord(record, directory_));
  record_ = std::move(record);
  return absl::OkStatus();
}

absl::Status CheckpointStore::FinishRemoval() {
  if (!IsThere(directory_)) {
    return absl::OkStatus();
  }
  PointLink("last", "");
  PointLink("best", "");
  ETC_RETURN_IF_ERROR(DeleteSuperseded());
  FileOperations& operations = FileOperations::Current();
  for (const char* file : {kRecordFile, kOwnerFile}) {
    operations.Unlink(PathOf(file));
  }
  ETC_RETURN_IF_ERROR(SyncDirectory(directory_));
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> left, Names());
  return left.empty() ? absl::OkStatus()
                      : absl::UnknownError(absl::StrCat(
                            PathOf(left.front()), " could not be removed"));
}

absl::Status CheckpointStore::DeleteUnfinished() const {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  absl::Status first_error;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, UnfinishedName(""))) {
      first_error.Update(RemoveTree(PathOf(name)));
    }
  }
  return first_error;
}

absl::Status CheckpointStore::DeleteSuperseded() const {
  if (record_.superseded.empty()) {
    return absl::OkStatus();
  }
  std::set<std::string> linked;  // by any link, also a user's
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  for (const std::string& name : names) {
    const std::string target = TargetOf(PathOf(name));
    if (!target.empty() && !absl::EndsWith(name, UnfinishedName(""))) {
      linked.insert(EntryOf(target));
    }
  }
  absl::Status first_error;
  for (const std::string& name : record_.superseded) {
    if (linked.count(name) != 0 || !IsCheckpointOf(name, run_)) {
      continue;
    }
    // Renamed first: should the deletion be interrupted, the new name still
    // proves that it is this run's.
    const std::string unfinished = PathOf(UnfinishedName(name));
    absl::Status deleted = RemoveTree(unfinished);
    if (deleted.ok()) {
      deleted = RenameEntry(PathOf(name), unfinished);
    }
    if (deleted.ok()) {
      deleted = RemoveTree(unfinished);
    }
    first_error.Update(deleted);
  }
  return first_error;
}

void CheckpointStore::NoteDeletion(const absl::Status& status) {
  if (!status.ok() && status != last_deletion_) {
    warnings_.push_back(absl::StrCat(
        "a former checkpoint could not be deleted: ", status.message()));
  }
  last_deletion_ = status;
}

absl::Status CheckpointStore::WithLastGood(const absl::Status& status) const {
  if (!absl::IsAborted(status)) {
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
