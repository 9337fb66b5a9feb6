#include "etc/weights/formats/sharded_tensors.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/pytorch/pytorch_file.h"
#include "etc/weights/formats/safetensors/safetensors.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

// In the order in which they are looked for.
constexpr const char* kFiles[] = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};

// Refuses what no format begins like, such as a text, before its first bytes
// are taken for the length of a header. What may be safetensors has after its
// length of 8 bytes the brace of a JSON object.
absl::Status CheckBeginning(const std::string& path) {
  constexpr uint64_t kLengthBytes = 8;
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  if (file.size() <= kLengthBytes) {
    return absl::OkStatus();  // its reader says what is missing
  }
  constexpr uint64_t kShownBytes = 24;
  ETC_ASSIGN_OR_RETURN(const std::string beginning,
                       file.Read(0, std::min(file.size(), kShownBytes)));
  if (beginning[kLengthBytes] == '{') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " is not a weights file: it is neither safetensors nor a file of "
      "torch.save nor of a TensorFlow checkpoint, but begins with ",
      QuotedName(beginning),
      absl::StartsWith(beginning, "version https://git-lfs")
          ? ": a pointer of Git LFS, not yet the file itself"
          : "",
      absl::StartsWith(beginning, "<") ? ": a web page" : ""));
}

// One file, not an index.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenShard(
    const std::string& path) {
  // By its name, for what is no weights at all, such as a pointer of Git LFS,
  // should be called what it should have been.
  if (absl::EndsWith(path, ".bin") || PytorchFile::IsPytorch(path)) {
    ETC_ASSIGN_OR_RETURN(PytorchFile file, PytorchFile::Open(path));
    return std::make_unique<PytorchFile>(std::move(file));
  }
  ETC_RETURN_IF_ERROR(CheckBeginning(path));
  ETC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  return std::make_unique<SafetensorsFile>(std::move(file));
}

// Shard by tensor, as the index has it.
absl::StatusOr<std::map<std::string, std::string>> ReadWeightMap(
    const json& index, const std::string& index_path) {
  JsonObjectReader reader(index, index_path);
  const json* field = reader.Raw("weight_map", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  JsonObjectReader map_reader(*field, reader.Where("weight_map"));
  ETC_RETURN_IF_ERROR(
      map_reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : field->items()) {
    if (!shard.is_string() ||
        !IsPlainBaseName(shard.get_ref<const std::string&>())) {
      return absl::InvalidArgumentError(absl::StrCat(
          index_path, ": weight_map: ", QuotedName(tensor),
          " should be the name of a file in the same folder, but is ",
          shard.is_string() ? QuotedName(shard.get_ref<const std::string&>())
                            : shard.type_name()));
    }
    shard_of[tensor] = shard.get<std::string>();
  }
  return shard_of;
}

// What is odd about the index's own total, or an empty string. Writers differ
// in what they count.
std::string CheckTotalSize(const json& index, uint64_t bytes) {
  const auto metadata = index.find("metadata");
  if (metadata == index.end() || !metadata->is_object() ||
      !metadata->contains("total_size")) {
    return "has no metadata.total_size";
  }
  const json& total = *metadata->find("total_size");
  if (total != json(bytes)) {
    return absl::StrCat("metadata.total_size should be ", bytes,
                        ", the bytes of all tensors, but is ",
                        total.is_number() ? total.dump() : total.type_name());
  }
  return "";
}

}  // namespace

ShardedTensors::ShardedTensors(std::string path) : path_(std::move(path)) {}

absl::StatusOr<std::string> ShardedTensors::FileIn(
    const std::string& directory) {
  std::error_code ignored;
  for (const char* name : kFiles) {
    const auto file = std::filesystem::path(directory) / name;
    if (std::filesystem::exists(file, ignored)) {
      return file.string();
    }
  }
  return absl::NotFoundError(
      absl::StrCat(directory, " has none of ", absl::StrJoin(kFiles, ", ")));
}

absl::StatusOr<ShardedTensors> ShardedTensors::Open(const std::string& path) {
  ShardedTensors tensors(path);
  std::error_code ignored;  // what does not exist is reported by its opening
  std::string file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    ETC_ASSIGN_OR_RETURN(file, FileIn(path));
  }
  ETC_RETURN_IF_ERROR(absl::EndsWith(file, ".json") ? tensors.OpenIndex(file)
                                                    : tensors.OpenFile(file));
  return tensors;
}

