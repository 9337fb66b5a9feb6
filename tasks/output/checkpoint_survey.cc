#include "tasks/output/checkpoint_survey.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "nlohmann/json.hpp"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kUnfinishedMark[] = ".unfinished-";

// The step and the number of the copy: (120, 2) of "step-00000120-2".
using StepAndCopy = std::pair<int64_t, int64_t>;

std::optional<StepAndCopy> ParseName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "step-")) {
    return std::nullopt;
  }
  StepAndCopy parsed = {0, 1};
  const size_t dash = name.find('-');
  if (!absl::SimpleAtoi(name.substr(0, dash), &parsed.first) ||
      (dash != absl::string_view::npos &&
       !absl::SimpleAtoi(name.substr(dash + 1), &parsed.second))) {
    return std::nullopt;
  }
  return parsed;
}

// A directory that is a checkpoint, or should be one.
struct Candidate {
  std::string entry;  // its name in the directory
  CheckpointOwner owner;
  StepAndCopy step;      // by the name in owner.json
  std::string weakness;  // why it is not whole; empty: it is

  bool operator<(const Candidate& other) const { return step < other.step; }
};

class Surveyor {
 public:
  explicit Surveyor(const std::string& directory) : directory_(directory) {}
  CheckpointSurvey Survey();

 private:
  std::string PathOf(const std::string& entry) const {
    return absl::StrCat(directory_, "/", entry);
  }
  void ReadRecord();
  void FindCandidates();
  void AddCandidate(const std::string& entry);
  void AddUnnamed(const std::string& entry);
  void FindRun();
  void LeaveOutRemoved();
  void ListWhole();
  // Returns the target of the link; empty if it is no link to an entry.
  std::string Target(const std::string& link) const;
  const Candidate* Find(const std::string& entry) const;
  bool IsWhole(const std::string& entry) const {
    const Candidate* found = Find(entry);
    return found != nullptr && found->weakness.empty();
  }
  // Whole and of this run.
  std::vector<const Candidate*> Whole() const;
  bool WasBest(const Candidate& candidate) const;
  void ChooseLast();
  void ChooseBest();
  std::string List() const;
  void Refuse(const std::string& reason);

  const std::string directory_;
  CheckpointSurvey survey_;
  bool has_record_ = false;
  std::string record_fault_;  // why it is not valid
  std::vector<Candidate> candidates_;
};

void Surveyor::ReadRecord() {
  absl::StatusOr<CheckpointRecord> record = ReadCheckpointRecord(directory_);
  if (record.ok()) {
    has_record_ = true;
    survey_.record = *std::move(record);
  } else if (!absl::IsNotFound(record.status())) {
    record_fault_ = std::string(record.status().message());
  }
}

void Surveyor::FindCandidates() {
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(entry->symlink_status(ignored))) {
      AddCandidate(entry->path().filename().string());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    survey_.refusal = ErrnoStatus(error.value(), "list", directory_);
  }
  std::sort(candidates_.begin(), candidates_.end());
}

// Adds a checkpoint that was written, but whose run was killed before it got
// its name. A checkpoint being deleted has such a name too.
void Surveyor::AddUnnamed(const std::string& entry) {
  const absl::StatusOr<CheckpointOwner> owner =
      ReadCheckpointOwner(PathOf(entry));
  std::error_code ignored;
  if (owner.ok() && entry == UnfinishedCheckpoint(owner->name, owner->run) &&
      IsCheckpointName(owner->name) &&
      !survey_.record.superseded.contains(owner->name) &&
      !fs::exists(PathOf(owner->name), ignored) &&
      CheckCheckpointSizes(PathOf(entry), *owner).ok()) {
    candidates_.push_back(
        {.entry = entry, .owner = *owner, .step = *ParseName(owner->name)});
  }
}

