#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/formats/tensorflow/bundle_slice.h"

namespace etc {

// The records in the index of a TensorFlow V2 checkpoint (formats spec 2.3).

struct BundleEntry : TensorInfo {
  int64_t shard = 0;
  // Bytes of the shard's data file.
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc32c = 0;
  // Not empty: the data are under the keys BundleSliceKey of these.
  std::vector<BundleSlice> slices;
};

// The number of shards that the record under the empty key gives. What it
// rejects is TF7 of formats spec 2.5.
absl::StatusOr<int64_t> ParseBundleHeader(absl::string_view record);
// The header of a checkpoint with one shard.
std::string SerializeBundleHeader();

// What it rejects is TF8: in the record itself, not yet against files.
absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view record);
// The inverse, for an entry without slices. kInvalidArgument if its dtype has
// no number, the shape cannot be, or the size is not theirs.
absl::StatusOr<std::string> SerializeBundleEntry(const BundleEntry& entry);

// Bytes of one element, 0 if they differ or are not known (strings).
int64_t BundleDtypeBytes(absl::string_view dtype);
// Whether its data are plain numbers that can be handed on.
bool IsReadableBundleDtype(absl::string_view dtype);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
