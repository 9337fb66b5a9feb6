#include "tasks/output/find_checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "tasks/metrics.h"
#include "tasks/output/checkpoint_survey.h"
#include "tasks/output/grid_results.h"
#include "tasks/output/results.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

bool IsCheckpoint(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "run_config.json", ignored);
}

// The path of a checkpoint in a store: by the link, where it leads there.
std::string PathOfCheckpoint(const fs::path& checkpoints, const char* link,
                             const std::string& name) {
  std::error_code error;
  return (fs::read_symlink(checkpoints / link, error) == name
              ? checkpoints / link
              : checkpoints / name)
      .string();
}

// Returns the entry of the best checkpoint in a store. One that is recorded,
// but damaged, is not silently replaced by another: its reader reports the
// damage.
std::string BestEntry(const fs::path& checkpoints,
                      const CheckpointSurvey& found) {
  return IsCheckpoint(checkpoints / found.record.best) ? found.record.best
                                                       : found.best;
}

// Returns the reason why the entry BestEntry is taken, with the whole
// checkpoint that could be named in its place.
std::string ReasonOfBest(const fs::path& checkpoints,
                         const CheckpointSurvey& found) {
  const std::string& whole = found.best.empty() ? found.last : found.best;
  std::vector<std::string> said = found.messages;
  if (!found.message_of_best.empty() &&
      BestEntry(checkpoints, found) != found.best) {
    std::erase(said, found.message_of_best);
    said.push_back(absl::StrCat(
        "it is not whole",
        whole.empty()
            ? ""
            : absl::StrCat(", ", (checkpoints / whole).string(), " is")));
  }
  return said.empty()
             ? "the best"
             : absl::StrCat("the best (", absl::StrJoin(said, "; "), ")");
}

// Returns the checkpoint of one seed; nothing if the seed has none.
std::optional<FoundCheckpoint> CheckpointOfSeed(const fs::path& directory) {
  const fs::path checkpoints = directory / "checkpoints";
  const CheckpointSurvey found = SurveyCheckpoints(checkpoints.string());
  const std::string best = BestEntry(checkpoints, found);
  // Refused, it is damaged: its reader says so.
  const std::string& last = found.last.empty() ? found.record.last : found.last;
  const std::string said =
      found.messages.empty()
          ? ""
          : absl::StrCat(" (", absl::StrJoin(found.messages, "; "), ")");
  if (!best.empty() && IsCheckpoint(checkpoints / best)) {
    return FoundCheckpoint{PathOfCheckpoint(checkpoints, "best", best),
                           ReasonOfBest(checkpoints, found)};
  }
  if (!last.empty() && IsCheckpoint(checkpoints / last)) {
    return FoundCheckpoint{
        PathOfCheckpoint(checkpoints, "last", last),
        absl::StrCat("the last, for none was evaluated", said)};
  }
  // Directories that no CheckpointStore wrote may have links or directories of
  // these names.
  for (const auto& [name, reason] :
       {std::pair("best", "the best"),
        std::pair("last", "the last, for none was evaluated")}) {
    if (IsCheckpoint(checkpoints / name)) {
      return FoundCheckpoint{(checkpoints / name).string(), reason};
    }
  }
  return std::nullopt;
}

// The directories seed-N of a run that have a checkpoint, by seed.
std::map<int64_t, FoundCheckpoint> CheckpointsOfSeeds(const fs::path& run) {
  std::map<int64_t, FoundCheckpoint> found;
  for (const auto& [seed, directory] : SeedDirectories(run.string())) {
    if (auto checkpoint = CheckpointOfSeed(directory)) {
      found.emplace(seed, *std::move(checkpoint));
    }
  }
  return found;
}

// The best of several.
absl::StatusOr<FoundCheckpoint> BestOfSeeds(
    const fs::path& run, const std::map<int64_t, FoundCheckpoint>& seeds) {
  const std::string path = (run / "summary.json").string();
  RunSummary summary;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    ETC_ASSIGN_OR_RETURN(summary, ReadRunSummary(run.string()));
  }
  std::vector<std::string> names;
  std::vector<std::string> others;
  std::optional<std::pair<double, FoundCheckpoint>> best;
  bool all_scored = true;
  for (const auto& [seed, checkpoint] : seeds) {
    names.push_back((run / absl::StrCat("seed-", seed)).string());
    // Its score may be of other data, or by another model.
    if (summary.other_settings.contains(seed)) {
      others.push_back(absl::StrCat("seed-", seed));
      continue;
    }
    const auto score = summary.best.find(seed);
    if (score == summary.best.end()) {
      all_scored = false;
    } else if (!best.has_value() ||
               MainMetric{.lower_is_better = summary.lower_is_better}.IsBetter(
                   score->second, best->first)) {
      best.emplace(score->second, checkpoint);
    }
  }
  if (!all_scored || !best.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        run.string(), " has several seeds, and ", path,
        " does not have a finite score of each, which the end of the run puts "
        "there; name one of them: ",
        absl::StrJoin(names, ", ")));
  }
  best->second.reason = absl::StrCat(
      "the best of ",
      Counted(static_cast<int64_t>(seeds.size() - others.size()), "seed"),
      " by ", summary.main_metric, ", ", FormatScore(best->first),
      others.empty() ? "" : "; with other settings, and not compared: ",
      absl::StrJoin(others, ", "));
  return best->second;
}

