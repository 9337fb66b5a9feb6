// Numbers that Python writes and JSON does not have, in their places and in
// strings.

#include "base/non_finite_json.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

absl::StatusOr<json> Quoted(const std::string& text) {
  return ParseJsonWithNonFinite(text, "here", [](absl::string_view number) {
    return absl::StrCat("\"", number, "\"");
  });
}

TEST(NonFiniteJsonTest, ReplacesNumbersThatAreNotFinite) {
  EXPECT_EQ(
      *Quoted(R"({"a": NaN, "b": [-Infinity,1e999, nan],"c":-inf})"),
      (json{
          {"a", "NaN"}, {"b", {"-Infinity", "1e999", "nan"}}, {"c", "-inf"}}));
  EXPECT_EQ(*Quoted("Infinity"), "Infinity");
}

TEST(NonFiniteJsonTest, LeavesStringsAndOtherValuesAlone) {
  EXPECT_EQ(
      *Quoted(R"({"NaN": "a \" NaN, \\", "inf": [NaN, true, null, 1e9]})"),
      (json{{"NaN", "a \" NaN, \\"}, {"inf", {"NaN", true, nullptr, 1e9}}}));
}

TEST(NonFiniteJsonTest, HasTheErrorOfTheTextAsItIs) {
  for (const char* text : {"[NaN, b]", "NaNa", "[NaN", "\"\\", "", "\"NaN"}) {
    EXPECT_EQ(Quoted(text).status(), ParseJson(text, "here").status()) << text;
    EXPECT_FALSE(Quoted(text).ok()) << text;
  }
}

}  // namespace
}  // namespace etc
