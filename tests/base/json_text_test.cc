#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace etc {
namespace {

TEST(JsonTextTest, ReplacesWhatIsNotUtf8) {
  const nlohmann::json json = {{"path", "data/caf\xE9.csv"}, {"bytes", 3}};
  EXPECT_EQ(JsonText(json), "{\"bytes\":3,\"path\":\"data/caf\uFFFD.csv\"}");
  EXPECT_EQ(JsonAsciiText(json),
            "{\"bytes\":3,\"path\":\"data/caf\\ufffd.csv\"}");
  // A name as a key.
  const nlohmann::json key = {{"caf\xE9", 1}};
  EXPECT_EQ(JsonText(key), "{\"caf\uFFFD\":1}");
}

TEST(JsonTextTest, KeepsTheOrderAndIndents) {
  const nlohmann::ordered_json json = {{"b", 1}, {"a", "\u00E9"}};
  EXPECT_EQ(JsonText(json), "{\"b\":1,\"a\":\"\u00E9\"}");
  EXPECT_EQ(JsonText(json, /*indent=*/2),
            "{\n  \"b\": 1,\n  \"a\": \"\u00E9\"\n}");
  EXPECT_EQ(JsonAsciiText(json), "{\"b\":1,\"a\":\"\\u00e9\"}");
}

TEST(JsonTextTest, MakesObjectsAsAssignmentDoes) {
  std::vector<std::pair<std::string, nlohmann::ordered_json>> fields = {
      {"b", 1}, {"a", {2, 3}}, {"b", "\u00E9"}, {"", nullptr}};
  auto expected = nlohmann::ordered_json::object();
  for (const auto& [name, value] : fields) {
    expected[name] = value;
  }
  EXPECT_EQ(JsonText(JsonObjectOf(std::move(fields))), JsonText(expected));
  EXPECT_EQ(JsonText(JsonObjectOf({})), "{}");
}

}  // namespace
}  // namespace etc
