// RecordScanner finds the records of arrays and of lines, whatever the layout
// and however the bytes are cut into chunks, and says line and byte of what is
// malformed. Each text is scanned whole and byte by byte: the two meet every
// state at a border of chunks.

#include "tasks/data/record_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/sanitizers.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Records = std::vector<std::string>;

absl::StatusOr<Records> ScanInChunks(const std::string& text, size_t chunk,
                                     const RecordLimits& limits = {}) {
  RecordScanner scanner("f", limits);
  for (size_t i = 0; i < text.size(); i += chunk) {
    if (absl::Status status = scanner.Scan(text.substr(i, chunk));
        !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = scanner.Finish(); !status.ok()) {
    return status;
  }
  Records records;
  for (const auto& [begin, length] : scanner.TakeExtents()) {
    records.push_back(text.substr(begin, length));
  }
  return records;
}

// The records, after checking that chunks of one byte give the same.
absl::StatusOr<Records> Scan(const std::string& text) {
  absl::StatusOr<Records> whole = ScanInChunks(text, text.size() + 1);
  const absl::StatusOr<Records> bytes = ScanInChunks(text, 1);
  EXPECT_EQ(whole.status(), bytes.status()) << text;
  if (whole.ok() && bytes.ok()) {
    EXPECT_EQ(*whole, *bytes) << text;
  }
  return whole;
}

TEST(RecordScannerTest, FindsTheObjectsOfAnArray) {
  EXPECT_THAT(*Scan(R"([{"a":1},{"b":[{}]}])"),
              ElementsAre(R"({"a":1})", R"({"b":[{}]})"));
}

TEST(RecordScannerTest, FindsTheObjectsOfLines) {
  EXPECT_THAT(*Scan("{\"a\":1}\n{\"b\":2}"),
              ElementsAre(R"({"a":1})", R"({"b":2})"));
  EXPECT_THAT(*Scan("\n{\"a\":1}\r\n\r\n{\"b\":2}\r\n"),
              ElementsAre(R"({"a":1})", R"({"b":2})"));
}

TEST(RecordScannerTest, AcceptsAnyLayout) {
  EXPECT_THAT(*Scan("\r\n [\n\t{\n \"a\" : 1\n }\n ,\n {}\n]\n\n"),
              ElementsAre("{\n \"a\" : 1\n }", "{}"));
  EXPECT_THAT(*Scan("{\n  \"a\": 1\n}\n{\n}\n"),
              ElementsAre("{\n  \"a\": 1\n}", "{\n}"));
}

TEST(RecordScannerTest, SkipsOneByteOrderMark) {
  EXPECT_THAT(*Scan("\xef\xbb\xbf[{}]"), ElementsAre("{}"));
  EXPECT_THAT(*Scan("\xef\xbb\xbf{}\n{}"), ElementsAre("{}", "{}"));
  EXPECT_THAT(Scan("\xef\xbb\xbf\xef\xbb\xbf[{}]").status().message(),
              HasSubstr("found byte 0xef"));
  EXPECT_THAT(Scan("\xef\xbb{}").status().message(),
              HasSubstr("byte order mark"));
}

TEST(RecordScannerTest, TakesBracketsAndQuotesInStringsForText) {
  const std::string record = R"({"}]{[": "\"}]\\", "b": "\\\\\"", "c": "é"})";
  EXPECT_THAT(*Scan("[" + record + "]"), ElementsAre(record));
  EXPECT_THAT(*Scan(record + "\n" + record), ElementsAre(record, record));
}

TEST(RecordScannerTest, ReadsAnArrayOfNothing) {
  EXPECT_THAT(*Scan(" [ \n ] "), IsEmpty());
}

TEST(RecordScannerTest, GoesToTheDeepestNestingAndNoDeeper) {
  const std::string inner(RecordScanner::kMaxDepth - 1, '[');
  const std::string record =
      "{\"a\":" + inner + std::string(inner.size(), ']') + "}";
  EXPECT_THAT(*Scan("[" + record + "," + record + "]"),
              ElementsAre(record, record));
  EXPECT_THAT(Scan("{\"a\":[" + inner).status().message(),
              HasSubstr("nested more than 64 deep"));
  EXPECT_FALSE(Scan("{" + std::string(1000000, '[')).ok());
}

struct MalformedCase {
  const char* text;
  const char* message;
};

TEST(RecordScannerTest, TakesARecordOfTheGreatestLengthAndNoneBeyond) {
  const RecordLimits limits = {.max_record_bytes = 10,
                               .max_record_field = "data.some_field"};
  const std::string good = "[{},\n {\"a\":\"b\"}]";
  const std::string bad = "[{},\n {\"a\":\"bc\"}]";
  for (const size_t chunk : {1, 3, 100}) {
    const auto records = ScanInChunks(good, chunk, {.max_record_bytes = 9});
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_THAT(*records, ElementsAre("{}", "{\"a\":\"b\"}"));
    EXPECT_TRUE(ScanInChunks(bad, chunk, limits).ok());
    EXPECT_EQ(ScanInChunks(bad, chunk, {.max_record_bytes = 9}).status(),
              absl::ResourceExhaustedError(
                  "f:2: byte 6: the record that begins here should have at "
                  "most 9 bytes, but goes on"));
    EXPECT_THAT(
        ScanInChunks("[{\"a\":\"bcd\"}]", chunk, limits).status().message(),
        HasSubstr("at most 10 bytes (data.some_field), but"));
  }
}

