#include "etc/weights/formats/tensorflow/sorted_table.h"

#include <snappy.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"

namespace etc {
namespace {

// The format (doc/formats.md 2.2), in bytes.
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr size_t kFooterBytes = 48;
constexpr size_t kHandlesBytes = 40;  // of the footer
constexpr size_t kTrailerBytes = 5;   // type and checksum of a block
constexpr size_t kRestartBytes = 4;
constexpr uint8_t kRawBlock = 0;
constexpr uint8_t kSnappyBlock = 1;

// TensorFlow's settings when it writes one.
constexpr size_t kBlockBytes = 262'144;
constexpr int kDataRestartInterval = 16;
constexpr int kIndexRestartInterval = 1;

using Visitor =
    std::function<absl::Status(absl::string_view, absl::string_view)>;

// Position of a block.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;  // without the trailer
};

std::optional<BlockHandle> TakeHandle(ByteReader* reader) {
  const auto offset = reader->TakeVarint64();
  const auto size = reader->TakeVarint64();
  if (!offset || !size) {
    return std::nullopt;
  }
  return BlockHandle{*offset, *size};
}

class TableReader {
 public:
  TableReader(const RandomAccessFile& file, const SortedTableLimits& limits)
      : file_(file), limits_(limits) {}

  absl::Status Read(const Visitor& visit);

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": ", parts...));
  }

  absl::StatusOr<BlockHandle> ReadFooter() const;
  absl::Status CheckHandle(BlockHandle handle) const;
  // The contents of a block, checked against its checksum.
  absl::StatusOr<std::string> ReadBlock(BlockHandle handle) const;
  absl::StatusOr<std::string> Decompress(absl::string_view compressed,
                                         BlockHandle handle) const;
  // Calls `visit` for each entry of a block. Keys must ascend from `*last_key`,
  // unless that is nullopt; afterwards it is the last of them.
  absl::Status ReadEntries(BlockHandle handle,
                           std::optional<std::string>* last_key,
                           const Visitor& visit) const;
  // The next entry: `*key` becomes its key, the result is its value.
  absl::StatusOr<absl::string_view> TakeEntry(ByteReader* entries,
                                              BlockHandle handle,
                                              std::string* key) const;

  const RandomAccessFile& file_;
  const SortedTableLimits limits_;
};

absl::StatusOr<BlockHandle> TableReader::ReadFooter() const {
  if (file_.size() < kFooterBytes) {
    return Error("a TensorFlow index file has at least ", kFooterBytes,
                 " bytes, but this has ", file_.size(),
                 " (doc/formats.md 2.5.1)");
  }
  if (file_.size() > limits_.file_bytes) {
    return Error("a TensorFlow index file should have at most ",
                 limits_.file_bytes, " bytes, but this has ", file_.size(),
                 " (limit)");
  }
  ETC_ASSIGN_OR_RETURN(const std::string footer,
                       file_.Read(file_.size() - kFooterBytes, kFooterBytes));
  ByteReader magic(absl::string_view(footer).substr(kHandlesBytes));
  const uint64_t found = *magic.TakeFixed<uint64_t>();
  if (found != kMagic) {
    return Error("a TensorFlow index file should end in the number 0x",
                 absl::Hex(kMagic), ", but this ends in 0x", absl::Hex(found),
                 " (doc/formats.md 2.5.1)");
  }
  ByteReader handles(absl::string_view(footer).substr(0, kHandlesBytes));
  const auto metaindex = TakeHandle(&handles);
  const auto index = metaindex ? TakeHandle(&handles) : std::nullopt;
  if (!index) {
    return Error("the footer should hold two block handles, but byte ",
                 file_.size() - kFooterBytes + handles.position(),
                 " begins no varint64 (doc/formats.md 2.5.1)");
  }
  ETC_RETURN_IF_ERROR(CheckHandle(*metaindex));
  return *index;
}

