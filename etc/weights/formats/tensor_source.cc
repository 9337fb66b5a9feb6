#include "etc/weights/formats/tensor_source.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/pytorch/pytorch_file.h"
#include "etc/weights/formats/safetensors/safetensors.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

using WeightMap = std::map<std::string, std::string>;  // shard by tensor

// In the order in which they are looked for.
constexpr const char* kFiles[] = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json", "model.pt"};

// The path of the first of kFiles in a directory, be it a link that leads
// nowhere. kNotFound.
absl::StatusOr<std::string> FileIn(const std::string& directory) {
  for (const char* name : kFiles) {
    std::string file = (std::filesystem::path(directory) / name).string();
    ETC_ASSIGN_OR_RETURN(const bool is_there, EntryExists(file));
    if (is_there) {
      return file;
    }
  }
  return absl::NotFoundError(
      absl::StrCat(directory, " has none of ", absl::StrJoin(kFiles, ", ")));
}

// The first bytes of a file, as many as are shown of one that is refused.
absl::Status ReadBeginning(const std::string& path, std::string* beginning) {
  constexpr uint64_t kShownBytes = 24;
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  beginning->resize(std::min(file.size(), kShownBytes));
  return file.Read(0, beginning->size(), beginning->data());
}

// Refuses a file that begins as in none of the formats, such as a text. Without
// this its first bytes would be reported as an impossible header length. In a
// safetensors file, the length of 8 bytes is followed by the brace of a JSON
// object.
absl::Status CheckBeginning(const std::string& path,
                            absl::string_view beginning) {
  constexpr size_t kBrace = 8;
  // A file that is too short is left to its reader, which says what is missing.
  if (beginning.size() <= kBrace || beginning[kBrace] == '{') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " is not a weights file: it is neither safetensors nor a file of "
      "torch.save nor of a TensorFlow checkpoint, but begins with ",
      QuotedName(beginning), DownloadHint(beginning)));
}

template <typename Source>
absl::StatusOr<std::unique_ptr<TensorSource>> OpenAs(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(Source source, Source::Open(path));
  return std::make_unique<Source>(std::move(source));
}

// One file, not an index.
absl::StatusOr<std::unique_ptr<TensorSource>> OpenShard(
    const std::string& path) {
  // A file called .bin that is not one of torch.save, such as a pointer of Git
  // LFS, is reported as a bad file of the format in its name.
  if (absl::EndsWith(path, ".bin")) {
    return OpenAs<PytorchFile>(path);
  }
  std::string beginning;
  ETC_RETURN_IF_ERROR(ReadBeginning(path, &beginning));
  if (absl::StartsWith(beginning, PytorchFile::kArchiveMagic) ||
      PytorchFile::StreamMagicBytes(beginning) > 0) {
    return OpenAs<PytorchFile>(path);
  }
  ETC_RETURN_IF_ERROR(CheckBeginning(path, beginning));
  return OpenAs<SafetensorsFile>(path);
}

// The field weight_map of an index.
absl::StatusOr<WeightMap> ReadWeightMap(const json& index,
                                        const std::string& index_path) {
  JsonObjectReader reader(index, index_path);
  const json* field = reader.Raw("weight_map", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  JsonObjectReader map_reader(*field, reader.Where("weight_map"));
  ETC_RETURN_IF_ERROR(map_reader.status());
  WeightMap shard_of;
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

// Returns a warning about the total that the index states, or an empty string.
// It is no error, for writers differ in what they count.
std::string CheckTotalSize(const json& index, uint64_t bytes) {
  const auto metadata = index.find("metadata");
  if (metadata == index.end() || !metadata->is_object() ||
      !metadata->contains("total_size")) {
    return "has no metadata.total_size";
  }
  const json& total = *metadata->find("total_size");
  if (total != json(bytes)) {
    return absl::StrCat(
        "metadata.total_size should be ", bytes,
        ", the bytes of all tensors, but is ",
        total.is_number() ? JsonText(total) : total.type_name());
  }
  return "";
}

// Bytes of a tensor, whose size was found not to overflow when its shard was
// opened. The type may be one that safetensors lacks.
uint64_t BytesInShard(const TensorInfo& info) {
  auto bits = static_cast<uint64_t>(FindDtype(info.dtype)->bits);
  for (const int64_t dimension : info.shape) {
    bits *= static_cast<uint64_t>(dimension);
  }
  return bits / 8;
}

// The tensors of one file, or of the shards that an index lists (
// doc/formats.md 1.6).
class ModelFiles final : public TensorSource {
 public:
  static absl::StatusOr<ModelFiles> Open(const std::string& path);

  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  explicit ModelFiles(const std::string& path) : TensorSource(path) {}

  absl::Status OpenFile(const std::string& file_path);
  absl::Status OpenIndex(const std::string& index_path);
  absl::Status OpenShards(const WeightMap& weight_map,
                          const std::string& index_path);
  // Takes the shard with its metadata and warnings.
  void AddShard(std::unique_ptr<TensorSource> shard);
  // The name under which shard_of_ has the tensor, or null.
  const std::string* Resolve(const std::string& name) const;

  std::vector<std::unique_ptr<TensorSource>> shards_;
  std::map<std::string, size_t> shard_of_;  // index in shards_, by tensor
};

absl::StatusOr<ModelFiles> ModelFiles::Open(const std::string& path) {
  ModelFiles files(path);
  std::error_code ignored;  // what does not exist is reported by its opening
  std::string file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    ETC_ASSIGN_OR_RETURN(file, FileIn(path));
  }
  ETC_RETURN_IF_ERROR(absl::EndsWith(file, ".json") ? files.OpenIndex(file)
                                                    : files.OpenFile(file));
  return files;
}

absl::Status ModelFiles::OpenFile(const std::string& file_path) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> file,
                       OpenShard(file_path));
  for (const std::string& name : file->names()) {
    AddName(name);
    shard_of_[name] = 0;
  }
  AddShard(std::move(file));
  return absl::OkStatus();
}

