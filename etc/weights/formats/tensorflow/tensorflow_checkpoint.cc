#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "base/file_operations.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIndexSuffix = ".index";
constexpr uint64_t kMostStateBytes = 16 << 20;
// Small enough that the checksum is computed while the data are in the cache.
constexpr uint64_t kPieceBytes = uint64_t{1} << 18;

template <typename... Parts>
absl::Status TensorError(const std::string& path, const std::string& name,
                         const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": tensor ", QuotedName(name), " ", parts...));
}

int64_t DataBytes(const TensorInfo& info) {
  return ElementCount(info.shape) * BundleDtypeBytes(info.dtype);
}

absl::string_view LastComponent(absl::string_view name) {
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

// The name in the line `model_checkpoint_path: "..."` of a file `checkpoint`.
absl::StatusOr<std::string> ReadLatest(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostStateBytes));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "model_checkpoint_path:")) {
      continue;
    }
    line = absl::StripAsciiWhitespace(line);
    std::string name;
    if (line.size() < 2 || line.front() != '"' || line.back() != '"' ||
        !absl::CUnescape(line.substr(1, line.size() - 2), &name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": model_checkpoint_path should be in quotation marks, but is ",
          QuotedName(line)));
    }
    if (!IsPlainBaseName(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": model_checkpoint_path should be in the same folder, but is ",
          QuotedName(name), "; name the checkpoint itself instead"));
    }
    return name;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has no line model_checkpoint_path"));
}

absl::StatusOr<std::string> PrefixInDirectory(const fs::path& directory) {
  const std::string state = (directory / "checkpoint").string();
  ETC_ASSIGN_OR_RETURN(const bool has_state, EntryExists(state));
  if (has_state) {
    ETC_ASSIGN_OR_RETURN(const std::string name, ReadLatest(state));
    return (directory / name).string();
  }
  std::error_code error;
  std::vector<std::string> names;
  for (auto entry = fs::directory_iterator(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::EndsWith(name, kIndexSuffix)) {
      names.push_back(name);
    }
  }
  if (error) {
    return ErrnoStatus(error.value(), "list", directory.string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(
        directory.string(),
        " has no TensorFlow checkpoint: neither `checkpoint` nor *.index"));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.string(), " has several TensorFlow checkpoints, name one: ",
        absl::StrJoin(names, ", ")));
  }
  return std::string(
      absl::StripSuffix((directory / names.front()).string(), kIndexSuffix));
}

// Returns `path` without the suffix of one of a checkpoint's files.
std::string WithoutSuffix(const std::string& path) {
  if (absl::EndsWith(path, kIndexSuffix)) {
    return std::string(absl::StripSuffix(path, kIndexSuffix));
  }
  const size_t data = path.rfind(".data-");
  const bool is_data_file = data != std::string::npos &&
                            path.find('/', data) == std::string::npos &&
                            path.find("-of-", data) != std::string::npos;
  return is_data_file ? path.substr(0, data) : path;
}

}  // namespace

absl::StatusOr<std::string> TensorFlowCheckpointPrefix(
    const std::string& path) {
  std::error_code ignored;
  std::string prefix = WithoutSuffix(path);
  // A directory may be called like the checkpoint in another one.
  if (fs::is_directory(path, ignored) &&
      !fs::exists(absl::StrCat(prefix, kIndexSuffix), ignored)) {
    ETC_ASSIGN_OR_RETURN(prefix, PrefixInDirectory(path));
  }
  const std::string index = absl::StrCat(prefix, kIndexSuffix);
  ETC_ASSIGN_OR_RETURN(const bool is_there, EntryExists(index));
  if (is_there) {
    return prefix;
  }
  if (const auto file = RandomAccessFile::Open(prefix);
      file.ok() && EndsAsSortedTable(*file)) {
    return absl::InvalidArgumentError(absl::StrCat(
        prefix, " should be a TensorFlow V2 checkpoint, but there is no ",
        index, ": V1 checkpoints are not supported"));
  }
  return absl::NotFoundError(absl::StrCat("there is no ", index));
}

bool IsTensorFlowFile(const std::string& path) {
  const auto file = RandomAccessFile::Open(path);
  return file.ok() && (WithoutSuffix(path) != path || EndsAsSortedTable(*file));
}

TensorFlowCheckpoint::TensorFlowCheckpoint(std::string path, std::string prefix)
    : TensorSource(std::move(path)), prefix_(std::move(prefix)) {}

absl::StatusOr<TensorFlowCheckpoint> TensorFlowCheckpoint::Open(
    const std::string& path, const TensorFlowLimits& limits) {
  ETC_ASSIGN_OR_RETURN(std::string prefix, TensorFlowCheckpointPrefix(path));
  TensorFlowCheckpoint checkpoint(path, std::move(prefix));
  ETC_RETURN_IF_ERROR(checkpoint.ReadIndex(limits));
  ETC_RETURN_IF_ERROR(checkpoint.CheckEntries());
  return checkpoint;
}

std::string TensorFlowCheckpoint::DataPath(int64_t shard) const {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix_, shard, num_shards_);
}

absl::Status TensorFlowCheckpoint::ReadIndex(const TensorFlowLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(absl::StrCat(prefix_, ".index")));
  ETC_RETURN_IF_ERROR(ReadSortedTable(
      file, limits.index,
      [&](absl::string_view key, absl::string_view record) -> absl::Status {
        const absl::Status status = AddRecord(key, record, limits);
        return status.ok() ? status
                           : absl::InvalidArgumentError(absl::StrCat(
                                 file.path(), ": ", status.message()));
      }));
  if (num_shards_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(),
        ": has no header, no entry at all (doc/formats.md 2.5.7)"));
  }
  return absl::OkStatus();
}

