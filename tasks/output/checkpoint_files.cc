#include "tasks/output/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/file_operations.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/output/sealed_json.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A field of owner.json.
constexpr char kInterim[] = "interim";

absl::StatusOr<CheckpointFile> DigestCheckpointFile(const std::string& path) {
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  CheckpointFile digest = {.bytes = file.size()};
  std::string piece;
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(std::min(kPieceBytes, file.size() - at));
    ETC_RETURN_IF_ERROR(file.Read(at, piece.size(), piece.data()));
    digest.crc32c = ExtendCrc32c(digest.crc32c, piece);
  }
  return digest;
}

// The text in `json[field]`; empty if there is none.
std::string TextIn(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>()
                                                   : std::string();
}

// Returns true for a path that stays in its directory: "punkt/names.tab". The
// checksum of owner.json is no proof that a run wrote it.
bool StaysWithin(absl::string_view path) {
  const std::vector<absl::string_view> names = absl::StrSplit(path, '/');
  return std::all_of(names.begin(), names.end(), IsPlainBaseName);
}

absl::Status CheckSize(const std::string& path, const CheckpointFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return absl::DataLossError(absl::StrCat(
        path, " is not there, but was written with the checkpoint"));
  }
  const uint64_t bytes = fs::file_size(path, error);
  if (error || bytes != file.bytes) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: it should have ", file.bytes,
                     " bytes, as it was written, but has ", bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckContents(const std::string& path,
                           const CheckpointFile& file) {
  ETC_RETURN_IF_ERROR(CheckSize(path, file));
  ETC_ASSIGN_OR_RETURN(const CheckpointFile found, DigestCheckpointFile(path));
  if (found == file) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      path, " is damaged: its CRC-32C should be ", CrcText(file.crc32c),
      ", as it was written, but is ", CrcText(found.crc32c)));
}

// {"model.safetensors": {"bytes": 438, "crc32c": "0x1badf00d"}, ...}
Json FilesToJson(const CheckpointFiles& files) {
  Json json = Json::object();
  for (const auto& [path, file] : files) {
    json[path] = {{"bytes", file.bytes}, {"crc32c", CrcText(file.crc32c)}};
  }
  return json;
}

absl::StatusOr<CheckpointFiles> FilesFromJson(const Json& json,
                                              const std::string& source) {
  CheckpointFiles files;
  if (!json.is_object()) {
    return absl::DataLossError(
        absl::StrCat(source, ": a list of files should be an object"));
  }
  for (const auto& [path, entry] : json.items()) {
    if (!StaysWithin(path)) {
      return absl::DataLossError(
          absl::StrCat(source, ": ", QuotedName(path),
                       " should be the path of a file in the checkpoint"));
    }
    CheckpointFile& file = files[path];
    if (!entry.is_object() || !entry.contains("bytes") ||
        !entry["bytes"].is_number_unsigned() ||
        !absl::SimpleHexAtoi(TextIn(entry, "crc32c"), &file.crc32c)) {
      return absl::DataLossError(
          absl::StrCat(source, ": ", path, " should have bytes and crc32c"));
    }
    file.bytes = entry["bytes"].get<uint64_t>();
  }
  return files;
}

}  // namespace

absl::Status WriteCheckpointOwner(CheckpointOwner owner,
                                  const std::string& directory) {
  owner.files.clear();
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file()) {
      const std::string path = entry->path().string();
      ETC_ASSIGN_OR_RETURN(
          owner.files[entry->path().lexically_relative(directory).string()],
          DigestCheckpointFile(path));
    }
  }
  if (error) {
    return ErrnoStatus(error.value(), "list", directory);
  }
  Json json = {{"name", owner.name},
               {"run", owner.run},
               {"files", FilesToJson(owner.files)}};
  if (owner.is_interim) {
    json[kInterim] = true;
  }
  return WriteSealedJson(absl::StrCat(directory, "/", kOwnerFile),
                         std::move(json));
}

absl::StatusOr<CheckpointOwner> ReadCheckpointOwner(
    const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kOwnerFile);
  ETC_ASSIGN_OR_RETURN(const Json json, ReadSealedJson(path));
  CheckpointOwner owner = {.name = TextIn(json, "name"),
                           .run = TextIn(json, "run")};
  if (owner.name.empty() || owner.run.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, " is not that of a checkpoint"));
  }
  if (!IsPlainBaseName(owner.name) || !IsPlainBaseName(owner.run)) {
    return absl::DataLossError(
        absl::StrCat(path, ": name and run should not be paths, but are ",
                     QuotedName(owner.name), " and ", QuotedName(owner.run)));
  }
  ETC_ASSIGN_OR_RETURN(owner.files,
                       FilesFromJson(json.value("files", Json()), path));
  const auto interim = json.find(kInterim);
  owner.is_interim = interim != json.end() && *interim == true;
  return owner;
}

bool IsAverage(const std::string& directory) {
  const absl::StatusOr<CheckpointOwner> owner = ReadCheckpointOwner(directory);
  return owner.ok() && owner->files.contains(kAverageFile) &&
         owner->name == fs::path(directory).filename().string();
}

absl::Status CheckCheckpointSizes(const std::string& directory,
                                  const CheckpointOwner& owner) {
  for (const auto& [name, file] : owner.files) {
    const std::string path = absl::StrCat(directory, "/", name);
    std::error_code ignored;
    // People may edit JSON files, but not take them away.
    if (!absl::EndsWith(name, ".json") || !fs::exists(path, ignored)) {
      ETC_RETURN_IF_ERROR(CheckSize(path, file));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCheckpointFiles(const std::string& path, CheckpointUse use) {
  std::error_code ignored;
  const bool is_directory = fs::is_directory(path, ignored);
  const fs::path folder = fs::path(path).parent_path();
  const std::string directory = is_directory     ? path
                                : folder.empty() ? "."
                                                 : folder.string();
  const absl::StatusOr<CheckpointOwner> owner = ReadCheckpointOwner(directory);
  if (absl::IsNotFound(owner.status())) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(owner.status());
  for (const auto& [name, file] : owner->files) {
    const bool is_meant =
        is_directory
            ? !absl::EndsWith(name, ".json") &&
                  (use == CheckpointUse::kResume || name != kTrainingStateFile)
            : fs::path(path).filename().string() == name;
    if (is_meant) {
      ETC_RETURN_IF_ERROR(
          CheckContents(absl::StrCat(directory, "/", name), file));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