absl::Status ShardedTensors::OpenFile(const std::string& file_path) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> file,
                       OpenShard(file_path));
  names_ = file->names();
  for (const std::string& name : names_) {
    shard_of_[name] = 0;
  }
  AddShard(std::move(file));
  return absl::OkStatus();
}

absl::Status ShardedTensors::OpenIndex(const std::string& index_path) {
  ETC_ASSIGN_OR_RETURN(const json index, ReadJsonFile(index_path));
  using WeightMap = std::map<std::string, std::string>;
  ETC_ASSIGN_OR_RETURN(const WeightMap weight_map,
                       ReadWeightMap(index, index_path));
  ETC_RETURN_IF_ERROR(OpenShards(weight_map, index_path));
  uint64_t bytes = 0;
  for (const auto& [name, shard] : shard_of_) {
    names_.push_back(name);
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, shards_[shard]->Find(name));
    ETC_ASSIGN_OR_RETURN(const uint64_t tensor_bytes,
                         SafetensorsDataBytes(info->dtype, info->shape));
    bytes += tensor_bytes;
  }
  const std::string oddity = CheckTotalSize(index, bytes);
  if (!oddity.empty()) {
    warnings_.push_back(absl::StrCat(index_path, " ", oddity));
  }
  return absl::OkStatus();
}

absl::Status ShardedTensors::OpenShards(
    const std::map<std::string, std::string>& weight_map,
    const std::string& index_path) {
  const auto error = [&](const std::string& tensor, auto... message) {
    return absl::InvalidArgumentError(absl::StrCat(
        index_path, ": tensor ", QuotedName(tensor), " ", message...));
  };
  std::set<std::string> shard_names;
  for (const auto& [tensor, shard] : weight_map) {
    shard_names.insert(shard);
  }
  const std::filesystem::path folder =
      std::filesystem::path(index_path).parent_path();
  std::map<std::string, std::string>
      found_in;  // shard by tensor, mapped or not
  for (const std::string& shard_name : shard_names) {
    ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> shard,
                         OpenShard((folder / shard_name).string()));
    for (const std::string& tensor : shard->names()) {
      const auto [first, is_new] = found_in.try_emplace(tensor, shard_name);
      if (!is_new) {
        return error(tensor, "is in two shards, ", first->second, " and ",
                     shard_name);
      }
      const auto mapped = weight_map.find(tensor);
      if (mapped == weight_map.end()) {
        warnings_.push_back(absl::StrCat(shard->path(), ": tensor ",
                                         QuotedName(tensor),
                                         " is not in the index: not read"));
      } else if (mapped->second == shard_name) {
        shard_of_[tensor] = shards_.size();
      }
    }
    AddShard(std::move(shard));
  }
  for (const auto& [tensor, shard_name] : weight_map) {
    if (!shard_of_.contains(tensor)) {
      return error(tensor, "should be in ", shard_name, ", but is not");
    }
  }
  return absl::OkStatus();
}

void ShardedTensors::AddShard(std::unique_ptr<TensorSource> shard) {
  metadata_.insert(shard->metadata().begin(), shard->metadata().end());
  warnings_.insert(warnings_.end(), shard->warnings().begin(),
                   shard->warnings().end());
  shards_.push_back(std::move(shard));
}

const std::string* ShardedTensors::Resolve(const std::string& name) const {
  auto found = shard_of_.find(name);
  if (found == shard_of_.end()) {
    const auto alias = metadata_.find(name);
    if (alias == metadata_.end()) {
      return nullptr;
    }
    found = shard_of_.find(alias->second);
  }
  return found == shard_of_.end() ? nullptr : &found->first;
}

absl::StatusOr<const TensorInfo*> ShardedTensors::Find(
    const std::string& name) const {
  const std::string* stored = Resolve(name);
  if (stored == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(path_, " has no tensor ", QuotedName(name), " (ST14)"));
  }
  return shards_[shard_of_.find(*stored)->second]->Find(*stored);
}

absl::Status ShardedTensors::Read(const std::string& name, char* destination,
                                  uint64_t size) const {
  ETC_RETURN_IF_ERROR(Find(name).status());
  const std::string& stored = *Resolve(name);
  return shards_[shard_of_.find(stored)->second]->Read(stored, destination,
                                                       size);
}

}  // namespace etc
