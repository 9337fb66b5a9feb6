#include "tasks/data/hold_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace etc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Returns the strata of 1000 records: 700 of "a", 293 of "b", 6 of "c" and one
// of "d".
std::vector<std::string> Strata() {
  std::vector<std::string> strata;
  for (int i = 0; i < 1000; ++i) {
    strata.emplace_back(i < 700 ? "a" : i < 993 ? "b" : i < 999 ? "c" : "d");
  }
  return strata;
}

int64_t CountOf(const std::vector<bool>& is_held_out, size_t begin,
                size_t end) {
  return std::count(is_held_out.begin() + static_cast<int64_t>(begin),
                    is_held_out.begin() + static_cast<int64_t>(end), true);
}

// FindHeldOut of records of one stratum.
absl::StatusOr<std::vector<bool>> Find(const std::vector<FileRecord>& records,
                                       const HoldOutOptions& options) {
  return FindHeldOut(
      records, [](const std::string&, const std::string&) { return ""; },
      options);
}

std::vector<FileRecord> Records(int64_t count) {
  std::vector<FileRecord> records;
  for (int64_t i = 0; i < count; ++i) {
    records.push_back({.json = absl::StrCat("{\"id\": ", i, "}")});
  }
  return records;
}

TEST(HoldOutTest, TakesTheSameShareOfEachStratum) {
  const std::vector<bool> chosen = ChooseHeldOut(Strata(), {.fraction = 0.1});
  EXPECT_EQ(CountOf(chosen, 0, 1000), 100);
  EXPECT_EQ(CountOf(chosen, 0, 700), 70);
  EXPECT_LE(std::abs(CountOf(chosen, 700, 993) - 29), 1);
  EXPECT_LE(CountOf(chosen, 993, 999), 1);
  // The only record of "d" stays for training.
  EXPECT_FALSE(chosen[999]);
  const std::vector<bool> most = ChooseHeldOut(Strata(), {.fraction = 0.99});
  EXPECT_LE(CountOf(most, 993, 999), 5);
}

TEST(HoldOutTest, TakesNoMoreOfAStratumWhereOthersGiveNothing) {
  std::vector<std::string> strata;
  for (int i = 0; i < 1050; ++i) {
    strata.push_back(i < 1000 ? absl::StrCat("a", i) : "z");
  }
  EXPECT_EQ(CountOf(ChooseHeldOut(strata, {.fraction = 0.1}), 1000, 1050), 5);
}

TEST(HoldOutTest, FollowsFromTheSeedAlone) {
  const auto chosen = ChooseHeldOut(Strata(), {.fraction = 0.1, .seed = 3});
  EXPECT_EQ(chosen, ChooseHeldOut(Strata(), {.fraction = 0.1, .seed = 3}));
  EXPECT_NE(chosen, ChooseHeldOut(Strata(), {.fraction = 0.1, .seed = 4}));
}

TEST(HoldOutTest, TellsOtherRecords) {
  const std::vector<FileRecord> records = Records(20);
  HoldOutOptions options = {.fraction = 0.25};
  const std::vector<bool> chosen =
      ChooseHeldOut(std::vector<std::string>(20), options);
  EXPECT_EQ(*Find(records, options), chosen);
  options.expected = DescribeHeldOut(records, chosen);
  EXPECT_THAT(options.expected, StartsWith("5 of 20 records, sha256:"));
  EXPECT_EQ(*Find(records, options), chosen);
  std::vector<FileRecord> changed = records;
  const auto first = std::find(chosen.begin(), chosen.end(), true);
  changed[static_cast<size_t>(first - chosen.begin())].json += " ";
  const absl::Status status = Find(changed, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(options.expected));
}

TEST(HoldOutTest, RefusesToHoldOutNothing) {
  EXPECT_THAT(
      std::string(Find(Records(20), {.fraction = 0.01}).status().message()),
      EndsWith("data.dev_fraction 0.01 of 20 records holds none out "
               "for evaluations"));
  int label = 0;
  const auto found =
      FindHeldOut(Records(20),
                  [&label](const std::string&, const std::string&) {
                    return absl::StrCat(++label);
                  },
                  {.fraction = 0.25});
  EXPECT_THAT(found.status().message(),
              HasSubstr("holds none out for evaluations: they have 20 "
                        "different labels, each of which keeps a record"));
}

}  // namespace
}  // namespace etc
