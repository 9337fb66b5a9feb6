// Outlines exchanged by ranks come through unchanged, with errors of any bytes
// and of any kind; and an outline is completed by its own example alone.

#include "tasks/data/example_outline.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/data/record_gate.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<Example> ExampleOf(size_t long_length, size_t global_length) {
  auto example = std::make_shared<Example>();
  example->long_token_ids.resize(long_length);
  example->global_token_ids.resize(global_length);
  return example;
}

TEST(ExampleOutlineTest, ComesThroughAsItWas) {
  const RecordRequest request = {.record = int64_t{1} << 40,
                                 .key = std::numeric_limits<uint64_t>::max()};
  const std::shared_ptr<Example> example = ExampleOf(9, 2);
  example->left_out = "\xff is not the answer";
  example->record_id = "moby \xff";
  example->is_truncated = true;
  example->lost_text = {.count = int64_t{1} << 40, .unit = "pieces"};
  example->lost_answer = "\xff is far";
  const absl::StatusOr<ExampleOutlines> outlines =
      OutlinesOf(request, Examples{ExampleOf(3, 1), example});
  ASSERT_THAT(*outlines, SizeIs(2));

  const auto told = OutlinesFromBytes(OutlinesToBytes(
      {outlines, ExampleOutlines(), absl::DataLossError("disk \xfe on fire"),
       KnownDefect("\"\n"), absl::InvalidArgumentError("bad")}));
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_THAT(*told, SizeIs(5));
  ASSERT_TRUE((*told)[0].ok());
  ASSERT_THAT(*(*told)[0], SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    const ExampleOutline& outline = (*(*told)[0])[i];
    const ExampleOutline& expected = (*outlines)[i];
    EXPECT_EQ(outline.request, request);
    EXPECT_EQ(outline.number, i);
    EXPECT_EQ(outline.long_length, expected.long_length);
    EXPECT_EQ(outline.global_length, expected.global_length);
    EXPECT_EQ(outline.bytes, expected.bytes);
    EXPECT_EQ(outline.notes.left_out, expected.notes.left_out);
    EXPECT_EQ(outline.notes.is_truncated, i == 1);
    EXPECT_EQ(outline.notes.lost_answer, expected.notes.lost_answer);
    EXPECT_EQ(outline.record_id, i == 1 ? "moby \xff" : "");
    EXPECT_EQ(outline.notes.lost_text.count, i == 1 ? int64_t{1} << 40 : 0);
    EXPECT_EQ(outline.notes.lost_text.unit, i == 1 ? "pieces" : "");
    EXPECT_EQ(outline.example, nullptr);
  }
  EXPECT_EQ((*outlines)[1].global_length, 2);
  EXPECT_EQ((*outlines)[1].notes.left_out, example->left_out);
  EXPECT_EQ((*outlines)[1].notes.lost_answer, example->lost_answer);
  EXPECT_EQ((*outlines)[1].bytes, ExampleBytes(*example));
  ASSERT_TRUE((*told)[1].ok());
  EXPECT_THAT(*(*told)[1], IsEmpty());
  EXPECT_EQ((*told)[2].status(), absl::DataLossError("disk \xfe on fire"));
  EXPECT_EQ((*told)[3].status(), KnownDefect("\"\n"));
  EXPECT_TRUE(IsKnownDefect((*told)[3].status()));
  EXPECT_EQ((*told)[4].status(), absl::InvalidArgumentError("bad"));
  EXPECT_FALSE(IsKnownDefect((*told)[4].status()));
}

TEST(ExampleOutlineTest, RefusesOtherBytes) {
  const std::string bytes = OutlinesToBytes({ExampleOutlines(1)});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(OutlinesFromBytes(bytes.substr(0, size)).status().code(),
              absl::StatusCode::kInternal)
        << size;
  }
}

TEST(ExampleOutlineTest, IsCompletedByItsOwnExample) {
  const Examples made = {ExampleOf(3, 1), ExampleOf(9, 2)};
  ExampleOutline outline = {.number = 1, .long_length = 9, .global_length = 2};
  ASSERT_TRUE(SetExample(made, &outline).ok());
  EXPECT_THAT(ExamplesOf({outline}), ElementsAre(made[1]));

  for (const ExampleOutline& other :
       {ExampleOutline{.number = 2, .long_length = 9, .global_length = 2},
        ExampleOutline{.number = 1, .long_length = 8, .global_length = 2},
        ExampleOutline{.number = 1, .long_length = 9, .global_length = 3}}) {
    ExampleOutline copy = other;
    const absl::Status status = SetExample(made, &copy);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("do all processes read the same data?"));
  }
}

}  // namespace
}  // namespace etc
