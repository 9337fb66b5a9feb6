// Wikihop::ReadRecord reads the official format (doc/wikihop.md 1) and names
// place and field of what is wrong; neither it nor the scanner before it is
// brought down by damaged files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_scanner.h"
#include "tasks/wikihop/task.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/shared_data.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<WikihopRecord> Parse(const std::string& json) {
  return Wikihop().ParseRecord(json, "dev.json: record 3");
}

TEST(WikihopRecordTest, ReadsTheInstanceOfTheSpec) {  // doc/wikihop.md 1.2
  const auto record = Parse(R"({"id":"WH_train_0","query":"country oslo fjord",
      "answer":"Norway","candidates":[" Norway","sweden","north norway"],
      "supports":["Oslo Fjord is in Norway. It is long.",
                  "North Norway borders Sweden."]})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "WH_train_0");
  EXPECT_EQ(record->query, "country oslo fjord");
  EXPECT_THAT(record->candidates,
              ElementsAre("norway", "sweden", "north norway"));
  EXPECT_THAT(record->supports,
              ElementsAre("Oslo Fjord is in Norway. It is long.",
                          "North Norway borders Sweden."));
  EXPECT_EQ(record->label, 0);
}

// A record with the given JSON for candidates and answer.
std::string RecordWith(const std::string& candidates,
                       const std::string& answer) {
  return R"({"id":"a","query":"q","supports":[],"candidates":)" + candidates +
         R"(,"answer":)" + answer + "}";
}

TEST(WikihopRecordTest, TakesTheFirstOfEqualCandidates) {
  const auto record = Parse(RecordWith(R"(["x","Y "," y","y"])", R"("Y")"));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(record->candidates, ElementsAre("x", "y", "y", "y"));
  EXPECT_EQ(record->label, 1);
}

// doc/wikihop.md 12, trap 6
TEST(WikihopRecordTest, LowersButDoesNotStripTheAnswer) {
  const auto record = Parse(RecordWith(R"([" Oslo "])", R"("OSLO ")"));
  EXPECT_THAT(record.status().message(),
              HasSubstr("record 3.answer should be one of the candidates, but "
                        "is \"OSLO \" (question a)"));
}

TEST(WikihopRecordTest, HasNoLabelWithoutAnswer) {
  const auto record =
      Parse(R"({"id":"a","query":"q","supports":[],"candidates":["x"]})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->label, std::nullopt);
}

TEST(WikihopRecordTest, LeavesQueryAndDocumentsAsTheyAre) {
  const auto record =
      Parse(R"({"id":"a","query":" Place_of Ann ","supports":[" A\u00a0B "],)"
            R"("candidates":["x"],"answer":"x","annotations":[["follows"]]})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->query, " Place_of Ann ");
  EXPECT_THAT(record->supports, ElementsAre(" A\u00a0B "));
}

struct MalformedCase {
  const char* json;
  const char* message;
};

class WikihopRecordMalformedTest
    : public testing::TestWithParam<MalformedCase> {};

TEST_P(WikihopRecordMalformedTest, NamesPlaceAndField) {
  const auto record = Parse(GetParam().json);
  EXPECT_EQ(record.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(record.status().message(), HasSubstr("dev.json: record 3"));
  EXPECT_THAT(record.status().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WikihopRecordMalformedTest,
    testing::ValuesIn(std::vector<MalformedCase>{
        {"", ":1:1"},
        {"{", ":1:"},
        {"[]", "should be an object"},
        {R"({"query":"q","candidates":["x"],"supports":[]})", ".id is missing"},
        {R"({"id":7,"query":"q","candidates":["x"],"supports":[]})",
         ".id should be a string"},
        {R"({"id":"a","candidates":["x"],"supports":[]})", ".query is missing"},
        {R"({"id":"a","query":null,"candidates":["x"],"supports":[]})",
         ".query should be a string"},
        {R"({"id":"a","query":"q","supports":[]})", ".candidates is missing"},
        {R"({"id":"a","query":"q","candidates":"x","supports":[]})",
         ".candidates should be"},
        {R"({"id":"a","query":"q","candidates":["x",1],"supports":[]})",
         ".candidates[1] should be a string"},
        {R"({"id":"a","query":"q","candidates":[],"supports":[]})",
         ".candidates should name at least one answer"},
        {R"({"id":"a","query":"q","candidates":["x"]})",
         ".supports is missing"},
        {R"({"id":"a","query":"q","candidates":["x"],"supports":[["d"]]})",
         ".supports[0] should be a string"},
        {R"({"id":"a","query":"q","candidates":["x"],"supports":[],)"
         R"("answer":1})",
         ".answer should be a string"},
        {R"({"id":"a","query":"q","candidates":["x"],"supports":[],)"
         R"("answer":"y"})",
         R"(.answer should be one of the candidates, but is "y")"},
        {R"({"id":"a","id":"b","query":"q","candidates":["x"],"supports":[]})",
         "id"},
        {"{\"id\":\"a\xff\",\"query\":\"q\",\"candidates\":[\"x\"],"
         "\"supports\":[]}",
         ":1:"},
        {R"({"id":"a\ud800","query":"q","candidates":["x"],"supports":[]})",
         ":1:"},
    }));

TEST(WikihopRecordTest, SurvivesDamagedFiles) {
  const std::string seed =
      R"([{"id":"WH_0","query":"country oslo","answer":"Norway\u0130",)"
      R"("candidates":[" Norway\u0130","\ud83d\ude00 é"],)"
      R"("supports":["Oslo is \"in\" Norway.","\\"],"annotations":[["x"]]}])";
  Mutator mutator(20240522);
  int parsed = 0;
  constexpr int kRounds = RoundsOfDamage(20000);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text =
        mutator.Mutate(seed, {"{", "}", "[", "]", "\"", ",", ":", "\\", "\\u0",
                              "\n", "\xc3", "\x80", "\xff", "null", "1e9"});
    RecordScanner scanner("mutant");
    if (!scanner.Scan(text).ok() || !scanner.Finish().ok()) {
      continue;
    }
    for (const auto& [begin, length] : scanner.TakeExtents()) {
      const auto record = Parse(text.substr(begin, length));
      parsed += record.ok() ? 1 : 0;
      if (record.ok() && record->label.has_value()) {
        EXPECT_LT(*record->label, record->candidates.size());
      }
    }
  }
  // Many mutants hurt a text only.
  EXPECT_GT(parsed, kRounds / 50);
  EXPECT_LT(parsed, kRounds * 19 / 20);
}

TEST(WikihopRecordTest, ReadsEveryRealRecord) {
  for (const auto& [name, size] :
       {std::pair("dev", 14), std::pair("train", 11)}) {
    ETC_SHARED_DATA_OR_SKIP(
        const std::string path,
        std::string("data/wikihop/") + name + ".sample.json");
    const auto file = RecordFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->size(), size);
    for (int64_t i = 0; i < file->size(); ++i) {
      const auto text = file->Read(i);
      ASSERT_TRUE(text.ok()) << text.status();
      const auto record = Wikihop().ParseRecord(*text, file->Where(i));
      ASSERT_TRUE(record.ok()) << record.status();
      EXPECT_TRUE(record->label.has_value()) << record->id;
      EXPECT_GE(record->supports.size(), 2u) << record->id;
    }
  }
}

}  // namespace
}  // namespace etc
