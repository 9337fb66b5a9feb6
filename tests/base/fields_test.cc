// Tables of fields: reading, checking and writing of each kind of row, and the
// messages of its mistakes.
#include "base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/row_options.h"

namespace etc {
namespace {

using testing::HasSubstr;

// The mistake in an object with these fields; empty: there is none.
std::string ReadRows(const nlohmann::json& json, RowOptions* options) {
  JsonObjectReader reader(json, "run.json: rows");
  ReadFields(&reader, options);
  return std::string(reader.Finish().message());
}

TEST(ConfigTableTest, ReadsEachKindOfRow) {
  RowOptions options;
  EXPECT_EQ(ReadRows(nlohmann::json::object(), &options), "");
  EXPECT_EQ(options.shape, RowShape::kFlat);
  EXPECT_EQ(options.other_shape, RowShape::kNone);
  EXPECT_EQ(options.rows, 0);
  EXPECT_EQ(options.color, "red");
  EXPECT_EQ(ReadRows({{"shape", "round"},
                      {"other_shape", "flat"},
                      {"width", 7},
                      {"share", 0.25},
                      {"rows", 5},
                      {"color", nullptr},
                      {"mark", ";"}},
                     &options),
            "");
  EXPECT_EQ(options.shape, RowShape::kRound);
  EXPECT_EQ(options.other_shape, RowShape::kFlat);
  EXPECT_EQ(options.part.width, 7);
  EXPECT_EQ(options.share, 0.25);
  EXPECT_EQ(options.rows, 5);
  EXPECT_EQ(options.color, "blue");
  EXPECT_EQ(options.mark, ';');
  EXPECT_EQ(ReadRows({{"rows", nullptr}}, &options), "");
  EXPECT_EQ(options.rows, 0);
}

TEST(ConfigTableTest, NamesThePlaceOfAMistakeInEachKindOfRow) {
  const auto mistake = [](const nlohmann::json& json) {
    RowOptions options;
    return ReadRows(json, &options);
  };
  EXPECT_EQ(mistake({{"shape", "square"}}),
            "run.json: rows.shape should be \"round\" or \"flat\", but is "
            "\"square\"");
  EXPECT_EQ(mistake({{"shape", 1}}),
            "run.json: rows.shape should be a string, but is 1");
  EXPECT_EQ(mistake({{"width", 0}}),
            "run.json: rows.width should be at least 1, but is 0");
  EXPECT_EQ(mistake({{"width", 3000000000}}),
            "run.json: rows.width should be at most 2147483647, but is "
            "3000000000");
  EXPECT_EQ(mistake({{"share", 1}}),
            "run.json: rows.share should be in (0, 1), but is 1");
  EXPECT_EQ(mistake({{"share", nullptr}}),
            "run.json: rows.share should be a number, but is null");
  EXPECT_EQ(mistake({{"rows", 0}}),
            "run.json: rows.rows should be at least 1, but is 0");
  EXPECT_EQ(mistake({{"color", "geen"}}),
            "run.json: rows.color should be \"red\" or \"green\" or \"blue\", "
            "but is \"geen\"; did you mean \"green\"?");
  EXPECT_EQ(mistake({{"mark", "ab"}}),
            "run.json: rows.mark should be one character");
  EXPECT_THAT(mistake({{"with", 3}}), HasSubstr("did you mean \"width\"?"));
}

// Structs that were not read from a file, such as those of a C++ program.
TEST(ConfigTableTest, ChecksMembersByTheirRules) {
  const auto mistake = [](const RowOptions& options) {
    FieldMistakes mistakes("rows");
    CheckFields(options, &mistakes);
    return std::string(mistakes.status().message());
  };
  EXPECT_EQ(mistake({}), "");
  EXPECT_EQ(mistake({.part = {.width = 0}}),
            "rows: width should be at least 1, but is 0");
  EXPECT_EQ(mistake({.share = std::numeric_limits<double>::quiet_NaN()}),
            "rows: share should be a finite number, but is nan");
  EXPECT_EQ(mistake({.rows = 10}), "rows: rows should be at most 9, but is 10");
  EXPECT_EQ(mistake({.part = {.width = 0}, .color = "blu"}),
            "rows: width should be at least 1, but is 0")
      << "the first one";
}

TEST(ConfigTableTest, WritesTheMembersAsTheyAreRead) {
  const auto written = [](const RowOptions& options) {
    nlohmann::json json = nlohmann::json::object();
    WriteFields(options, &json);
    return json;
  };
  // The mark has no member to be written.
  EXPECT_EQ(written({}).dump(),
            R"({"color":"red","other_shape":null,"rows":null,)"
            R"("shape":"flat","share":null,"width":3})");
  RowOptions options = {.shape = RowShape::kRound,
                        .other_shape = RowShape::kFlat,
                        .part = {.width = 5},
                        .share = 0.5,
                        .rows = 2,
                        .color = "blue"};
  const nlohmann::json json = written(options);
  RowOptions again;
  EXPECT_EQ(ReadRows(json, &again), "");
  EXPECT_EQ(written(again), json);
  EXPECT_EQ(again.rows, 2);
}

TEST(ConfigTableTest, TakesAnyNumberOfNames) {
  static constexpr absl::string_view kNames[] = {"a", "b", "c", "d", "e", "f"};
  FieldMistakes mistakes("t");
  for (const absl::string_view name : kNames) {
    CheckRule({.one_of = kNames}, "field", std::string(name), &mistakes);
    EXPECT_TRUE(mistakes.ok()) << name;
  }
  CheckRule({.one_of = kNames}, "field", std::string("g"), &mistakes);
  EXPECT_THAT(std::string(mistakes.status().message()),
              HasSubstr("\"d\" or \"e\" or \"f\", but is \"g\""));
}

TEST(ConfigTableTest, AStructWithoutMembersHasNoFields) {
  struct NoTable {};
  NoTable options;
  const nlohmann::json json = {{"width", 1}};
  JsonObjectReader reader(json, "run.json: none");
  ReadFields(&reader, &options);
  EXPECT_FALSE(reader.Finish().ok());
}

}  // namespace
}  // namespace etc