absl::Status TensorFlowCheckpoint::AddRecord(absl::string_view key,
                                             absl::string_view record,
                                             const TensorFlowLimits& limits) {
  if (num_shards_ == 0) {
    if (!key.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the first key should be empty, that of the header, but "
                       "is ",
                       QuotedName(key), " (doc/formats.md 2.5.7)"));
    }
    ETC_ASSIGN_OR_RETURN(num_shards_, ParseBundleHeader(record));
    return absl::OkStatus();
  }
  all_names_bytes_ += key.size();
  if (entries_.size() == limits.tensors ||
      all_names_bytes_ > limits.all_names_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "should have at most ", limits.tensors, " entries, with names of ",
        limits.all_names_bytes, " bytes in all (limit)"));
  }
  if (IsBundleSliceKey(key)) {
    // Such keys sort before all names; the variable's ends at the next NUL.
    const absl::string_view name = key.substr(1, key.find('\0', 1) - 1);
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", QuotedName(name),
        " is a partitioned variable, which is not supported; save the "
        "checkpoint without a partitioner (doc/formats.md 2.5.12)"));
  }
  auto entry = ParseBundleEntry(record);
  if (!entry.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", QuotedName(key), ": ", entry.status().message()));
  }
  entries_.emplace_hint(entries_.end(), key, *std::move(entry));
  return absl::OkStatus();
}

absl::Status TensorFlowCheckpoint::CheckEntries() {
  const std::string index = absl::StrCat(prefix_, ".index");
  std::map<int64_t, int64_t> shard_bytes;  // of shards that entries name
  for (const auto& [name, entry] : entries_) {
    AddName(name);
    if (entry.shard < 0 || entry.shard >= num_shards_) {
      return TensorError(index, name, "should be in one of ", num_shards_,
                         " shards, but is in shard ", entry.shard,
                         " (doc/formats.md 2.5.9)");
    }
    if (!shard_bytes.contains(entry.shard)) {
      ETC_ASSIGN_OR_RETURN(const RandomAccessFile data,
                           RandomAccessFile::Open(DataPath(entry.shard)));
      shard_bytes[entry.shard] = static_cast<int64_t>(data.size());
    }
    const int64_t bytes = shard_bytes[entry.shard];
    if (entry.offset < 0 || entry.size < 0 || entry.offset > bytes ||
        entry.size > bytes - entry.offset) {
      return TensorError(index, name, "should lie within the ", bytes,
                         " bytes of ", DataPath(entry.shard), ", but has ",
                         entry.size, " bytes at byte ", entry.offset,
                         " (doc/formats.md 2.5.9)");
    }
    if (BundleDtypeBytes(entry.dtype) > 0 && entry.size != DataBytes(entry)) {
      return TensorError(index, name, "(", Describe(entry), ") should have ",
                         DataBytes(entry), " bytes, but has ", entry.size,
                         " (doc/formats.md 2.5.10)");
    }
  }
  if (entries_.contains(kObjectGraphKey)) {
    AddWarning(absl::StrCat(
        index,
        ": written by TensorFlow 2 objects; its names are paths through "
        "them, which need a map to names of variables"));
  }
  return absl::OkStatus();
}

absl::StatusOr<const BundleEntry*> TensorFlowCheckpoint::FindEntry(
    const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) {
    return &found->second;
  }
  std::vector<absl::string_view> alike;
  for (const std::string& other : names()) {
    if (LastComponent(other) == LastComponent(name) && alike.size() < 5) {
      alike.push_back(other);
    }
  }
  return absl::NotFoundError(
      absl::StrCat(prefix_, " has no tensor ", QuotedName(name),
                   alike.empty() ? "" : ", but ", absl::StrJoin(alike, ", "),
                   " (doc/formats.md 2.5.13)"));
}

absl::StatusOr<const TensorInfo*> TensorFlowCheckpoint::Find(
    const std::string& name) const {
  return FindEntry(name);
}

absl::Status TensorFlowCheckpoint::Read(const std::string& name,
                                        char* destination,
                                        uint64_t size) const {
  ETC_ASSIGN_OR_RETURN(const BundleEntry* entry, FindEntry(name));
  const Dtype* dtype = FindDtype(entry->dtype);
  if (dtype == nullptr || !dtype->IsReadable()) {
    return TensorError(prefix_, name, "is of dtype ", entry->dtype,
                       ", which cannot be read");
  }
  if (size != static_cast<uint64_t>(DataBytes(*entry))) {
    return TensorError(prefix_, name, "(", Describe(*entry), ") has ",
                       DataBytes(*entry), " bytes, but ", size,
                       " were asked for");
  }
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(DataPath(entry->shard)));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < size;) {
    const uint64_t bytes = std::min(kPieceBytes, size - at);
    ETC_RETURN_IF_ERROR(file.Read(static_cast<uint64_t>(entry->offset) + at,
                                  bytes, destination + at));
    crc = ExtendCrc32c(crc, absl::string_view(destination + at, bytes));
    at += bytes;
  }
  if (MaskCrc32c(crc) != entry->masked_crc32c) {
    return absl::DataLossError(absl::StrCat(
        file.path(), ": tensor ", QuotedName(name), ", ", size,
        " bytes at byte ", entry->offset, ", should have checksum 0x",
        absl::Hex(entry->masked_crc32c), ", but has 0x",
        absl::Hex(MaskCrc32c(crc)), " (doc/formats.md 2.5.11)"));
  }
  return absl::OkStatus();
}

}  // namespace etc
