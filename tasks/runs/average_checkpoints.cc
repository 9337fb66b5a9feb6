#include "tasks/runs/average_checkpoints.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/checkpoint_survey.h"
#include "tasks/output/results.h"
#include "tasks/train/training_state.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kModelFile[] = "model.safetensors";

// AverageOptions::last where it is unset, at most.
constexpr int64_t kMostByDefault = 10;

// The absolute path of a file or directory, without a slash at its end, behind
// which it has no name and is its own parent.
fs::path WholePath(const std::string& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

// The directories of the CheckpointStores of the seeds in `directory`.
std::vector<fs::path> StoresOfSeeds(const fs::path& directory) {
  std::vector<fs::path> stores;
  std::error_code ignored;
  for (const auto& [seed, run] : SeedDirectories(directory.string())) {
    const fs::path checkpoints = fs::path(run) / "checkpoints";
    if (fs::is_directory(checkpoints, ignored)) {
      stores.push_back(checkpoints);
    }
  }
  return stores;
}

// The same of all settings of the grid in `directory`, sorted.
std::vector<fs::path> StoresOfGrid(const fs::path& directory) {
  std::vector<fs::path> stores;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    for (const fs::path& store : StoresOfSeeds(entry->path())) {
      stores.push_back(store);
    }
  }
  std::sort(stores.begin(), stores.end());
  return stores;
}

// The directory of a CheckpointStore that `path` stands for.
absl::StatusOr<fs::path> FindStore(const std::string& path) {
  const fs::path given = WholePath(path);
  if (ReadCheckpointOwner(path).ok()) {
    return InvalidArgument(path,
                           " is one checkpoint: an average needs the directory "
                           "of its run");
  }
  for (const fs::path& candidate : {given, given / "checkpoints"}) {
    if (!SurveyCheckpoints(candidate.string()).whole.empty()) {
      return candidate;
    }
  }
  std::vector<fs::path> found = StoresOfSeeds(given);
  const bool is_grid = found.empty();
  if (is_grid) {
    found = StoresOfGrid(given);
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("there are no checkpoints in ",
                                            path,
                                            " that are whole and of one run"));
  }
  if (found.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has several ", is_grid ? "runs" : "seeds",
        "; name one of them: ",
        absl::StrJoin(found, ", ", [](std::string* out, const fs::path& store) {
          absl::StrAppend(out, store.parent_path().string());
        })));
  }
  return found.front();
}

// `train.keep_last` of the run as it wrote the checkpoint.
absl::StatusOr<int64_t> KeepLastOf(const std::string& checkpoint) {
  const std::string path = checkpoint + "/run_config.json";
  ETC_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  int64_t keep_last = TrainConfig().keep_last;
  JsonObjectReader run(json, path);
  if (const Json* object = run.Raw("train", /*required=*/false)) {
    JsonObjectReader train(*object, run.Where("train"));
    train.Optional("keep_last", &keep_last);
    ETC_RETURN_IF_ERROR(train.status());
  }
  ETC_RETURN_IF_ERROR(run.status());
  return keep_last;
}

// Selects the whole checkpoints of a store that train.keep_last kept, and not
// their scores: when each was written, it and keep_last - 1 before it stayed.
// The newest comes first.
absl::StatusOr<std::vector<CheckpointSurvey::Whole>> LastOnes(
    const fs::path& store) {
  std::vector<CheckpointSurvey::Whole> newest_first =
      SurveyCheckpoints(store.string()).whole;
  std::reverse(newest_first.begin(), newest_first.end());
  for (size_t i = 0; i < newest_first.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const int64_t keep_last,
                         KeepLastOf((store / newest_first[i].entry).string()));
    const size_t stayed =
        i + static_cast<size_t>(std::max<int64_t>(keep_last, 1));
    newest_first.resize(std::min(newest_first.size(), stayed));
  }
  return newest_first;
}

// One of the checkpoints that are averaged.
struct Source {
  std::string directory;
  TensorReader reader;
};