void Surveyor::AddCandidate(const std::string& entry) {
  if (absl::StrContains(entry, kUnfinishedMark)) {
    AddUnnamed(entry);
    return;
  }
  const bool is_followed_link = entry == "last" || entry == "best";
  const std::optional<StepAndCopy> step = ParseName(entry);
  std::error_code ignored;
  if ((!is_followed_link && !step.has_value()) ||
      fs::is_empty(PathOf(entry), ignored)) {
    return;
  }
  Candidate candidate = {.entry = entry, .step = step.value_or(StepAndCopy())};
  const absl::StatusOr<CheckpointOwner> owner =
      ReadCheckpointOwner(PathOf(entry));
  if (!owner.ok()) {
    candidate.weakness =
        absl::IsNotFound(owner.status())
            ? absl::StrCat("it has no ", kOwnerFile, " to prove it whole")
            : std::string(owner.status().message());
    candidates_.push_back(std::move(candidate));
    return;
  }
  const std::optional<StepAndCopy> owned = ParseName(owner->name);
  if (!owned.has_value() || (!is_followed_link && owner->name != entry)) {
    return;  // a copy that somebody made
  }
  if (owner->files.contains(kAverageFile)) {
    return;  // no run goes on from an average
  }
  candidate.owner = *owner;
  candidate.step = *owned;
  candidate.weakness = std::string(
      CheckCheckpointSizes(PathOf(entry), candidate.owner).message());
  candidates_.push_back(std::move(candidate));
}

void Surveyor::FindRun() {
  const absl::StatusOr<Json> owner = ReadSealedJson(PathOf(kOwnerFile));
  if (owner.ok() && owner->contains("run") && (*owner)["run"].is_string() &&
      IsPlainBaseName((*owner)["run"].get_ref<const std::string&>())) {
    survey_.run = (*owner)["run"].get<std::string>();
    if (has_record_ && survey_.record.run != survey_.run) {
      has_record_ = false;
      survey_.record = {};
      record_fault_ =
          absl::StrCat(PathOf(kRecordFile), " is that of another run");
    }
    return;
  }
  if (has_record_) {
    survey_.run = survey_.record.run;
    return;
  }
  std::set<std::string> runs;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weakness.empty()) {
      runs.insert(candidate.owner.run);
    }
  }
  if (runs.size() == 1) {
    survey_.run = *runs.begin();
    survey_.messages.push_back(absl::StrCat(
        PathOf(kOwnerFile), " is missing or damaged: the run is that of the ",
        "checkpoints, which is one"));
  }
}

// A record without a last checkpoint is that of a run which is being removed.
void Surveyor::LeaveOutRemoved() {
  if (has_record_ && survey_.record.last.empty()) {
    std::erase_if(candidates_, [this](const Candidate& candidate) {
      return survey_.record.superseded.contains(candidate.entry);
    });
  }
}

void Surveyor::ListWhole() {
  for (const Candidate* candidate : Whole()) {
    const auto recorded =
        survey_.record.checkpoints.find(candidate->owner.name);
    survey_.whole.push_back(
        {.entry = candidate->entry,
         .step = candidate->step.first,
         .is_interim = recorded == survey_.record.checkpoints.end()
                           ? candidate->owner.is_interim
                           : recorded->second.is_interim});
  }
}

std::string Surveyor::Target(const std::string& link) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(PathOf(link), error);
  return !error && IsPlainBaseName(target.string()) ? target.string() : "";
}

const Candidate* Surveyor::Find(const std::string& entry) const {
  const auto found = std::find_if(
      candidates_.begin(), candidates_.end(),
      [&](const Candidate& candidate) { return candidate.entry == entry; });
  return found == candidates_.end() ? nullptr : &*found;
}

// In ascending order; of one that is there twice, the one under its own name.
std::vector<const Candidate*> Surveyor::Whole() const {
  std::vector<const Candidate*> whole;
  for (const Candidate& candidate : candidates_) {
    const bool is_copy = candidate.entry != candidate.owner.name &&
                         IsWhole(candidate.owner.name);
    if (candidate.weakness.empty() && candidate.owner.run == survey_.run &&
        !is_copy) {
      whole.push_back(&candidate);
    }
  }
  return whole;
}

bool Surveyor::WasBest(const Candidate& candidate) const {
  const absl::StatusOr<Json> evaluation =
      ReadSealedJson(PathOf(candidate.entry) + "/evaluation.json");
  if (!evaluation.ok() || !evaluation->is_object()) {
    return false;
  }
  const auto step = evaluation->find("step");
  const auto best = evaluation->find("best_step");
  return step != evaluation->end() && best != evaluation->end() &&
         step->is_number_integer() && *step == *best;
}

