#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The records in the index of a TensorFlow V2 checkpoint (doc/formats.md 2.3),
// and the slices in which it stores partitioned variables (doc/formats.md 2.4).

inline constexpr int64_t kBundleFormatVersion = 1;

// Elements [start, start + length) of one dimension. Length -1 with start 0:
// all of them.
struct BundleExtent {
  int64_t start = 0;
  int64_t length = -1;
};

// A part of a tensor: one extent for each dimension.
using BundleSlice = std::vector<BundleExtent>;

struct BundleEntry : TensorInfo {
  int64_t shard = 0;
  // Bytes of the shard's data file.
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc32c = 0;
  // Not empty: the data are in the entries of these slices, under the keys that
  // BundleSliceKey gives.
  std::vector<BundleSlice> slices;
};

// The number of shards in `record`, the one under the empty key.
//   kInvalidArgument  what doc/formats.md 2.5.7 rejects
absl::StatusOr<int64_t> ParseBundleHeader(absl::string_view record);

// Checks the record by itself, not against the files.
//   kInvalidArgument  what doc/formats.md 2.5.8 rejects
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view record);

// kInvalidArgument if a dimension is negative or there are more than 2^40
// elements.
absl::Status CheckBundleShape(const std::vector<int64_t>& shape);

// Bytes of one element; 0 if elements differ in size or the dtype is unknown.
int64_t BundleDtypeBytes(absl::string_view dtype);

// The key under which the data of a slice of tensor `name` are.
std::string BundleSliceKey(absl::string_view name, const BundleSlice& slice);
// Returns true if a key is one of those.
bool IsBundleSliceKey(absl::string_view key);

// The slice with all lengths filled in, or nullopt if it does not lie within a
// tensor of `shape`. The functions below take only such slices, called boxes.
std::optional<BundleSlice> ResolveSlice(const BundleSlice& slice,
                                        const std::vector<int64_t>& shape);

// The lengths of a box.
std::vector<int64_t> SliceShape(const BundleSlice& box);

// Returns true if two boxes have an element in common.
bool SlicesOverlap(const BundleSlice& a, const BundleSlice& b);

// Copies `data`, the elements of `box` in row-major order, each of
// `item_bytes`, to their places in a tensor of `shape` at `destination`.
void CopySlice(absl::string_view data, const BundleSlice& box,
               const std::vector<int64_t>& shape, int64_t item_bytes,
               char* destination);

// The product of the dimensions, which must not overflow.
int64_t ElementCount(const std::vector<int64_t>& shape);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
