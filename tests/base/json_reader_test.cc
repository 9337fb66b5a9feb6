// Strict JSON and typed reading of its objects: every message names the place,
// what should be there and what is.

#include "base/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string Repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

TEST(ParseJsonTest, ParsesEveryKindOfValue) {
  const auto value = ParseJson(
      R"( {"a": [1, -2, 2.5, 1e3, true, false, null, "\u00e9\ud83d\ude00"],
           "b": {"c": {}, "d": [], "e": [[{"f": 18446744073709551615}]]}} )",
      "x");
  ASSERT_TRUE(value.ok()) << value.status();
  json expected;
  expected["a"] = {1, -2, 2.5, 1000.0, true, false, nullptr, "é😀"};
  expected["b"]["c"] = json::object();
  expected["b"]["d"] = json::array();
  expected["b"]["e"] = json::parse(R"([[{"f": 18446744073709551615}]])");
  EXPECT_EQ(*value, expected);
  EXPECT_EQ(*ParseJson("7", "x"), json(7));
}

struct Malformed {
  std::string text;
  std::string message;  // begins so, after "x.json:"
};

TEST(ParseJsonTest, RefusesWhatIsNotJsonAndSaysWhere) {
  const std::vector<Malformed> cases = {
      {"", "1:1: syntax error"},
      {"{\n  \"a\": 1,\n  \"b\" 2\n}", "3:7: syntax error"},
      {"{} {}", "1:4: syntax error"},
      {"[1, 2,]", "1:7: syntax error"},
      {"[01]", "1:3: syntax error"},
      {"[NaN]", "1:2: syntax error"},
      {"// comment\n{}", "1:1: syntax error"},
      {"\"open", "1:"},
      {"[1e999]", "1:6: number overflow"},
      {"\"\xff\"", "1:2: syntax error"},
      {"\"\xc0\xaf\"", "1:2: syntax error"},
      {"\"\xed\xa0\x80\"", "1:3: syntax error"},
      {"\"\\ud800\"", "1:8: syntax error"},
      {"\"\t\"", "1:2: syntax error"},
      {std::string("{}\0", 3), "1:3: there should be no NUL bytes"},
      {std::string("{}\n\0{", 5), "2:1: there should be no NUL bytes"},
      {"{\"a\": 1,\n \"a\": 2}",
       "2:4: the key \"a\" is there twice, first at 1:4"},
      {"[{\"k\": {\"b\": 1, \"\\u0062\": 1}}]", "1:24: the key \"b\" is there"},
      {Repeated("[", 65), "1:65: nesting should be at most 64 deep"},
      {Repeated("{\"a\":", 65), "1:321: nesting should be at most 64 deep"},
  };
  for (const Malformed& malformed : cases) {
    const auto value = ParseJson(malformed.text, "x.json");
    ASSERT_FALSE(value.ok()) << malformed.text;
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(value.status().message()),
                StartsWith("x.json:" + malformed.message));
  }
}

TEST(ParseJsonTest, AcceptsTheDeepestNestingAllowed) {
  EXPECT_TRUE(ParseJson(Repeated("[", 64) + Repeated("]", 64), "x").ok());
  EXPECT_TRUE(
      ParseJson(absl::StrCat("[", Repeated("{\"a\":[]},", 100), "{}]"), "x")
          .ok());
}

TEST(ParseJsonTest, KeepsMessagesShortAndPrintable) {
  const auto value = ParseJson("[\"" + std::string(100000, 'x') + "\x01", "x");
  ASSERT_FALSE(value.ok());
  EXPECT_LT(value.status().message().size(), 300u);
  EXPECT_EQ(ParseJson("\"a\xff\"", "x").status().message().find('\xff'),
            absl::string_view::npos);
}

TEST(ParseJsonTest, ShowsTextAsItStands) {
  EXPECT_THAT(
      std::string(ParseJson("{\"caf\u00e9\" /}", "x").status().message()),
      HasSubstr("last read: '\"caf\u00e9\" /'; expected ':'"));
  EXPECT_THAT(
      std::string(
          ParseJson("{\"\u00e9\": 1, \"\u00e9\": 2}", "x").status().message()),
      HasSubstr("the key \"\u00e9\" is there twice"));
}

TEST(ParseJsonTest, SaysThatTextIsPacked) {
  EXPECT_EQ(ParseJson(GzipMember("[1]"), "x").status().message(),
            "x:1:1: the text is packed by gzip");
}

TEST(ReadJsonFileTest, UnpacksAFile) {
  TemporaryDirectory directory;
  const auto value = ReadJsonFile(directory.Write("a.gz", GzipMember("[1]")));
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, json({1}));
}

