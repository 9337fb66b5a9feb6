#ifndef ETC_BASE_BYTE_READER_H_
#define ETC_BASE_BYTE_READER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace etc {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they stand in files");

// Takes numbers and pieces from the front of `bytes`, which must outlive it.
// What is not there is nullopt, and then nothing is taken.
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

// The inverse: append to `bytes`.
template <typename T>
void AppendFixed(T value, std::string* bytes) {
  char piece[sizeof(T)];
  std::memcpy(piece, &value, sizeof(T));
  bytes->append(piece, sizeof(T));
}

inline void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) {
    bytes->push_back(static_cast<char>(value | 0x80));
  }
  bytes->push_back(static_cast<char>(value));
}

}  // namespace etc

#endif  // ETC_BASE_BYTE_READER_H_
