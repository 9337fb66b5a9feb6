#ifndef ETC_BASE_FILE_H_
#define ETC_BASE_FILE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// A regular file open for positioned reads. Movable; closes itself.
class RandomAccessFile {
 public:
  // kNotFound, kPermissionDenied, ... with the path in the message;
  // kInvalidArgument if `path` is no regular file.
  static absl::StatusOr<RandomAccessFile> Open(const std::string& path);

  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  ~RandomAccessFile();

  const std::string& path() const { return path_; }
  // Bytes, as of the time of opening.
  uint64_t size() const { return size_; }
  // The system's descriptor, open as long as this object lives.
  int descriptor() const { return descriptor_; }

  // Reads exactly `length` bytes from byte `offset` into `destination`. Safe to
  // call from several threads. kOutOfRange if the file does not hold them
  // (checked before anything is read), kDataLoss on a short read.
  absl::Status Read(uint64_t offset, uint64_t length, char* destination) const;
  // The same into a new string.
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t length) const;

 private:
  RandomAccessFile(std::string path, int descriptor, uint64_t size);

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Numbers are copied as they stand in files.
static_assert(std::endian::native == std::endian::little);

// Takes numbers and pieces from the front of `bytes`, which must outlive it.
// Returns nullopt, and takes nothing, if too few bytes are left.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  // Bytes taken so far, and those left.
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  std::optional<absl::string_view> Take(uint64_t length) {
    if (length > left()) {
      return std::nullopt;
    }
    const absl::string_view piece = bytes_.substr(position_, length);
    position_ += length;
    return piece;
  }

  // A number, little-endian.
  template <typename T>
  std::optional<T> TakeFixed() {
    const auto piece = Take(sizeof(T));
    if (!piece) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, piece->data(), sizeof(T));
    return value;
  }

  // A base-128 number, least significant group first, that fits in `bits` bits
  // (doc/formats.md 0.3).
  std::optional<uint64_t> TakeVarint(int bits) {
    uint64_t value = 0;
    size_t at = position_;
    for (int shift = 0; shift < bits && at < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at++]);
      const uint64_t group = byte & 0x7f;
      if (shift + 7 > bits && (group >> (bits - shift)) != 0) {
        return std::nullopt;
      }
      value |= group << shift;
      if (byte < 0x80) {
        position_ = at;
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<uint64_t> TakeVarint32() { return TakeVarint(32); }
  std::optional<uint64_t> TakeVarint64() { return TakeVarint(64); }

 private:
  absl::string_view bytes_;
  size_t position_ = 0;
};

// Appends a number to `bytes` as ByteReader takes it.
template <typename T>
void AppendFixed(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// A limit of bytes that no file reaches.
inline constexpr uint64_t kAnyBytes = std::numeric_limits<int64_t>::max();

// The whole of a regular file. kResourceExhausted if it holds more than
// `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     uint64_t max_bytes = uint64_t{1} << 30);

// Replaces `path` by `contents` so that a reader, and the disk after a crash,
// have either the old file or the whole new one: temporary name in the same
// folder (TemporaryName in base/directory.h), write, fsync, rename,
// fsync of the folder. After an error the old file stands and the temporary one
// is gone; a killed process leaves it behind (RemoveAbandonedTemporaries). A
// symbolic link is replaced, not followed.
//   kInvalidArgument  `path` is there and is no regular file
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents);

// The same for contents that are produced piece by piece: `produce` is called
// once and hands each piece to `write`; its error is returned.
using WriteFunction = std::function<absl::Status(absl::string_view)>;
absl::Status WriteFileAtomically(
    const std::string& path,
    const std::function<absl::Status(const WriteFunction& write)>& produce);

// Returns true if `name` is a plain file name and not a path: the only way in
// which one file may refer to another beside it (doc/formats.md 0.1).
bool IsPlainBaseName(absl::string_view name);

// Creates `path` and its parents, each of which is on disk (fsync of the
// directory that it is in) when this returns. OK if it is there already.
absl::Status CreateDirectories(const std::string& path);

}  // namespace etc

#endif  // ETC_BASE_FILE_H_