// A packed stream need never end.
TEST(RecordScannerTest, RefusesARecordWithoutEndWhileItGoesOn) {
  RecordScanner scanner("f", {.max_record_bytes = 1000});
  ASSERT_TRUE(scanner.Scan("{\"a\":\"").ok());
  const std::string chunk(100, 'x');
  absl::Status status;
  int chunks = 0;
  for (; status.ok() && chunks < 100; ++chunks) {
    status = scanner.Scan(chunk);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(chunks, 10);
}

TEST(RecordScannerTest, AsksForTheMemoryOfRecordsBeforeItTakesIt) {
  constexpr int64_t kBytes = sizeof(RecordScanner::Extent);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "{}\n";
  }
  RecordIndexBudget enough(256 * kBytes);
  EXPECT_TRUE(ScanInChunks(text, 7, {.index = &enough}).ok());
  // Memory taken by the first file is not there for the second.
  EXPECT_THAT(ScanInChunks(text, 7, {.index = &enough}).status().message(),
              AllOf(HasSubstr("f:1: byte 0: after 0 records"),
                    HasSubstr("data.train")));
  RecordIndexBudget too_little(200 * kBytes);
  EXPECT_THAT(ScanInChunks(text, 7, {.index = &too_little}).status().message(),
              AllOf(HasSubstr("f:129: byte 384: after 128 records"),
                    HasSubstr("may take 3200 bytes")));
}

class RecordScannerMalformedTest
    : public testing::TestWithParam<MalformedCase> {};

TEST_P(RecordScannerMalformedTest, NamesLineByteExpectedAndFound) {
  const absl::StatusOr<Records> records = Scan(GetParam().text);
  EXPECT_EQ(records.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(records.status().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecordScannerMalformedTest,
    testing::ValuesIn(std::vector<MalformedCase>{
        {"",
         "f:1: byte 0: expected a JSON array of objects, or lines of JSON "
         "objects, found the end of the file"},
        {" \n ",
         "f:2: byte 3: expected a JSON array of objects, or lines of JSON "
         "objects, found the end of the file"},
        {"17",
         "f:1: byte 0: expected a JSON array of objects, or lines of JSON "
         "objects, found '1'"},
        {"\x1f\x8b",
         "f:1: byte 0: expected a JSON array of objects, or lines of JSON "
         "objects, found byte 0x1f"},
        {"[\n17]", "f:2: byte 2: expected '{' of a record, or ']', found '1'"},
        {"[[{}]]", "f:1: byte 1: expected '{' of a record, or ']', found '['"},
        {"[{},\n]", "f:2: byte 5: expected '{' of a record, found ']'"},
        {"[{}\n{}]",
         "f:2: byte 4: expected ',' or ']' after a record, found '{'"},
        {"[{}]\n[", "f:2: byte 5: expected nothing after the array, found '['"},
        {"{} {}",
         "f:1: byte 3: expected a line break after a record, found '{'"},
        {"{},\n{}",
         "f:1: byte 2: expected a line break after a record, found ','"},
        {"{}\n17", "f:2: byte 3: expected '{' of a record, found '1'"},
        {"[",
         "f:1: byte 1: the file ends before the ']' of its array of records"},
        {"[{},",
         "f:1: byte 4: the file ends before the ']' of its array of records"},
        {"[{}",
         "f:1: byte 3: the file ends before the ']' of its array of records"},
        {"{}\n{\"a\":\n[",
         "f:3: byte 10: the file ends within the record that begins on line 2 "
         "at byte 3"},
        {"{\"a\\",
         "f:1: byte 4: the file ends within the record that begins on line 1 "
         "at byte 0"},
        {"{}\n{\n\"a\": [}",
         "f:3: byte 11: expected ']', found '}' (in the record that begins on "
         "line 2)"},
        {"{]",
         "f:1: byte 1: expected '}', found ']' (in the record that begins on "
         "line 1)"},
        {"{}\n{\"a\": \"b\n}",
         "f:2: byte 11: line break in a string: is its closing '\"' missing?"},
    }));

// Bytes changed, dropped, doubled and cut off at random: never a crash, never
// an extent outside the text, and always what a scan byte by byte gives.
TEST(RecordScannerTest, SurvivesMutations) {
  const std::vector<std::string> seeds = {
      "\xef\xbb\xbf[{\"a\": \"b\\\"c\", \"d\": [1, {\"e\": []}]},\n {}]\n",
      "{\"a\": \"\\\\\"}\n{\"b\": [[\"]\"]]}\r\n\n{\n}\n"};
  const std::string bytes = "{}[]\",:\\\n \xef\xbb\xbf";
  std::mt19937_64 random(20240521);
  const auto below = [&random](size_t n) { return random() % n; };
  int accepted = 0;
  constexpr int kRounds = RoundsOfDamage(30000);
  for (int round = 0; round < kRounds; ++round) {
    std::string text = seeds[below(seeds.size())];
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = bytes[below(bytes.size())];
          break;
        case 1:
          text.erase(at, 1 + below(3));
          break;
        case 2:
          text.insert(at, 1, bytes[below(bytes.size())]);
          break;
        default:
          text.resize(at);
      }
    }
    accepted += Scan(text).ok() ? 1 : 0;
  }
  // Some mutants are still well formed; if not, the mutations are too wild to
  // prove anything.
  EXPECT_GT(accepted, kRounds / 40);
  EXPECT_LT(accepted, kRounds * 29 / 30);
}

}  // namespace
}  // namespace etc