// Returns true if the directory of a seed is that of a run, which has locked it
// or has a store there: weights may be in a directory of this name, too.
bool IsOfRun(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "lock", ignored) ||
         fs::exists(directory / "checkpoints", ignored);
}

// Returns the error of a run, or of one of its seeds, that has no checkpoint.
absl::Status CheckIsNoRun(const std::string& path) {
  std::map<int64_t, std::string> seeds = SeedDirectories(path);
  ETC_ASSIGN_OR_RETURN(const bool is_directory, IsDirectory(path));
  if (const std::optional<int64_t> own = SeedOf(path);
      own.has_value() && is_directory) {
    seeds.emplace(*own, path);
  }
  std::erase_if(seeds, [](const auto& seed) { return !IsOfRun(seed.second); });
  for (const auto& [seed, directory] : seeds) {
    ETC_RETURN_IF_ERROR(SurveyCheckpoints(directory + "/checkpoints").refusal);
  }
  return seeds.empty() ? absl::OkStatus()
                       : absl::FailedPreconditionError(
                             absl::StrCat(path, " has no checkpoint yet"));
}

// Finds the checkpoint of a run, or of one of its seeds.
absl::StatusOr<FoundCheckpoint> CheckpointOfRun(const std::string& path) {
  if (auto checkpoint = CheckpointOfSeed(path)) {
    return *std::move(checkpoint);
  }
  const std::map<int64_t, FoundCheckpoint> seeds = CheckpointsOfSeeds(path);
  if (seeds.size() == 1) {
    return seeds.begin()->second;
  }
  if (!seeds.empty()) {
    return BestOfSeeds(path, seeds);
  }
  ETC_RETURN_IF_ERROR(CheckIsNoRun(path));
  ETC_ASSIGN_OR_RETURN(const bool is_there, PathExists(path));
  return absl::NotFoundError(absl::StrCat(
      path, is_there ? "" : " does not exist: it",
      " should be a checkpoint of a trained model (with run_config.json), the "
      "output directory of a run (with seed-1 or others) or of a grid (with "
      "grid.json), or the directory of a seed (with checkpoints)"));
}

void AddFilesBelow(const fs::path& directory, std::vector<std::string>* files) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    files->push_back(entry->path().string());
  }
}

}  // namespace

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path) {
  if (IsCheckpoint(path)) {
    return FoundCheckpoint{.directory = path};
  }
  // checkpoints/best and last, where the file system has no links.
  const fs::path named(path);
  if (const std::string name = named.filename().string();
      name == "best" || name == "last") {
    const fs::path checkpoints = named.parent_path();
    const CheckpointSurvey found = SurveyCheckpoints(checkpoints.string());
    const bool is_best = name == "best";
    const std::string entry =
        is_best ? BestEntry(checkpoints, found) : found.last;
    if (!entry.empty() && IsCheckpoint(checkpoints / entry)) {
      return FoundCheckpoint{
          (checkpoints / entry).string(),
          is_best ? ReasonOfBest(checkpoints, found) : "the last"};
    }
  }
  ETC_ASSIGN_OR_RETURN(const FoundRun run, FindRun(path));
  ETC_ASSIGN_OR_RETURN(FoundCheckpoint found, CheckpointOfRun(run.directory));
  if (!run.reason.empty()) {
    absl::StrAppend(&found.reason, ", in ", run.reason);
  }
  return found;
}

std::vector<std::string> FilesOfCheckpoint(const std::string& directory) {
  std::vector<std::string> files;
  AddFilesBelow(directory, &files);
  const fs::path checkpoints = fs::path(directory).parent_path();
  if (checkpoints.filename() != "checkpoints") {
    return files;
  }
  AddFilesBelow(checkpoints, &files);
  const fs::path seed = checkpoints.parent_path();
  const fs::path run = seed.parent_path();
  for (const fs::path& above : {seed, run, run.parent_path()}) {
    for (const char* name :
         {"metrics.jsonl", "result.json", "summary.json", "grid.json"}) {
      files.push_back((above / name).string());
    }
  }
  return files;
}

}  // namespace etc