absl::Status TableReader::CheckHandle(BlockHandle handle) const {
  const uint64_t end = file_.size() - kFooterBytes;
  if (handle.offset > end || handle.size > end - handle.offset ||
      end - handle.offset - handle.size < kTrailerBytes) {
    return Error("a block of ", handle.size, " bytes at byte ", handle.offset,
                 " with its trailer of ", kTrailerBytes,
                 " should end before the footer at byte ", end,
                 " (doc/formats.md 2.5.2)");
  }
  if (handle.size > limits_.block_bytes) {
    return Error("the block at byte ", handle.offset, " should have at most ",
                 limits_.block_bytes, " bytes, but has ", handle.size,
                 " (doc/formats.md 2.5.2)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TableReader::ReadBlock(BlockHandle handle) const {
  ETC_RETURN_IF_ERROR(CheckHandle(handle));
  ETC_ASSIGN_OR_RETURN(std::string bytes,
                       file_.Read(handle.offset, handle.size + kTrailerBytes));
  const absl::string_view checked =
      absl::string_view(bytes).substr(0, handle.size + 1);
  ByteReader trailer(absl::string_view(bytes).substr(handle.size));
  const uint8_t type = *trailer.TakeFixed<uint8_t>();
  const uint32_t stored = *trailer.TakeFixed<uint32_t>();
  const uint32_t computed = MaskCrc32c(ExtendCrc32c(0, checked));
  if (stored != computed) {
    return Error("the block at byte ", handle.offset,
                 " should have checksum 0x", absl::Hex(computed), ", but 0x",
                 absl::Hex(stored), " is stored (doc/formats.md 2.5.3)");
  }
  if (type == kRawBlock) {
    bytes.resize(handle.size);
    return bytes;
  }
  if (type != kSnappyBlock) {
    return Error("the block at byte ", handle.offset,
                 " should be of type 0 (raw) or 1 (Snappy), but is of type ",
                 type, " (doc/formats.md 2.5.3)");
  }
  return Decompress(checked.substr(0, handle.size), handle);
}

absl::StatusOr<std::string> TableReader::Decompress(
    absl::string_view compressed, BlockHandle handle) const {
  // Allocated only if Snappy can compress as much at all.
  const auto claimed = ByteReader(compressed).TakeVarint32();
  if (!claimed || *claimed > limits_.block_bytes ||
      *claimed > 64 * uint64_t{compressed.size()} + 64) {
    return Error("the Snappy block of ", handle.size, " bytes at byte ",
                 handle.offset, " should begin with its length, but ",
                 claimed ? absl::StrCat("claims ", *claimed) : "has none",
                 " (doc/formats.md 2.5.3)");
  }
  std::string contents(*claimed, '\0');
  if (!snappy::RawUncompress(compressed.data(), compressed.size(),
                             contents.data())) {
    return Error("the block at byte ", handle.offset,
                 " should be Snappy data for ", *claimed,
                 " bytes, but is not (doc/formats.md 2.5.3)");
  }
  return contents;
}

absl::StatusOr<absl::string_view> TableReader::TakeEntry(
    ByteReader* entries, BlockHandle handle, std::string* key) const {
  const size_t at = entries->position();
  const auto error = [&](const auto&... parts) {
    return Error("the entry at byte ", at, " of the block at byte ",
                 handle.offset, " ", parts...);
  };
  const auto shared = entries->TakeVarint32();
  const auto unshared = entries->TakeVarint32();
  const auto value_bytes = entries->TakeVarint32();
  if (!shared || !unshared || !value_bytes) {
    return error("should begin with three varint32 (doc/formats.md 2.5.5)");
  }
  if (*shared > key->size()) {
    return error("shares ", *shared, " bytes with the key before, which has ",
                 key->size(), " (doc/formats.md 2.5.5)");
  }
  if (*unshared + *value_bytes > entries->left()) {
    return error("claims ", *unshared, " and ", *value_bytes, " bytes, but ",
                 entries->left(), " are left (doc/formats.md 2.5.5)");
  }
  if (*shared + *unshared > limits_.key_bytes) {
    return error("should have a key of at most ", limits_.key_bytes,
                 " bytes, but it has ", *shared + *unshared,
                 " (doc/formats.md 2.5.6)");
  }
  key->resize(*shared);
  absl::StrAppend(key, *entries->Take(*unshared));
  return *entries->Take(*value_bytes);
}

absl::Status TableReader::ReadEntries(BlockHandle handle,
                                      std::optional<std::string>* last_key,
                                      const Visitor& visit) const {
  ETC_ASSIGN_OR_RETURN(const std::string contents, ReadBlock(handle));
  if (contents.size() < kRestartBytes) {
    return Error("the block at byte ", handle.offset,
                 " should have at least 4 bytes, but has ", contents.size(),
                 " (doc/formats.md 2.5.4)");
  }
  const size_t before_count = contents.size() - kRestartBytes;
  ByteReader count_reader(absl::string_view(contents).substr(before_count));
  const uint64_t restarts = *count_reader.TakeFixed<uint32_t>();
  if (restarts > before_count / kRestartBytes) {
    return Error("the block at byte ", handle.offset, " claims ", restarts,
                 " restarts in ", contents.size(),
                 " bytes (doc/formats.md 2.5.4)");
  }
  if (restarts == 0) {
    return absl::OkStatus();
  }
  ByteReader entries(absl::string_view(contents).substr(
      0, before_count - kRestartBytes * restarts));
  std::string key;
  while (entries.left() > 0) {
    ETC_ASSIGN_OR_RETURN(const absl::string_view value,
                         TakeEntry(&entries, handle, &key));
    if (last_key->has_value() && key <= **last_key) {
      return Error("keys should rise, but in the block at byte ", handle.offset,
                   " ", QuotedName(key), " comes after ",
                   QuotedName(**last_key), " (doc/formats.md 2.5.6)");
    }
    *last_key = key;
    ETC_RETURN_IF_ERROR(visit(key, value));
  }
  return absl::OkStatus();
}

absl::Status TableReader::Read(const Visitor& visit) {
  ETC_ASSIGN_OR_RETURN(const BlockHandle index, ReadFooter());
  std::optional<std::string> separator;
  std::optional<std::string> last_key;
  uint64_t data_bytes = 0;
  const Visitor read_data_block = [&](absl::string_view key,
                                      absl::string_view value) {
    ByteReader reader(value);
    const auto handle = TakeHandle(&reader);
    if (!handle) {
      return Error("the index entry ", QuotedName(key),
                   " should hold a block handle (doc/formats.md 2.5.1)");
    }
    ETC_RETURN_IF_ERROR(CheckHandle(*handle));
    // Otherwise the index of a small file could name one large block any number
    // of times.
    data_bytes += handle->size + kTrailerBytes;
    if (data_bytes > file_.size()) {
      return Error("data blocks up to the index entry ", QuotedName(key),
                   " have ", data_bytes,
                   " bytes, more than the file (doc/formats.md 2.5.2)");
    }
    return ReadEntries(*handle, &last_key, visit);
  };
  return ReadEntries(index, &separator, read_data_block);
}

// The contents of one block.
class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval)
      : restart_interval_(restart_interval) {}

  void Add(const std::string& key, absl::string_view value) {
    size_t shared = 0;
    if (since_restart_ == restart_interval_) {
      restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
      since_restart_ = 0;
    } else {
      const auto [in_key, in_last] = std::mismatch(
          key.begin(), key.end(), last_key_.begin(), last_key_.end());
      shared = static_cast<size_t>(in_key - key.begin());
    }
    AppendVarint(shared, &bytes_);
    AppendVarint(key.size() - shared, &bytes_);
    AppendVarint(value.size(), &bytes_);
    absl::StrAppend(&bytes_, absl::string_view(key).substr(shared), value);
    last_key_ = key;
    ++since_restart_;
  }

  size_t size() const {
    return bytes_.size() + kRestartBytes * (restarts_.size() + 1);
  }

  // Appends the block with its trailer to `file`, and its handle to the result.
  std::string Finish(std::string* file) {
    for (const uint32_t restart : restarts_) {
      AppendFixed(restart, &bytes_);
    }
    AppendFixed(static_cast<uint32_t>(restarts_.size()), &bytes_);
    std::string handle;
    AppendVarint(file->size(), &handle);
    AppendVarint(bytes_.size(), &handle);
    AppendFixed(kRawBlock, &bytes_);
    absl::StrAppend(file, bytes_);
    AppendFixed(MaskCrc32c(ExtendCrc32c(0, bytes_)), file);
    *this = BlockBuilder(restart_interval_);
    return handle;
  }

 private:
  int restart_interval_;
  std::string bytes_;
  std::vector<uint32_t> restarts_ = {0};
  int since_restart_ = 0;
  std::string last_key_;
};