TEST(ReadJsonFileTest, NamesTheFile) {
  TemporaryDirectory directory;
  EXPECT_EQ(*ReadJsonFile(directory.Write("a.json", "[1]")), json({1}));
  const std::string bad = directory.Write("b.json", "[1");
  EXPECT_THAT(std::string(ReadJsonFile(bad).status().message()),
              StartsWith(bad + ":1:"));
  EXPECT_EQ(ReadJsonFile(directory.File("c.json")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(JsonObjectReaderTest, ReadsListsOfNumbers) {
  const json object = json::parse(R"({"range": [-50.5, 3], "bad": [1, "2"]})");
  std::vector<double> numbers;
  JsonObjectReader reader(object, "x.json");
  reader.Optional("range", &numbers);
  EXPECT_THAT(numbers, ElementsAre(-50.5, 3));
  reader.Optional("bad", &numbers);
  EXPECT_EQ(reader.Finish().message(),
            "x.json: bad[1] should be a number, but is \"2\"");
}

TEST(JsonObjectReaderTest, TakesASingleValueForAListWhereThatIsMeant) {
  const json object = json::parse(
      R"({"name": "a", "names": ["b", "c"], "count": 3, "bad": {}})");
  std::vector<std::string> name;
  std::vector<std::string> names;
  std::vector<int64_t> count;
  JsonObjectReader reader(object, "x.json");
  reader.OneOrMore("name", &name);
  reader.OneOrMore("names", &names);
  reader.OneOrMore("count", &count);
  EXPECT_THAT(name, ElementsAre("a"));
  EXPECT_THAT(names, ElementsAre("b", "c"));
  EXPECT_THAT(count, ElementsAre(3));
  reader.OneOrMore("bad", &name);
  EXPECT_EQ(reader.Finish().message(),
            "x.json: bad should be a string or an array of such, but is an "
            "object");
  JsonObjectReader strict(object, "x.json");
  strict.Optional("name", &names);
  EXPECT_EQ(strict.status().message(),
            "x.json: name should be an array, but is \"a\"");
}

TEST(JsonObjectReaderTest, TakesAWholeNumberForANameWhereThatIsMeant) {
  const nlohmann::json object = {
      {"name", "a"}, {"number", -17}, {"share", 0.5}, {"nothing", nullptr}};
  JsonObjectReader reader(object, "here");
  std::string name, number, absent = "default", share = "default";
  reader.NameOrNumber("name", &name);
  reader.NameOrNumber("number", &number);
  reader.NameOrNumber("absent", &absent);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(name, "a");
  EXPECT_EQ(number, "-17");
  EXPECT_EQ(absent, "default");
  for (const char* field : {"share", "nothing"}) {
    JsonObjectReader strict(object, "here");
    strict.NameOrNumber(field, &share);
    EXPECT_FALSE(strict.ok()) << field;
    EXPECT_EQ(share, "default");
  }
}

TEST(JsonObjectReaderTest, TakesAnyScalarForANameWhereThatIsMeant) {
  const json object = json::parse(R"({
      "name": "a", "number": -17, "float": 1.0, "flag": true, "null": null,
      "rounded": 123456789012345678901})");
  JsonObjectReader reader(object, "here");
  std::string absent = "default";
  for (const auto& [field, expected] :
       {std::pair("name", "a"), std::pair("number", "-17"),
        std::pair("float", "1.0"), std::pair("flag", "true")}) {
    std::string text;
    reader.Scalar(field, &text);
    EXPECT_EQ(text, expected);
  }
  reader.Scalar("absent", &absent);
  EXPECT_EQ(absent, "default");
  EXPECT_TRUE(reader.ok());
  reader.Scalar("rounded", &absent);
  EXPECT_EQ(reader.status().message(),
            "here: rounded should be a string or a number; whole numbers of "
            "more than 64 bits need quotation marks");
  JsonObjectReader strict(object, "here");
  strict.Scalar("null", &absent);
  EXPECT_EQ(strict.status().message(),
            "here: null should be a string or a number");
}

TEST(JsonObjectReaderTest, NamesThePlaceOfAField) {
  EXPECT_EQ(PlaceOfField("train.conll:17", "text"), "train.conll:17: text");
  EXPECT_EQ(PlaceOfField("train.jsonl: record 17", "text"),
            "train.jsonl: record 17.text");
}

TEST(JsonObjectReaderTest, ReadsEachType) {
  const json object = json::parse(R"({
      "flag": true, "count": -3, "rate": 2, "name": "é", "names": ["a", "b"],
      "counts": [1, 2], "null_count": null, "some_count": 9, "null_name": null,
      "some_name": "s", "raw": {"x": 1}})");
  bool flag = false;
  int64_t count = 0;
  double rate = 0;
  std::string name;
  std::vector<std::string> names;
  std::vector<int64_t> counts;
  std::optional<int64_t> null_count = 5;
  std::optional<int64_t> some_count;
  std::optional<std::string> null_name = "n";
  std::optional<std::string> some_name;
  int64_t absent = 11;
  JsonObjectReader reader(object, "f.json");
  reader.Required("flag", &flag);
  reader.Required("count", &count);
  reader.Optional("rate", &rate);
  reader.Optional("name", &name);
  reader.Optional("names", &names);
  reader.Required("counts", &counts);
  reader.Required("null_count", &null_count);
  reader.Optional("some_count", &some_count);
  reader.Optional("null_name", &null_name);
  reader.Optional("some_name", &some_name);
  reader.Optional("absent", &absent);
  EXPECT_TRUE(reader.Has("raw"));
  EXPECT_THAT(reader.UnreadFields(), ElementsAre("raw"));
  const json* raw = reader.Raw("raw", /*required=*/true);
  ASSERT_NE(raw, nullptr);
  EXPECT_EQ(reader.Raw("no_raw", /*required=*/false), nullptr);
  EXPECT_EQ(reader.Finish(), absl::OkStatus());

  EXPECT_TRUE(flag);
  EXPECT_EQ(count, -3);
  EXPECT_EQ(rate, 2.0);
  EXPECT_EQ(name, "é");
  EXPECT_THAT(names, ElementsAre("a", "b"));
  EXPECT_THAT(counts, ElementsAre(1, 2));
  EXPECT_EQ(null_count, std::nullopt);
  EXPECT_EQ(some_count, 9);
  EXPECT_EQ(null_name, std::nullopt);
  EXPECT_EQ(some_name, "s");
  EXPECT_EQ(absent, 11);
  EXPECT_EQ((*raw)["x"], 1);
}

// Reads field "f" of `object` as a T and returns what Finish() says.
template <typename T>
std::string MistakeReading(const json& object) {
  T value{};
  JsonObjectReader reader(object, "c.json: train");
  reader.Optional("f", &value);
  return std::string(reader.Finish().message());
}

TEST(JsonObjectReaderTest, NamesPlaceFieldAndValueOfAWrongType) {
  const auto object = [](const std::string& value) {
    return json::parse("{\"f\": " + value + "}");
  };
  EXPECT_EQ(MistakeReading<double>(object("\"fast\"")),
            "c.json: train.f should be a number, but is \"fast\"");
  EXPECT_EQ(MistakeReading<bool>(object("1")),
            "c.json: train.f should be true or false, but is 1");
  EXPECT_EQ(MistakeReading<int64_t>(object("1.0")),
            "c.json: train.f should be an integer, but is 1.0");
  EXPECT_EQ(MistakeReading<int64_t>(object("9223372036854775808")),
            "c.json: train.f should be an integer below 2^63, but is "
            "9223372036854775808");
  EXPECT_EQ(MistakeReading<int64_t>(object("null")),
            "c.json: train.f should be an integer, but is null");
  EXPECT_EQ(MistakeReading<std::optional<int64_t>>(object("true")),
            "c.json: train.f should be an integer, but is true");
  EXPECT_EQ(MistakeReading<std::string>(object("{\"a\": 1}")),
            "c.json: train.f should be a string, but is an object");
  EXPECT_EQ(MistakeReading<std::vector<int64_t>>(object("7")),
            "c.json: train.f should be an array, but is 7");
  EXPECT_EQ(MistakeReading<std::vector<int64_t>>(object("[7, \"x\"]")),
            "c.json: train.f[1] should be an integer, but is \"x\"");
  EXPECT_EQ(
      MistakeReading<double>({{"f", std::numeric_limits<double>::infinity()}}),
      "c.json: train.f should be a number, but is null");
  EXPECT_EQ(MistakeReading<double>(json::array({1})),
            "c.json: train should be an object, but is an array");
}

TEST(JsonObjectReaderTest, KeepsTheFirstMistakeAndTheOldValue) {
  const json object = {{"a", "x"}, {"b", "y"}};
  int64_t a = 1;
  int64_t b = 2;
  JsonObjectReader reader(object, "c.json");
  reader.Optional("a", &a);
  reader.Optional("b", &b);
  reader.Fail("c", "should not be");
  EXPECT_EQ(reader.Finish().message(),
            "c.json: a should be an integer, but is \"x\"");
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST(JsonObjectReaderTest, NotesWhatTheCallerFindsWrong) {
  const json object = {{"a", 7}};
  int64_t a = 0;
  JsonObjectReader reader(object, "c.json");
  reader.Optional("a", &a);
  reader.Fail("a", "should be below 5, but is 7");
  EXPECT_EQ(reader.Finish(), absl::InvalidArgumentError(
                                 "c.json: a should be below 5, but is 7"));
}

TEST(JsonObjectReaderTest, SuggestsTheNameOfAnUnknownField) {
  const json object = {{"learning_rte", 1}};
  double rate = 0;
  JsonObjectReader reader(object, "c.json: train");
  reader.Required("learning_rate", &rate);  // missing because misspelt
  reader.Optional("epochs", &rate);
  EXPECT_EQ(reader.Finish().message(),
            "c.json: train has no field \"learning_rte\"; did you mean "
            "\"learning_rate\"?");
}

TEST(JsonObjectReaderTest, ListsTheFieldsWhenNoneIsNear) {
  const json object = {{"colour", 1}};
  double rate = 0;
  JsonObjectReader reader(object, "c.json: train");
  reader.Optional("learning_rate", &rate);
  reader.Optional("epochs", &rate);
  EXPECT_EQ(reader.Finish().message(),
            "c.json: train has no field \"colour\"; its fields are epochs, "
            "learning_rate");
}

TEST(JsonObjectReaderTest, LeavesUnknownFieldsToTheCallerWhenAsked) {
  const json object = {{"b", 1}, {"a", 2}, {"known", 3}};
  int64_t known = 0;
  JsonObjectReader reader(object, "c.json");
  reader.Required("known", &known);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_THAT(reader.UnreadFields(), ElementsAre("a", "b"));
}

TEST(JsonObjectReaderTest, SaysThatARequiredFieldIsMissing) {
  const json object = json::object();
  std::string output;
  JsonObjectReader reader(object, "c.json");
  reader.Required("output", &output);
  EXPECT_EQ(reader.Raw("model", /*required=*/true), nullptr);
  EXPECT_EQ(reader.Finish().message(), "c.json: output is missing");
}

TEST(JsonObjectReaderTest, NestsPlaces) {
  const json object = {{"train", {{"optimizer", {{"beta1", "x"}}}}}};
  double beta1 = 0;
  JsonObjectReader top(object, "c.json");
  JsonObjectReader train(*top.Raw("train", true), top.Where("train"));
  JsonObjectReader optimizer(*train.Raw("optimizer", true),
                             train.Where("optimizer"));
  optimizer.Optional("beta1", &beta1);
  EXPECT_THAT(std::string(optimizer.Finish().message()),
              StartsWith("c.json: train.optimizer.beta1 should be"));
}

TEST(JsonObjectReaderTest, NotesTheFirstMistakeOfWhatWasReadApart) {
  const json object = json::object();
  JsonObjectReader reader(object, "c.json: train");
  EXPECT_EQ(reader.where(), "c.json: train");
  int value = 1;
  reader.Assign(absl::StatusOr<int>(2), &value);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(value, 2);
  reader.Assign(absl::StatusOr<int>(absl::InvalidArgumentError("first")),
                &value);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(value, 2);
  reader.Assign(absl::StatusOr<int>(absl::InvalidArgumentError("second")),
                &value);
  reader.Fail("field", "is wrong");
  EXPECT_EQ(reader.Finish().message(), "first");
}

TEST(NearestNameTest, FindsWhatWasMeantAndNothingElse) {
  const std::vector<std::string> names = {"learning_rate", "batch_size",
                                          "epochs", "steps", "warmup"};
  EXPECT_EQ(NearestName("learnign_rate", names), "learning_rate");
  EXPECT_EQ(NearestName("learning-rate", names), "learning_rate");
  EXPECT_EQ(NearestName("Batch_Size", names), "batch_size");
  EXPECT_EQ(NearestName("epoch", names), "epochs");
  EXPECT_EQ(NearestName("step", names), "steps");
  EXPECT_EQ(NearestName("stpes", names), "steps");
  EXPECT_EQ(NearestName("seed", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName("steps", {}), "");
}

struct Point {
  int64_t x = 0;
};
void ReadPoint(JsonObjectReader& reader, Point* point) {
  reader.Required("x", &point->x);
}

TEST(ParseObjectTest, ReadsFieldsAndIgnoresOthers) {
  const auto point = ParseObject<Point>(R"({"x": 3, "y": 4})", "f", ReadPoint);
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(point->x, 3);
}

TEST(ParseObjectTest, NamesThePlaceOfAMistake) {
  EXPECT_EQ(ParseObject<Point>("{}", "f: record 1", ReadPoint).status(),
            absl::InvalidArgumentError("f: record 1.x is missing"));
  EXPECT_THAT(ParseObject<Point>("{", "f", ReadPoint).status().message(),
              HasSubstr("f:1:2"));
}

}  // namespace
}  // namespace etc