std::string Surveyor::List() const {
  std::vector<std::string> lines;
  for (const Candidate& candidate : candidates_) {
    lines.push_back(
        absl::StrCat(candidate.entry, " (",
                     !candidate.weakness.empty()          ? candidate.weakness
                     : candidate.owner.run != survey_.run ? "of another run"
                                                          : "whole",
                     ")"));
  }
  return lines.empty() ? "it has no checkpoints"
                       : absl::StrCat("it has ", absl::StrJoin(lines, ", "));
}

void Surveyor::Refuse(const std::string& reason) {
  survey_.refusal = absl::FailedPreconditionError(absl::StrCat(
      directory_, ": ", reason, "; ", List(),
      "; nothing was changed: restore what is missing, or move away what is "
      "not to be gone on from"));
}

void Surveyor::ChooseLast() {
  // `last` as the record or else the link says.
  const std::string link = Target("last");
  const std::string said = has_record_ ? survey_.record.last : link;
  const std::vector<const Candidate*> whole = Whole();
  const Candidate* const newest = whole.empty() ? nullptr : whole.back();
  const std::string by = has_record_ ? kRecordFile : "the link last";
  if (!record_fault_.empty()) {
    survey_.messages.push_back(record_fault_);
  }
  const Candidate* const named = Find(said);
  if (named != nullptr && !named->weakness.empty()) {
    Refuse(absl::StrCat(by, " names ", said, ", which is not whole"));
    return;
  }
  if (named != nullptr && (newest == nullptr || newest->step <= named->step)) {
    survey_.last = said;
    return;
  }
  if (newest == nullptr) {
    if (!said.empty()) {
      Refuse(absl::StrCat(by, " names ", said, ", which is not there"));
    } else if (!candidates_.empty()) {
      Refuse("none of its checkpoints is whole and of this run");
    }
    return;
  }
  survey_.last = newest->entry;
  survey_.messages.push_back(absl::StrCat(
      directory_, ": ",
      said.empty() ? "neither checkpoints.json nor a link says which "
                     "checkpoint is the last"
      : named == nullptr
          ? absl::StrCat(by, " names ", said, ", which is not there")
          : absl::StrCat(newest->entry, " is newer than ", said, ", which ", by,
                         " names"),
      ": going on from ", newest->entry, ", the newest that is whole; ",
      List()));
}

void Surveyor::ChooseBest() {
  const std::string said = has_record_ ? survey_.record.best : Target("best");
  const std::vector<const Candidate*> whole = Whole();
  const auto is_named = [&](const Candidate* candidate) {
    return candidate->entry == said;
  };
  if (std::any_of(whole.begin(), whole.end(), is_named)) {
    survey_.best = said;
    return;
  }
  if (has_record_ && said.empty()) {
    return;
  }
  for (auto candidate = whole.rbegin(); candidate != whole.rend();
       ++candidate) {
    if (WasBest(**candidate)) {
      survey_.best = (*candidate)->entry;
      break;
    }
  }
  if (said.empty() && survey_.best.empty()) {
    return;  // none was evaluated
  }
  survey_.message_of_best = absl::StrCat(
      directory_, ": ",
      said.empty() ? "nothing says which checkpoint is the best"
                   : absl::StrCat("the best checkpoint, ", said,
                                  ", is not there or not whole"),
      survey_.best.empty()
          ? "; no other one was the best when it was evaluated"
          : absl::StrCat(": taking ", survey_.best,
                         ", the newest that was the best when it was "
                         "evaluated"));
  survey_.messages.push_back(survey_.message_of_best);
}

CheckpointSurvey Surveyor::Survey() {
  ReadRecord();
  FindCandidates();
  if (!survey_.refusal.ok()) {
    return std::move(survey_);
  }
  FindRun();
  LeaveOutRemoved();
  ListWhole();
  ChooseLast();
  if (survey_.refusal.ok() && !survey_.last.empty()) {
    ChooseBest();
  }
  return std::move(survey_);
}

}  // namespace

std::string UnfinishedCheckpoint(const std::string& name,
                                 const std::string& run) {
  return absl::StrCat(name, kUnfinishedMark, run);
}

bool IsCheckpointName(const std::string& name) {
  return ParseName(name).has_value();
}

int64_t StepOfCheckpoint(const std::string& name) {
  return ParseName(name).value_or(StepAndCopy()).first;
}

CheckpointSurvey SurveyCheckpoints(const std::string& directory) {
  return Surveyor(directory).Survey();
}

}  // namespace etc
