#include "tasks/output/checkpoint_record.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

using Json = nlohmann::json;

std::string PathOf(const std::string& directory) {
  return absl::StrCat(directory, "/", kRecordFile);
}

constexpr char kShouldBeName[] =
    "should be the name of a directory beside the file";

// The name that a field holds, which is to be one in the same directory.
std::string NameIn(const std::string& field, JsonObjectReader* reader) {
  std::string name;
  reader->Optional(field, &name);
  if (!name.empty() && !IsPlainBaseName(name)) {
    reader->Fail(field, kShouldBeName);
  }
  return name;
}

absl::StatusOr<RecordedCheckpoint> CheckpointFromJson(
    const Json& json, const std::string& where) {
  RecordedCheckpoint checkpoint;
  JsonObjectReader reader(json, where);
  reader.Required("step", &checkpoint.step);
  if (checkpoint.step < 0) {
    reader.Fail("step", "should be at least 0");
  }
  const Json* scores = reader.Raw("scores", /*required=*/true);
  reader.Raw("weights", /*required=*/false);  // of earlier builds
  reader.Optional("interim", &checkpoint.is_interim);
  ETC_RETURN_IF_ERROR(reader.Finish());
  for (const auto& [name, value] : scores->items()) {
    checkpoint.scores.emplace_back(
        name, value.is_number() ? value.get<double>() : std::nan(""));
  }
  return checkpoint;
}

absl::StatusOr<CheckpointRecord> RecordFromJson(const Json& json,
                                                const std::string& path) {
  CheckpointRecord record;
  JsonObjectReader reader(json, path);
  reader.Required("run", &record.run);
  if (!IsPlainBaseName(record.run)) {
    reader.Fail("run", "should not be a path");
  }
  record.last = NameIn("last", &reader);
  record.best = NameIn("best", &reader);
  std::vector<std::string> superseded;
  reader.Required("superseded", &superseded);
  if (!std::all_of(superseded.begin(), superseded.end(), IsPlainBaseName)) {
    reader.Fail("superseded", kShouldBeName);
  }
  record.superseded.insert(superseded.begin(), superseded.end());
  const Json* checkpoints = reader.Raw("checkpoints", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish());
  for (const auto& [name, checkpoint] : checkpoints->items()) {
    if (!IsPlainBaseName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": checkpoints: ", QuotedName(name), " ", kShouldBeName));
    }
    ETC_ASSIGN_OR_RETURN(
        record.checkpoints[name],
        CheckpointFromJson(checkpoint, absl::StrCat(path, ": ", name)));
  }
  return record;
}

}  // namespace

absl::Status WriteCheckpointRecord(const CheckpointRecord& record,
                                   const std::string& directory) {
  Json checkpoints = Json::object();
  for (const auto& [name, checkpoint] : record.checkpoints) {
    Json scores = Json::object();
    for (const auto& [metric, value] : checkpoint.scores) {
      scores[metric] = value;
    }
    checkpoints[name] = {{"step", checkpoint.step}, {"scores", scores}};
    if (checkpoint.is_interim) {
      checkpoints[name]["interim"] = true;
    }
  }
  Json json = {{"run", record.run},
               {"last", record.last},
               {"checkpoints", checkpoints},
               {"superseded", record.superseded}};
  if (!record.best.empty()) {
    json["best"] = record.best;
  }
  return WriteSealedJson(PathOf(directory), std::move(json));
}

absl::StatusOr<CheckpointRecord> ReadCheckpointRecord(
    const std::string& directory) {
  const std::string path = PathOf(directory);
  ETC_ASSIGN_OR_RETURN(const Json json, ReadSealedJson(path));
  absl::StatusOr<CheckpointRecord> record = RecordFromJson(json, path);
  if (!record.ok()) {
    return absl::DataLossError(record.status().message());
  }
  return record;
}

}  // namespace etc
