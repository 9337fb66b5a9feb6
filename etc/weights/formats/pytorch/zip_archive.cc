#include "etc/weights/formats/pytorch/zip_archive.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace etc {
namespace {

constexpr absl::string_view kLocalMagic = "PK\3\4";
constexpr absl::string_view kCentralMagic = "PK\1\2";
constexpr absl::string_view kEndMagic = "PK\5\6";
constexpr absl::string_view kEnd64Magic = "PK\6\6";
constexpr absl::string_view kLocator64Magic = "PK\6\7";
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kCentralBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kLongestComment = 65'535;
constexpr uint64_t kMostDirectoryBytes = uint64_t{256} << 20;
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kEncryptedFlag = 1;
constexpr uint16_t kFull16 = 0xffff;
constexpr uint32_t kFull32 = 0xffffffff;

// Position of the central directory.
struct Directory {
  uint64_t entries = 0;
  uint64_t size = 0;
  uint64_t offset = 0;
  uint64_t limit = 0;  // where what describes it begins
};

template <typename T>
T Field(absl::string_view bytes, size_t offset) {
  return *ByteReader(bytes.substr(offset)).TakeFixed<T>();
}

class ZipReader {
 public:
  explicit ZipReader(const RandomAccessFile& file) : file_(file) {}

  absl::StatusOr<std::map<std::string, ZipEntry>> Read();

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": zip archive: ", parts...));
  }

  absl::StatusOr<Directory> FindDirectory() const;
  absl::StatusOr<Directory> ReadZip64End(uint64_t end_offset) const;
  // The next entry, but not yet where its bytes are, and its name.
  absl::StatusOr<std::pair<std::string, ZipEntry>> TakeEntry(
      ByteReader* directory) const;
  absl::Status ReadZip64Extra(absl::string_view extra, ZipEntry* entry,
                              uint64_t* compressed) const;
  // Sets where the bytes of the entry are.
  absl::Status Locate(const std::string& name, ZipEntry* entry) const;
  absl::Status CheckOverlap(const std::map<std::string, ZipEntry>& entries,
                            const Directory& directory) const;

  const RandomAccessFile& file_;
};

absl::StatusOr<Directory> ZipReader::FindDirectory() const {
  const uint64_t tail_bytes =
      std::min(file_.size(), kEndBytes + kLongestComment);
  const uint64_t tail_offset = file_.size() - tail_bytes;
  ETC_ASSIGN_OR_RETURN(const std::string tail,
                       file_.Read(tail_offset, tail_bytes));
  for (uint64_t at = tail_bytes; at-- > 0;) {
    const auto end = absl::string_view(tail).substr(at);
    if (!absl::StartsWith(end, kEndMagic) || end.size() < kEndBytes ||
        Field<uint16_t>(end, 20) != end.size() - kEndBytes) {
      continue;
    }
    const auto disk = Field<uint16_t>(end, 4);
    const auto first_disk = Field<uint16_t>(end, 6);
    const auto entries_here = Field<uint16_t>(end, 8);
    const Directory directory = {.entries = Field<uint16_t>(end, 10),
                                 .size = Field<uint32_t>(end, 12),
                                 .offset = Field<uint32_t>(end, 16),
                                 .limit = tail_offset + at};
    if (disk == kFull16 || directory.entries == kFull16 ||
        directory.size == kFull32 || directory.offset == kFull32) {
      return ReadZip64End(directory.limit);
    }
    if (disk != 0 || first_disk != 0 || entries_here != directory.entries) {
      return Error("should be in one part, but is in several");
    }
    return directory;
  }
  return Error("has no end record: it is cut off, or none");
}