absl::Status ModelFiles::OpenIndex(const std::string& index_path) {
  ETC_ASSIGN_OR_RETURN(const json index, ReadJsonFile(index_path));
  ETC_ASSIGN_OR_RETURN(const WeightMap weight_map,
                       ReadWeightMap(index, index_path));
  ETC_RETURN_IF_ERROR(OpenShards(weight_map, index_path));
  uint64_t bytes = 0;
  for (const auto& [name, shard] : shard_of_) {
    AddName(name);
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, shards_[shard]->Find(name));
    bytes += BytesInShard(*info);
  }
  const std::string wrong = CheckTotalSize(index, bytes);
  if (!wrong.empty()) {
    AddWarning(absl::StrCat(index_path, " ", wrong));
  }
  return absl::OkStatus();
}

absl::Status ModelFiles::OpenShards(const WeightMap& weight_map,
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
  WeightMap found_in;  // all tensors of the shards
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
        AddWarning(absl::StrCat(shard->path(), ": tensor ", QuotedName(tensor),
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

void ModelFiles::AddShard(std::unique_ptr<TensorSource> shard) {
  AddMetadata(shard->metadata());
  for (const std::string& warning : shard->warnings()) {
    AddWarning(warning);
  }
  shards_.push_back(std::move(shard));
}

const std::string* ModelFiles::Resolve(const std::string& name) const {
  auto found = shard_of_.find(name);
  if (found == shard_of_.end()) {
    const auto alias = metadata().find(name);
    if (alias == metadata().end()) {
      return nullptr;
    }
    found = shard_of_.find(alias->second);
  }
  return found == shard_of_.end() ? nullptr : &found->first;
}

absl::StatusOr<const TensorInfo*> ModelFiles::Find(
    const std::string& name) const {
  const std::string* stored = Resolve(name);
  if (stored == nullptr) {
    return absl::NotFoundError(absl::StrCat(path(), " has no tensor ",
                                            QuotedName(name),
                                            " (doc/formats.md 1.4.14)"));
  }
  return shards_[shard_of_.find(*stored)->second]->Find(*stored);
}

absl::Status ModelFiles::Read(const std::string& name, char* destination,
                              uint64_t size) const {
  ETC_RETURN_IF_ERROR(Find(name).status());
  const std::string& stored = *Resolve(name);
  return shards_[shard_of_.find(stored)->second]->Read(stored, destination,
                                                       size);
}

}  // namespace

std::vector<std::string> TensorSource::NamesAndAliases() const {
  std::vector<std::string> all = names_;
  for (const auto& [key, value] : metadata_) {
    if (!std::binary_search(names_.begin(), names_.end(), key) &&
        Find(key).ok()) {
      all.push_back(key);
    }
  }
  return all;
}

absl::string_view DownloadHint(absl::string_view beginning) {
  return absl::StartsWith(beginning, "version https://git-lfs")
             ? ": a pointer of Git LFS, not yet the file itself"
         : absl::StartsWith(beginning, "<") ? ": a web page"
                                            : "";
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource(
    const std::string& path) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  if (is_directory && !absl::IsNotFound(FileIn(path).status())) {
    return OpenAs<ModelFiles>(path);
  }
  const absl::Status checkpoint = TensorFlowCheckpointPrefix(path).status();
  if (checkpoint.ok()) {
    return OpenAs<TensorFlowCheckpoint>(path);
  }
  if (is_directory ? !absl::IsNotFound(checkpoint) : IsTensorFlowFile(path)) {
    return checkpoint;
  }
  auto files = OpenAs<ModelFiles>(path);
  if (absl::IsNotFound(files.status()) && absl::IsNotFound(checkpoint)) {
    return absl::NotFoundError(
        absl::StrCat(files.status().message(), ", and ", checkpoint.message()));
  }
  return files;
}

}  // namespace etc