// The mean of a tensor that all sources have.
absl::StatusOr<torch::Tensor> Mean(const std::vector<Source>& sources,
                                   const std::string& name) {
  torch::Tensor sum;
  torch::Tensor last;
  for (const Source& source : sources) {
    ETC_ASSIGN_OR_RETURN(const torch::Tensor tensor, source.reader.Read(name));
    if (last.defined() && (tensor.sizes() != last.sizes() ||
                           tensor.scalar_type() != last.scalar_type())) {
      return InvalidArgument(source.directory, ": ", name, " should be as in ",
                             sources.front().directory,
                             ", but has another shape or type");
    }
    last = tensor;
    if (!tensor.is_floating_point()) {
      continue;
    }
    const torch::Tensor wide = tensor.scalar_type() == torch::kDouble
                                   ? tensor
                                   : tensor.to(torch::kFloat);
    sum = sum.defined() ? sum.add_(wide) : wide.clone();
  }
  return sum.defined() ? sum.div_(static_cast<double>(sources.size()))
                             .to(last.scalar_type())
                       : last;
}

absl::StatusOr<std::vector<Source>> OpenSources(
    const std::vector<std::string>& directories) {
  std::vector<Source> sources;
  for (const std::string& directory : directories) {
    const std::string path = absl::StrCat(directory, "/", kModelFile);
    ETC_RETURN_IF_ERROR(CheckCheckpointFiles(path));
    ETC_ASSIGN_OR_RETURN(TensorReader reader, TensorReader::Open(path));
    if (!sources.empty() && reader.Names() != sources.front().reader.Names()) {
      return InvalidArgument(directory, " should have the tensors of ",
                             sources.front().directory, ", but has others");
    }
    sources.push_back({directory, std::move(reader)});
  }
  return sources;
}

// Copies what the checkpoint was written with beside tensors.
absl::Status CopyFiles(const std::string& from, const std::string& to) {
  ETC_ASSIGN_OR_RETURN(const CheckpointOwner owner, ReadCheckpointOwner(from));
  for (const auto& [name, file] : owner.files) {
    if (name == kModelFile || name == kTrainingStateFile) {
      continue;
    }
    const fs::path target = fs::path(to) / name;
    ETC_RETURN_IF_ERROR(CreateDirectories(target.parent_path().string()));
    ETC_ASSIGN_OR_RETURN(const std::string contents,
                         ReadFile(absl::StrCat(from, "/", name)));
    ETC_RETURN_IF_ERROR(WriteFileAtomically(target.string(), contents));
  }
  return absl::OkStatus();
}

absl::Status WriteAverage(const CheckpointsToAverage& checkpoints,
                          const std::string& name,
                          const std::string& directory) {
  const std::string& newest = checkpoints.directories.back();
  ETC_RETURN_IF_ERROR(CreateDirectories(directory));
  ETC_RETURN_IF_ERROR(CopyFiles(newest, directory));
  ETC_ASSIGN_OR_RETURN(const std::vector<Source> sources,
                       OpenSources(checkpoints.directories));
  NamedTensors means;
  for (const std::string& tensor : sources.back().reader.Names()) {
    ETC_ASSIGN_OR_RETURN(means[tensor], Mean(sources, tensor));
  }
  ETC_RETURN_IF_ERROR(CheckFinite(
      absl::StrCat("the average of ", checkpoints.seed_directory), means));
  ETC_RETURN_IF_ERROR(WriteTensors(absl::StrCat(directory, "/", kModelFile),
                                   means, sources.back().reader.metadata()));
  std::vector<std::string> names;
  for (const std::string& path : checkpoints.directories) {
    names.push_back(fs::path(path).filename().string());
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/", kAverageFile),
      JsonText(Json{{"checkpoints", names}, {"steps", checkpoints.steps}},
               /*indent=*/2) +
          "\n"));
  ETC_ASSIGN_OR_RETURN(const CheckpointOwner owner,
                       ReadCheckpointOwner(newest));
  ETC_RETURN_IF_ERROR(
      WriteCheckpointOwner({.name = name, .run = owner.run}, directory));
  return SyncDirectory(directory);
}

