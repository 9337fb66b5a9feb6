#include "etc/weights/formats/tensorflow/bundle_slice.h"

#include <algorithm>
#include <bit>

namespace etc {
namespace {

// Appends a number of a key so that keys sort as the numbers do: as many bytes
// as needed, those counted by the ones that the first of them begin with.
void AppendOrderedSigned(int64_t value, std::string* key) {
  static constexpr uint8_t kHeaders[][2] = {
      {0x80, 0}, {0xc0, 0}, {0xe0, 0}, {0xf0, 0},    {0xf8, 0},
      {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
  const uint64_t magnitude =
      value >= 0 ? static_cast<uint64_t>(value) : ~static_cast<uint64_t>(value);
  const int length = static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
  for (int i = 0; i < length; ++i) {
    // Beyond 64 bits, the sign goes on.
    const int shift = 8 * (length - 1 - i);
    const auto byte = static_cast<uint8_t>(value >> std::min(shift, 63));
    key->push_back(
        static_cast<char>(byte ^ (i < 2 ? kHeaders[length - 1][i] : 0)));
  }
}

// One byte that counts the bytes, then the bytes, most significant first.
void AppendOrderedUnsigned(uint64_t value, std::string* key) {
  const int length = (static_cast<int>(std::bit_width(value)) + 7) / 8;
  key->push_back(static_cast<char>(length));
  for (int i = length - 1; i >= 0; --i) {
    key->push_back(static_cast<char>(value >> (8 * i)));
  }
}

}  // namespace

std::string BundleSliceKey(absl::string_view name, const BundleSlice& slice) {
  std::string key(1, '\0');
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') {
      key.push_back('\xff');
    } else if (c == '\xff') {
      key.push_back('\0');
    }
  }
  key.append({'\0', '\1'});
  AppendOrderedUnsigned(slice.size(), &key);
  for (const BundleExtent& extent : slice) {
    AppendOrderedSigned(extent.start, &key);
    AppendOrderedSigned(extent.length, &key);
  }
  return key;
}

bool IsBundleSliceKey(absl::string_view key) {
  return !key.empty() && key.front() == '\0';
}

std::optional<BundleSlice> ResolveSlice(const BundleSlice& slice,
                                        const std::vector<int64_t>& shape) {
  if (slice.size() != shape.size()) {
    return std::nullopt;
  }
  BundleSlice box = slice;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box[d].length == -1 && box[d].start == 0) {
      box[d].length = shape[d];
    }
    if (box[d].start < 0 || box[d].length < 0 || box[d].start > shape[d] ||
        box[d].length > shape[d] - box[d].start) {
      return std::nullopt;
    }
  }
  return box;
}

std::vector<int64_t> SliceShape(const BundleSlice& box) {
  std::vector<int64_t> lengths;
  for (const BundleExtent& extent : box) {
    lengths.push_back(extent.length);
  }
  return lengths;
}

bool SlicesOverlap(const BundleSlice& a, const BundleSlice& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].start >= b[d].start + b[d].length ||
        b[d].start >= a[d].start + a[d].length) {
      return false;
    }
  }
  return ElementCount(SliceShape(a)) > 0 && ElementCount(SliceShape(b)) > 0;
}

void CopySlice(absl::string_view data, const BundleSlice& box,
               const std::vector<int64_t>& shape, int64_t item_bytes,
               char* destination) {
  if (data.empty()) {
    return;  // else, rows without elements would be counted through
  }
  const size_t rank = shape.size();
  const int64_t row_bytes = (rank == 0 ? 1 : box[rank - 1].length) * item_bytes;
  std::vector<int64_t> index(rank, 0);  // of the row; its last stays 0
  const int64_t rows =
      rank == 0
          ? 1
          : ElementCount(SliceShape(BundleSlice(box.begin(), box.end() - 1)));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) {
      element = element * shape[d] + box[d].start + index[d];
    }
    std::copy_n(data.data() + row * row_bytes, row_bytes,
                destination + element * item_bytes);
    for (size_t d = rank; d-- > 0;) {
      if (d + 1 < rank && ++index[d] < box[d].length) {
        break;
      }
      index[d] = 0;
    }
  }
}

int64_t ElementCount(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    elements *= dimension;
  }
  return elements;
}

}  // namespace etc