absl::StatusOr<Directory> ZipReader::ReadZip64End(uint64_t end_offset) const {
  if (end_offset < kLocator64Bytes) {
    return Error("has no ZIP64 locator");
  }
  ETC_ASSIGN_OR_RETURN(
      const std::string locator,
      file_.Read(end_offset - kLocator64Bytes, kLocator64Bytes));
  if (!absl::StartsWith(locator, kLocator64Magic)) {
    return Error("has no ZIP64 locator");
  }
  const auto at = Field<uint64_t>(locator, 8);
  const uint64_t limit = end_offset - kLocator64Bytes;
  if (at > limit || limit - at < kEnd64Bytes) {
    return Error("the ZIP64 end record should be before byte ", limit,
                 ", but is at byte ", at);
  }
  ETC_ASSIGN_OR_RETURN(const std::string end, file_.Read(at, kEnd64Bytes));
  if (!absl::StartsWith(end, kEnd64Magic)) {
    return Error("has no ZIP64 end record at byte ", at);
  }
  const auto entries = Field<uint64_t>(end, 32);
  if (Field<uint32_t>(end, 16) != 0 || Field<uint32_t>(end, 20) != 0 ||
      Field<uint64_t>(end, 24) != entries) {
    return Error("should be in one part, but is in several");
  }
  return Directory{.entries = entries,
                   .size = Field<uint64_t>(end, 40),
                   .offset = Field<uint64_t>(end, 48),
                   .limit = at};
}

