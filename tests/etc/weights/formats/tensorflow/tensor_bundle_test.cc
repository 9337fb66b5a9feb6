// Slices of partitioned tensors (doc/formats.md 2.4): the keys of the spec, the
// order of keys, boxes within shapes, and copies of boxes that together make
// the whole. Records are tested with tensorflow_checkpoint_test.

#include "etc/weights/formats/tensorflow/tensor_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "absl/strings/escaping.h"

namespace etc {
namespace {

using testing::ElementsAre;

// The bytes of `value` in a key of rank 1.
std::string OrderedCode(int64_t value) {
  const std::string key = BundleSliceKey("", {{.start = value, .length = -1}});
  // Before it: 00, 00 01, 01 01. After it: the 7f of length -1.
  return absl::BytesToHexString(key.substr(5, key.size() - 6));
}

TEST(BundleSliceTest, HasTheKeysOfTheSpec) {
  const struct {
    int64_t value;
    const char* hex;
  } cases[] = {{0, "80"},        {1, "81"},        {63, "bf"},    {64, "c040"},
               {-1, "7f"},       {-64, "40"},      {-65, "3fbf"}, {768, "c300"},
               {8192, "e02000"}, {30522, "e0773a"}};
  for (const auto& each : cases) {
    EXPECT_EQ(OrderedCode(each.value), each.hex) << each.value;
  }
  EXPECT_EQ(
      absl::BytesToHexString(BundleSliceKey("emb", {{0, 15261}, {0, -1}})),
      "00656d620001010280e03b9d807f");
  EXPECT_EQ(absl::BytesToHexString(
                BundleSliceKey(absl::string_view("\0\xff", 2), {})),
            "0000ffff00000100");
}

TEST(BundleSliceTest, OrdersKeysAsNumbers) {
  std::vector<int64_t> values = {std::numeric_limits<int64_t>::min()};
  for (int bits = 62; bits > 0; --bits) {
    values.push_back(-(int64_t{1} << bits) - 1);
    values.push_back(-(int64_t{1} << bits));
  }
  for (int bits = 0; bits < 63; ++bits) {
    values.push_back((int64_t{1} << bits) - 1);
    values.push_back(int64_t{1} << bits);
  }
  values.push_back(std::numeric_limits<int64_t>::max());
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i - 1] < values[i]) {
      EXPECT_LT(OrderedCode(values[i - 1]), OrderedCode(values[i]))
          << values[i - 1] << " and " << values[i];
    }
  }
}

TEST(BundleSliceTest, ResolvesOnlyWhatLiesWithin) {
  const std::vector<int64_t> shape = {4, 3};
  EXPECT_THAT(SliceShape(*ResolveSlice({{0, -1}, {1, 2}}, shape)),
              ElementsAre(4, 2));
  EXPECT_THAT(SliceShape(*ResolveSlice({{4, 0}, {0, -1}}, shape)),
              ElementsAre(0, 3));
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const BundleSlice& slice :
       {BundleSlice{{0, -1}}, BundleSlice{{0, -1}, {0, -1}, {0, -1}},
        BundleSlice{{1, -1}, {0, -1}}, BundleSlice{{-1, 2}, {0, -1}},
        BundleSlice{{0, -2}, {0, -1}}, BundleSlice{{0, 5}, {0, -1}},
        BundleSlice{{1, most}, {0, -1}}, BundleSlice{{most, 1}, {0, -1}}}) {
    EXPECT_EQ(ResolveSlice(slice, shape), std::nullopt);
  }
}

TEST(BundleSliceTest, TellsWhetherBoxesOverlap) {
  const BundleSlice box = {{0, 2}, {0, 3}};
  EXPECT_TRUE(SlicesOverlap(box, {{1, 2}, {2, 1}}));
  EXPECT_FALSE(SlicesOverlap(box, {{2, 2}, {0, 3}}));
  EXPECT_FALSE(SlicesOverlap(box, {{0, 2}, {3, 1}}));
  EXPECT_FALSE(SlicesOverlap(box, {{1, 0}, {0, 3}}));
}

TEST(BundleSliceTest, PutsBoxesTogether) {
  const std::vector<int64_t> shape = {3, 4, 5};
  std::vector<int16_t> whole(60, -1);
  // Element [i, j, k] is 100 i + 10 j + k.
  for (const BundleSlice& box : {BundleSlice{{0, 3}, {0, 1}, {0, 5}},
                                 BundleSlice{{0, 2}, {1, 3}, {0, 2}},
                                 BundleSlice{{0, 2}, {1, 3}, {2, 3}},
                                 BundleSlice{{2, 1}, {1, 3}, {0, 5}},
                                 BundleSlice{{2, 1}, {4, 0}, {0, 5}}}) {
    std::vector<int16_t> data;
    for (int64_t i = 0; i < box[0].length; ++i) {
      for (int64_t j = 0; j < box[1].length; ++j) {
        for (int64_t k = 0; k < box[2].length; ++k) {
          data.push_back(static_cast<int16_t>(100 * (box[0].start + i) +
                                              10 * (box[1].start + j) +
                                              box[2].start + k));
        }
      }
    }
    CopySlice(absl::string_view(reinterpret_cast<const char*>(data.data()),
                                data.size() * 2),
              box, shape, 2, reinterpret_cast<char*>(whole.data()));
  }
  for (int16_t i = 0; i < 60; ++i) {
    EXPECT_EQ(whole[i], 100 * (i / 20) + 10 * (i / 5 % 4) + i % 5) << i;
  }
}

}  // namespace
}  // namespace etc