// Checks that an average does not get a place where it would pass for a
// checkpoint of the run, or go with one.
absl::Status CheckIsOutside(const std::string& output, const fs::path& store) {
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(WholePath(output), ignored);
  const fs::path within =
      place.lexically_relative(fs::weakly_canonical(store, ignored));
  return within.empty() || *within.begin() == ".."
             ? absl::OkStatus()
             : InvalidArgument("the output ", output,
                               " should not be among the checkpoints of the "
                               "run, in ",
                               store.string(), ": choose another directory");
}

}  // namespace

absl::StatusOr<CheckpointsToAverage> FindCheckpointsToAverage(
    const AverageOptions& options) {
  TORCH_CHECK(options.last.value_or(1) >= 1, "the number of checkpoints to ",
              "average should be at least 1, but is ", *options.last);
  ETC_ASSIGN_OR_RETURN(const fs::path store, FindStore(options.directory));
  ETC_ASSIGN_OR_RETURN(const std::vector<CheckpointSurvey::Whole> last_ones,
                       LastOnes(store));
  std::map<int64_t, std::string> by_step;
  for (const CheckpointSurvey::Whole& kept : last_ones) {
    if (!kept.is_interim && kept.step <= options.up_to_step) {
      // The newest comes first.
      by_step.emplace(kept.step, (store / kept.entry).string());
    }
  }
  const int64_t found = std::ssize(by_step);
  const int64_t least = options.last.value_or(2);
  if (found < least) {
    return InvalidArgument(
        store.string(), " should have ", Counted(least, "checkpoint"),
        " to average, but has ", found,
        options.up_to_step < std::numeric_limits<int64_t>::max()
            ? absl::StrCat(" of up to ", options.up_to_step, " updates")
            : "",
        " (train.keep_last says how many a run keeps; older ones, kept for "
        "their scores, and those of a stop and of train.checkpoint_minutes do "
        "not count)");
  }
  CheckpointsToAverage result;
  result.seed_directory = store.parent_path().string();
  const int64_t last = options.last.value_or(std::min(found, kMostByDefault));
  for (auto i = std::prev(by_step.end(), last); i != by_step.end(); ++i) {
    result.steps.push_back(i->first);
    result.directories.push_back(i->second);
  }
  return result;
}

absl::Status AverageCheckpoints(const CheckpointsToAverage& checkpoints,
                                const std::string& output, bool overwrite) {
  const std::string named = WholePath(output).string();
  ETC_RETURN_IF_ERROR(CheckIsOutside(
      output, fs::path(checkpoints.directories.back()).parent_path()));
  ETC_ASSIGN_OR_RETURN(const bool is_there, EntryExists(named));
  if (is_there && !IsAverage(named)) {
    return absl::AlreadyExistsError(
        absl::StrCat(output, " is there already: choose another directory"));
  }
  ETC_RETURN_IF_ERROR(CheckMayReplace(named, overwrite));
  ETC_RETURN_IF_ERROR(RemoveAbandonedTemporaries(FolderOf(named)));
  const std::string unfinished = TemporaryName(named, /*number=*/0);
  const absl::Status written = WriteAverage(
      checkpoints, fs::path(named).filename().string(), unfinished);
  if (!written.ok()) {
    RemoveTree(unfinished).IgnoreError();  // the first error is the cause
    return written;
  }
  if (!is_there) {
    return RenameEntry(unfinished, named);
  }
  const absl::Status exchanged =
      ExchangeEntries(named, unfinished, TemporaryName(named, /*number=*/1));
  const absl::Status removed = RemoveTree(unfinished);
  return exchanged.ok() ? removed : exchanged;
}

}  // namespace etc
