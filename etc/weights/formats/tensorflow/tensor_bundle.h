#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The records in the index of a TensorFlow V2 checkpoint (doc/formats.md 2.3).

inline constexpr int64_t kBundleFormatVersion = 1;

struct BundleEntry : TensorInfo {
  int64_t shard = 0;
  // Bytes of the shard's data file.
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc32c = 0;
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

// Returns true for the key of a slice of a partitioned variable, which is not
// supported (doc/formats.md 2.4).
bool IsBundleSliceKey(absl::string_view key);

// The product of the dimensions, which must not overflow.
int64_t ElementCount(const std::vector<int64_t>& shape);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