absl::Status ZipReader::ReadZip64Extra(absl::string_view extra, ZipEntry* entry,
                                       uint64_t* compressed) const {
  ByteReader fields(extra);
  while (fields.left() > 0) {
    const auto id = fields.TakeFixed<uint16_t>();
    const auto size = fields.TakeFixed<uint16_t>();
    const auto bytes = size ? fields.Take(*size) : std::nullopt;
    if (!bytes) {
      return Error("an extra field is cut off");
    }
    if (*id != kZip64Extra) {
      continue;
    }
    ByteReader values(*bytes);
    for (uint64_t* value : {&entry->size, compressed, &entry->header}) {
      if (*value != kFull32) {
        continue;
      }
      const auto wide = values.TakeFixed<uint64_t>();
      if (!wide) {
        return Error("a ZIP64 field is cut off");
      }
      *value = *wide;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::pair<std::string, ZipEntry>> ZipReader::TakeEntry(
    ByteReader* directory) const {
  const auto fixed = directory->Take(kCentralBytes);
  if (!fixed || !absl::StartsWith(*fixed, kCentralMagic)) {
    return Error("the central directory holds something else at its byte ",
                 directory->position());
  }
  const auto name = directory->Take(Field<uint16_t>(*fixed, 28));
  const auto extra = directory->Take(Field<uint16_t>(*fixed, 30));
  if (!name || !extra || !directory->Take(Field<uint16_t>(*fixed, 32))) {
    return Error("an entry of the central directory is cut off");
  }
  if (!IsUtf8(*name)) {
    return Error("name ", QuotedName(*name), " should be UTF-8");
  }
  ZipEntry entry = {.header = Field<uint32_t>(*fixed, 42),
                    .size = Field<uint32_t>(*fixed, 24),
                    .crc32 = Field<uint32_t>(*fixed, 16)};
  uint64_t compressed = Field<uint32_t>(*fixed, 20);
  ETC_RETURN_IF_ERROR(ReadZip64Extra(*extra, &entry, &compressed));
  const auto method = Field<uint16_t>(*fixed, 10);
  const bool is_encrypted = (Field<uint16_t>(*fixed, 8) & kEncryptedFlag) != 0;
  if (method != 0 || is_encrypted || compressed != entry.size) {
    entry.coding =
        absl::StrCat(is_encrypted ? "encrypted" : "compressed", " (method ",
                     method, ", ", entry.size, " bytes in ", compressed, ")");
    entry.size = compressed;
  }
  if (const auto disk = Field<uint16_t>(*fixed, 34); disk != 0) {
    return Error(QuotedName(*name), " should be in part 0, but is in ", disk);
  }
  return std::pair(std::string(*name), entry);
}

absl::Status ZipReader::Locate(const std::string& name, ZipEntry* entry) const {
  const uint64_t size = file_.size();
  const uint64_t local = entry->header;
  if (local > size || size - local < kLocalBytes) {
    return Error(QuotedName(name), " should begin within the ", size,
                 " bytes of the file, but begins at byte ", local);
  }
  ETC_ASSIGN_OR_RETURN(const std::string fixed, file_.Read(local, kLocalBytes));
  if (!absl::StartsWith(fixed, kLocalMagic)) {
    return Error(QuotedName(name), " has no header at byte ", local);
  }
  const uint64_t name_bytes = Field<uint16_t>(fixed, 26);
  const uint64_t begin =
      local + kLocalBytes + name_bytes + Field<uint16_t>(fixed, 28);
  if (begin > size || entry->size > size - begin) {
    return Error(QuotedName(name), " should lie within the ", size,
                 " bytes of the file, but has ", entry->size, " at byte ",
                 begin);
  }
  ETC_ASSIGN_OR_RETURN(const std::string local_name,
                       file_.Read(local + kLocalBytes, name_bytes));
  if (local_name != name) {
    return Error(QuotedName(name), " is called ", QuotedName(local_name),
                 " in its own header");
  }
  entry->offset = begin;
  return absl::OkStatus();
}

absl::Status ZipReader::CheckOverlap(
    const std::map<std::string, ZipEntry>& entries,
    const Directory& directory) const {
  // Each entry from its header on, in order of place.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(entries.size() + 1);
  for (const auto& [name, entry] : entries) {
    ranges.emplace_back(entry.header, entry.offset + entry.size);
  }
  ranges.emplace_back(directory.offset, directory.offset + directory.size);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return Error("what begins at byte ", ranges[i].first, " overlaps what ",
                   "ends at byte ", ranges[i - 1].second);
    }
  }
  return absl::OkStatus();
}

// Takes the checksums away from entries that all have 0, which is none.
void ForgetMissingChecksums(std::map<std::string, ZipEntry>* entries) {
  const bool has_some = std::any_of(
      entries->begin(), entries->end(), [](const auto& named_entry) {
        return named_entry.second.size > 0 &&
               named_entry.second.crc32 != uint32_t{0};
      });
  for (auto& [name, entry] : *entries) {
    if (!has_some) {
      entry.crc32 = std::nullopt;
    }
  }
}

absl::StatusOr<std::map<std::string, ZipEntry>> ZipReader::Read() {
  ETC_ASSIGN_OR_RETURN(const Directory directory, FindDirectory());
  if (directory.offset > directory.limit ||
      directory.size > directory.limit - directory.offset ||
      directory.size > kMostDirectoryBytes) {
    return Error("the central directory should end before byte ",
                 directory.limit, ", but has ", directory.size,
                 " bytes at byte ", directory.offset);
  }
  if (directory.entries > directory.size / kCentralBytes) {
    return Error("the central directory has ", directory.size,
                 " bytes, too few for ", directory.entries, " entries");
  }
  ETC_ASSIGN_OR_RETURN(const std::string bytes,
                       file_.Read(directory.offset, directory.size));
  ByteReader reader(bytes);
  std::map<std::string, ZipEntry> entries;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ETC_ASSIGN_OR_RETURN(auto named_entry, TakeEntry(&reader));
    auto& [name, entry] = named_entry;
    ETC_RETURN_IF_ERROR(Locate(name, &entry));
    if (!entries.insert(named_entry).second) {
      return Error("two entries are called ", QuotedName(name));
    }
  }
  if (reader.left() > 0) {
    return Error("the central directory has ", reader.left(),
                 " bytes more than its ", directory.entries, " entries");
  }
  ETC_RETURN_IF_ERROR(CheckOverlap(entries, directory));
  ForgetMissingChecksums(&entries);
  return entries;
}

}  // namespace

absl::StatusOr<std::map<std::string, ZipEntry>> ReadZipDirectory(
    const RandomAccessFile& file) {
  return ZipReader(file).Read();
}

}  // namespace etc
