#include "etc/weights/formats/tensorflow/sorted_table.h"

#include <snappy.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensorflow/crc32c.h"
#include "etc/weights/formats/tensorflow/sorted_table_layout.h"

namespace etc {
namespace {

using Visitor =
    std::function<absl::Status(absl::string_view, absl::string_view)>;

// Where a block is.
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
  // Calls `visit` for each entry of a block. Keys must rise from `*key`, unless
  // that is nullopt; afterwards it has the last of them.
  absl::Status WalkBlock(BlockHandle handle, std::optional<std::string>* key,
                         const Visitor& visit) const;
  // The next entry: `*key` becomes its key, the result is its value.
  absl::StatusOr<absl::string_view> TakeEntry(ByteReader* entries,
                                              BlockHandle handle,
                                              std::string* key) const;

  const RandomAccessFile& file_;
  const SortedTableLimits limits_;
};

absl::StatusOr<BlockHandle> TableReader::ReadFooter() const {
  if (file_.size() < kTableFooterBytes) {
    return Error("a TensorFlow index file has at least ", kTableFooterBytes,
                 " bytes, but this has ", file_.size(), " (TF1)");
  }
  if (file_.size() > limits_.file_bytes) {
    return Error("a TensorFlow index file should have at most ",
                 limits_.file_bytes, " bytes, but this has ", file_.size(),
                 " (limit)");
  }
  ETC_ASSIGN_OR_RETURN(
      const std::string footer,
      file_.Read(file_.size() - kTableFooterBytes, kTableFooterBytes));
  ByteReader magic(absl::string_view(footer).substr(kTableHandlesBytes));
  const uint64_t found = *magic.TakeFixed<uint64_t>();
  if (found != kTableMagic) {
    return Error("a TensorFlow index file should end in the number 0x",
                 absl::Hex(kTableMagic), ", but this ends in 0x",
                 absl::Hex(found), " (TF1)");
  }
  ByteReader handles(absl::string_view(footer).substr(0, kTableHandlesBytes));
  const auto metaindex = TakeHandle(&handles);
  const auto index = metaindex ? TakeHandle(&handles) : std::nullopt;
  if (!index) {
    return Error("the footer should hold two block handles, but byte ",
                 file_.size() - kTableFooterBytes + handles.position(),
                 " begins no varint64 (TF1)");
  }
  ETC_RETURN_IF_ERROR(CheckHandle(*metaindex));
  return *index;
}

absl::Status TableReader::CheckHandle(BlockHandle handle) const {
  const uint64_t end = file_.size() - kTableFooterBytes;
  if (handle.offset > end || handle.size > end - handle.offset ||
      end - handle.offset - handle.size < kTableTrailerBytes) {
    return Error("a block of ", handle.size, " bytes at byte ", handle.offset,
                 " with its trailer of ", kTableTrailerBytes,
                 " should end before the footer at byte ", end, " (TF2)");
  }
  if (handle.size > limits_.block_bytes) {
    return Error("the block at byte ", handle.offset, " should have at most ",
                 limits_.block_bytes, " bytes, but has ", handle.size,
                 " (TF2)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TableReader::ReadBlock(BlockHandle handle) const {
  ETC_RETURN_IF_ERROR(CheckHandle(handle));
  ETC_ASSIGN_OR_RETURN(
      std::string bytes,
      file_.Read(handle.offset, handle.size + kTableTrailerBytes));
  const absl::string_view checked =
      absl::string_view(bytes).substr(0, handle.size + 1);
  ByteReader trailer(absl::string_view(bytes).substr(handle.size));
  const uint8_t type = *trailer.TakeFixed<uint8_t>();
  const uint32_t stored = *trailer.TakeFixed<uint32_t>();
  const uint32_t computed = MaskCrc32c(ExtendCrc32c(0, checked));
  if (stored != computed) {
    return Error("the block at byte ", handle.offset,
                 " should have checksum 0x", absl::Hex(computed), ", but 0x",
                 absl::Hex(stored), " is stored (TF3)");
  }
  if (type == kTableRawBlock) {
    bytes.resize(handle.size);
    return bytes;
  }
  if (type != kTableSnappyBlock) {
    return Error("the block at byte ", handle.offset,
                 " should be of type 0 (raw) or 1 (Snappy), but is of type ",
                 type, " (TF3)");
  }
  return Decompress(checked.substr(0, handle.size), handle);
}

absl::StatusOr<std::string> TableReader::Decompress(
    absl::string_view compressed, BlockHandle handle) const {
  // Believed only as far as Snappy can compress at all.
  const auto claimed = ByteReader(compressed).TakeVarint32();
  if (!claimed || *claimed > limits_.block_bytes ||
      *claimed > 64 * uint64_t{compressed.size()} + 64) {
    return Error("the Snappy block of ", handle.size, " bytes at byte ",
                 handle.offset, " should begin with its length, but ",
                 claimed ? absl::StrCat("claims ", *claimed) : "has none",
                 " (TF3)");
  }
  std::string contents(*claimed, '\0');
  if (!snappy::RawUncompress(compressed.data(), compressed.size(),
                             contents.data())) {
    return Error("the block at byte ", handle.offset,
                 " should be Snappy data for ", *claimed,
                 " bytes, but is not (TF3)");
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
    return error("should begin with three varint32 (TF5)");
  }
  if (*shared > key->size()) {
    return error("shares ", *shared, " bytes with the key before, which has ",
                 key->size(), " (TF5)");
  }
  if (*unshared + *value_bytes > entries->left()) {
    return error("claims ", *unshared, " and ", *value_bytes, " bytes, but ",
                 entries->left(), " are left (TF5)");
  }
  if (*shared + *unshared > limits_.key_bytes) {
    return error("should have a key of at most ", limits_.key_bytes,
                 " bytes, but it has ", *shared + *unshared, " (TF6)");
  }
  key->resize(*shared);
  absl::StrAppend(key, *entries->Take(*unshared));
  return *entries->Take(*value_bytes);
}

absl::Status TableReader::WalkBlock(BlockHandle handle,
                                    std::optional<std::string>* last_key,
                                    const Visitor& visit) const {
  ETC_ASSIGN_OR_RETURN(const std::string contents, ReadBlock(handle));
  if (contents.size() < kTableRestartBytes) {
    return Error("the block at byte ", handle.offset,
                 " should have at least 4 bytes, but has ", contents.size(),
                 " (TF4)");
  }
  const size_t before_count = contents.size() - kTableRestartBytes;
  ByteReader count_reader(absl::string_view(contents).substr(before_count));
  const uint64_t restarts = *count_reader.TakeFixed<uint32_t>();
  if (restarts > before_count / kTableRestartBytes) {
    return Error("the block at byte ", handle.offset, " claims ", restarts,
                 " restarts in ", contents.size(), " bytes (TF4)");
  }
  if (restarts == 0) {
    return absl::OkStatus();
  }
  ByteReader entries(absl::string_view(contents).substr(
      0, before_count - kTableRestartBytes * restarts));
  std::string key;
  while (entries.left() > 0) {
    ETC_ASSIGN_OR_RETURN(const absl::string_view value,
                         TakeEntry(&entries, handle, &key));
    if (last_key->has_value() && key <= **last_key) {
      return Error("keys should rise, but in the block at byte ", handle.offset,
                   " ", QuotedName(key), " comes after ",
                   QuotedName(**last_key), " (TF6)");
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
  const Visitor walk_data_block = [&](absl::string_view key,
                                      absl::string_view value) {
    ByteReader reader(value);
    const auto handle = TakeHandle(&reader);
    if (!handle) {
      return Error("the index entry ", QuotedName(key),
                   " should hold a block handle (TF1)");
    }
    ETC_RETURN_IF_ERROR(CheckHandle(*handle));
    // Else a small file could name one large block without entries for ever.
    data_bytes += handle->size + kTableTrailerBytes;
    if (data_bytes > file_.size()) {
      return Error("data blocks up to the index entry ", QuotedName(key),
                   " have ", data_bytes, " bytes, more than the file (TF2)");
    }
    return WalkBlock(*handle, &last_key, visit);
  };
  return WalkBlock(index, &separator, walk_data_block);
}

}  // namespace

absl::Status ReadSortedTable(const RandomAccessFile& file,
                             const SortedTableLimits& limits,
                             const Visitor& visit) {
  return TableReader(file, limits).Read(visit);
}

}  // namespace etc