// A short string s with key <= s < limit; `key` itself if LevelDB finds none.
std::string Separator(const std::string& key, const std::string& limit) {
  const auto [at, at_limit] =
      std::mismatch(key.begin(), key.end(), limit.begin(), limit.end());
  if (at == key.end() || at_limit == limit.end()) {
    return key;
  }
  const auto next = static_cast<uint8_t>(static_cast<uint8_t>(*at) + 1);
  if (next == 0 || next >= static_cast<uint8_t>(*at_limit)) {
    return key;
  }
  return std::string(key.begin(), at) + static_cast<char>(next);
}

// A short string s with key <= s, as LevelDB chooses it.
std::string Successor(const std::string& key) {
  const size_t at = key.find_first_not_of('\xff');
  if (at == std::string::npos) {
    return key;
  }
  return key.substr(0, at) + static_cast<char>(key[at] + 1);
}

}  // namespace

bool EndsAsSortedTable(const RandomAccessFile& file) {
  uint64_t magic = 0;
  return file.size() >= kFooterBytes &&
         file.Read(file.size() - sizeof(magic), sizeof(magic),
                   reinterpret_cast<char*>(&magic))
             .ok() &&
         magic == kMagic;
}

absl::Status ReadSortedTable(const RandomAccessFile& file,
                             const SortedTableLimits& limits,
                             const Visitor& visit) {
  return TableReader(file, limits).Read(visit);
}

std::string BuildSortedTable(
    const std::map<std::string, std::string>& entries) {
  std::string file;
  BlockBuilder data(kDataRestartInterval);
  BlockBuilder index(kIndexRestartInterval);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    data.Add(entry->first, entry->second);
    const auto next = std::next(entry);
    if (next == entries.end()) {
      index.Add(Successor(entry->first), data.Finish(&file));
    } else if (data.size() >= kBlockBytes) {
      index.Add(Separator(entry->first, next->first), data.Finish(&file));
    }
  }
  std::string footer = BlockBuilder(kDataRestartInterval).Finish(&file);
  absl::StrAppend(&footer, index.Finish(&file));
  footer.resize(kHandlesBytes, '\0');
  AppendFixed(kMagic, &footer);
  return file + footer;
}

}  // namespace etc
