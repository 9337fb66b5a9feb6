// Lists of official data, whose messages begin with the place of what is wrong,
// and records by their ids.

#include "tasks/task/official_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

absl::StatusOr<int64_t> ReadNumber(const nlohmann::json& json,
                                   const std::string& where) {
  if (!json.is_number_integer()) {
    return absl::InvalidArgumentError(where + " is no number");
  }
  return json.get<int64_t>();
}

TEST(ReadListTest, ReadsEachElement) {
  const auto list = ReadList<int64_t>({4, 2}, "f", "numbers", ReadNumber);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(*list, ElementsAre(4, 2));
}

TEST(ReadListTest, NamesThePlaceOfAMistake) {
  EXPECT_EQ(
      ReadList<int64_t>({4, "b"}, "f.list", "numbers", ReadNumber).status(),
      absl::InvalidArgumentError("f.list[1] is no number"));
  EXPECT_EQ(ReadList<int64_t>("a", "f.list", "numbers", ReadNumber).status(),
            absl::InvalidArgumentError("f.list should be a list of numbers"));
}

TEST(ReadByIdTest, KeepsTheOrderAndStopsAtTheFirstMistake) {
  using Line = std::pair<std::string, std::string>;
  TemporaryDirectory directory;
  const std::string path =
      directory.Write("p.jsonl", "{\"a\":2}\n{\"a\":1}\n{\"a\":3}\n");
  const auto all = ReadById<std::string>(
      path,
      [](const std::string& text, const std::string& where)
          -> absl::StatusOr<Line> { return Line(text, where); });
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, ElementsAre(Pair(R"({"a":2})", path + ": record 0"),
                                Pair(R"({"a":1})", path + ": record 1"),
                                Pair(R"({"a":3})", path + ": record 2")));
  int calls = 0;
  const auto failed = ReadById<std::string>(
      path,
      [&](const std::string& text, const std::string&) -> absl::StatusOr<Line> {
        ++calls;
        return absl::InvalidArgumentError(text);
      });
  EXPECT_EQ(failed.status(), absl::InvalidArgumentError(R"({"a":2})"));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace etc
