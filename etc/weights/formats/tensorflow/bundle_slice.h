#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_BUNDLE_SLICE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_BUNDLE_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace etc {

// Parts of a tensor, as TensorFlow stores partitioned variables (formats spec
// 2.4).

// Elements [start, start + length) of one dimension. Length -1 with start 0:
// all of them.
struct BundleExtent {
  int64_t start = 0;
  int64_t length = -1;
};

// A box: one extent for each dimension.
using BundleSlice = std::vector<BundleExtent>;

// The key under which the data of a slice of tensor `name` are.
std::string BundleSliceKey(absl::string_view name, const BundleSlice& slice);
// Whether a key is one of those.
bool IsBundleSliceKey(absl::string_view key);

// The slice with all lengths filled in, or nullopt if it does not lie within a
// tensor of `shape`. What follows takes only these.
std::optional<BundleSlice> ResolveSlice(const BundleSlice& slice,
                                        const std::vector<int64_t>& shape);

// Its lengths.
std::vector<int64_t> SliceShape(const BundleSlice& box);

// Whether an element is in both.
bool SlicesOverlap(const BundleSlice& a, const BundleSlice& b);

// Copies `data`, the elements of `box` row by row, each of `item_bytes`, to
// their places in a tensor of `shape` at `destination`.
void CopySlice(absl::string_view data, const BundleSlice& box,
               const std::vector<int64_t>& shape, int64_t item_bytes,
               char* destination);

// The product of the dimensions, which must not overflow.
int64_t ElementCount(const std::vector<int64_t>& shape);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_BUNDLE_SLICE_H_
