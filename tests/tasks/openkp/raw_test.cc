// The reader of OpenKP: the official fields and their checks (doc/openkp.md 1,
// 2 and 10.2), files with byte order mark and CRLF, and damaged files, which
// must give an error or a record that can be used, never anything else.

#include "tasks/openkp/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_scanner.h"
#include "tasks/openkp/example.h"
#include "tasks/openkp/metric.h"
#include "tasks/openkp/prediction.h"
#include "tasks/openkp/task.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/openkp/spec_record.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<OpenkpRecord> Parse(const nlohmann::json& json) {
  return Openkp().ParseRecord(json.dump(), "train.jsonl: record 3");
}

std::string Message(const nlohmann::json& json) {
  const auto record = Parse(json);
  EXPECT_EQ(record.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(record.status().message());
}

// The record of doc/openkp.md 1 with one field of its second element changed.
nlohmann::json WithElement(const std::string& field,
                           const nlohmann::json& value) {
  nlohmann::json json = GreenTeaJson();
  nlohmann::json vdom = nlohmann::json::parse(json["VDOM"].get<std::string>());
  vdom[1][field] = value;
  json["VDOM"] = vdom.dump();
  return json;
}

TEST(OpenkpRecordTest, ReadsTheInstanceOfTheSpec) {  // doc/openkp.md 1
  const auto record = Parse(GreenTeaJson());
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "http://x.org/tea");
  EXPECT_EQ(OpenkpWords(record->text).size(), 10u);
  ASSERT_EQ(record->elements.size(), 2u);
  EXPECT_EQ(record->elements[1].first_word, 3);
  EXPECT_EQ(record->elements[1].end_word, 10);
  EXPECT_TRUE(record->elements[0].node.in_heading);
  EXPECT_FALSE(record->has_integer_coordinates);
  EXPECT_THAT(*record->key_phrases,
              ElementsAre(ElementsAre("Green", "Tea"),
                          ElementsAre("brew", "green", "tea")));
}

TEST(OpenkpRecordTest, TakesTheWidthBeforeY) {  // doc/openkp.md 10.2
  const auto record = Parse(OpenkpJson(
      {{"a", nlohmann::json::parse("[208.0,49.0,138.0,15.0,0,0,0,0,12,1,"
                                   "198.0,564.0,138.0,15.0,1,0,0,0,12,1]")}},
      {}));
  ASSERT_TRUE(record.ok()) << record.status();
  const OpenkpNode& node = record->elements[0].node;
  EXPECT_EQ(node.x, 208);
  EXPECT_EQ(node.width, 49);
  EXPECT_EQ(node.y, 138);
  EXPECT_EQ(node.height, 15);
  EXPECT_FALSE(node.is_block || node.is_inline || node.in_heading ||
               node.is_leaf);
  EXPECT_EQ(node.font_size, 12);
  EXPECT_TRUE(node.is_bold);
  const OpenkpNode& parent = record->elements[0].parent;
  EXPECT_EQ(parent.width, 564);
  EXPECT_TRUE(parent.is_block);
  EXPECT_TRUE(parent.is_bold);
}

// doc/openkp.md 10.2
TEST(OpenkpRecordTest, HasNoKeyPhrasesWithoutTheField) {
  nlohmann::json json = GreenTeaJson();
  json.erase("KeyPhrases");
  EXPECT_FALSE(Parse(json)->key_phrases.has_value());
  json["KeyPhrases"] = nlohmann::json::parse("[[], [\"a\"]]");
  EXPECT_THAT(*Parse(json)->key_phrases,
              ElementsAre(ElementsAre(), ElementsAre("a")));
}

// doc/openkp.md 11, trap 2
TEST(OpenkpRecordTest, AcceptsWholeNumbersAndSaysSo) {
  nlohmann::json feature = kBoldFeature;
  feature[0] = 208;
  const auto record = Parse(OpenkpJson({{"a", feature}}, {}));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->has_integer_coordinates);
  EXPECT_EQ(record->elements[0].node.x, 208);
}

TEST(OpenkpRecordTest, AcceptsElementsWithoutWords) {
  nlohmann::json json = GreenTeaJson();
  nlohmann::json vdom = nlohmann::json::parse(json["VDOM"].get<std::string>());
  nlohmann::json empty = vdom[1];
  empty["text"] = "";
  empty["end_idx"] = 3;
  vdom.insert(vdom.begin() + 1, empty);
  json["VDOM"] = vdom.dump();
  EXPECT_EQ(Parse(json)->elements.size(), 3u);
  // One empty word, as in an empty document.
  EXPECT_EQ(OpenkpSpecRecord({{"", kBoldFeature}}, {}).elements[0].end_word, 1);
}

TEST(OpenkpRecordTest, NamesThePlaceOfAMistake) {  // doc/openkp.md 2
  EXPECT_EQ(Message(WithElement("start_idx", 4)),
            "train.jsonl: record 3.VDOM[1].start_idx should be 3, but is 4");
  EXPECT_EQ(Message(WithElement("end_idx", 11)),
            "train.jsonl: record 3.VDOM[1].end_idx should be in [3, 10], but "
            "is 11");
  EXPECT_THAT(Message(WithElement("end_idx", 2)), HasSubstr("in [3, 10]"));
  EXPECT_EQ(Message(WithElement("Id", 8)),
            "train.jsonl: record 3.VDOM[1].Id should be 7, but is 8");
  EXPECT_THAT(Message(WithElement("text", "How to brew tea")),
              HasSubstr("VDOM[1].text should be that of words 3 to 10"));
  EXPECT_THAT(Message(WithElement("feature", {1.0, 2.0})),
              HasSubstr("VDOM[1].feature should be a list of 20 numbers"));
  nlohmann::json feature = kBoldFeature;
  feature[4] = 0.5;
  EXPECT_THAT(Message(WithElement("feature", feature)),
              HasSubstr("feature[4] should be 0 or 1, but is 0.5"));
  feature[4] = "1";
  EXPECT_THAT(Message(WithElement("feature", feature)),
              HasSubstr("feature[4] should be a number"));
  feature = kBoldFeature;
  feature[18] = "big";
  EXPECT_THAT(Message(WithElement("feature", feature)),
              HasSubstr("feature[18] should be a number"));

  nlohmann::json json = GreenTeaJson();
  json["text"] = absl::StrCat(json["text"].get<std::string>(), " now");
  EXPECT_EQ(Message(json),
            "train.jsonl: record 3.VDOM.end_idx of the last element should be "
            "11, but is 10");
  json = GreenTeaJson();
  json["VDOM"] = "[]";
  EXPECT_THAT(Message(json), HasSubstr("VDOM should hold a list"));
  json["VDOM"] = "[{";
  EXPECT_THAT(Message(json), HasSubstr("record 3.VDOM:1:"));
  json["VDOM"] = nlohmann::json::array();
  EXPECT_THAT(Message(json), HasSubstr("VDOM should be a string"));
  json = GreenTeaJson();
  json["KeyPhrases"] = {"green tea"};
  EXPECT_THAT(Message(json),
              HasSubstr("KeyPhrases[0] should be a list of words"));
  json.erase("url");
  EXPECT_THAT(Message(json), HasSubstr("url"));
}

TEST(OpenkpReaderTest, ReadsLinesWithByteOrderMarkAndCrlf) {
  TemporaryDirectory directory;
  const std::string line = GreenTeaJson().dump();
  const auto file = RecordFile::Open(directory.Write(
      "dev.jsonl", absl::StrCat("\xEF\xBB\xBF", line, "\r\n", line, "\r\n")));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->size(), 2);
  EXPECT_TRUE(Openkp().ParseRecord(*file->Read(1), file->Where(1)).ok());
}

TEST(OpenkpReaderTest, RefusesBytesThatAreNotUtf8) {
  std::string line = GreenTeaJson().dump();
  line[line.find("Guide")] = '\xff';
  EXPECT_FALSE(Openkp().ParseRecord(line, "here").ok());
}

// The damages of one round: to the line, to the JSON inside of it, or to the
// texts that it is made of, so that it can still be read.
std::string DamagedLine(int round, Mutator* mutator) {
  static const auto* dictionary = new std::vector<std::string>{
      "{",     "}",    "[",       "]",       "\"",   "\\",   ",", ":",  "-1",
      "1e400", "null", "\\u0000", "\\ud83d", "\xC3", "\xFF", " ", "1.0"};
  std::vector<std::string> texts = {
      "Star Trek  \xF0\x9F\x98\x80 caf\x65\xCC\x81",
      std::string("\xC4\xB0star\0 trek", 12), "", "Wars and not wars",
      "star trek"};
  if (round % 3 == 0) {
    for (std::string& text : texts) {
      text = mutator->Mutate(std::move(text), {" ", "  ", "star", "\xCC\x81"});
    }
  }
  nlohmann::json json = OpenkpJson({{texts[0], kHeadingFeature},
                                    {texts[1], kBoldFeature},
                                    {texts[2], kLeafFeature},
                                    {texts[3], kLeafFeature}},
                                   {texts[4], "wars and", ""});
  if (round % 3 == 1) {
    json["VDOM"] =
        mutator->Mutate(json["VDOM"].get<std::string>(), *dictionary);
  }
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return round % 3 == 2 ? mutator->Mutate(line, *dictionary) : line;
}

// Damaged lines. A readable one goes all the way to a prediction and its
// score, by both rules and with both kinds of global tokens.
TEST(OpenkpReaderTest, SurvivesDamagedFiles) {
  const auto tokenizer = OpenkpSpecTokenizer();
  Mutator mutator(20240524);
  int parsed = 0;
  constexpr int kRounds = RoundsOfDamage(6000);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = DamagedLine(round, &mutator);
    RecordScanner scanner("mutant");
    (void)(scanner.Scan(text).ok() && scanner.Finish().ok());
    const auto record = Openkp().ParseRecord(text, "mutant");
    if (!record.ok()) {
      EXPECT_THAT(std::string(record.status().message()), HasSubstr("mutant"));
      continue;
    }
    ++parsed;
    const bool official = round % 2 == 0;
    const Openkp openkp({.input = {.max_long_length = 3 + round % 30,
                                   .max_global_length = 1 + round % 6},
                         .fixed_block_length = round % 7 == 0 ? 2 : 0,
                         .official_compatibility = official},
                        tokenizer.get());
    const auto examples = openkp.MakeExamples(*record, "mutant");
    if (!examples.ok()) {
      EXPECT_TRUE(official) << examples.status();
      continue;
    }
    const OpenkpExample& example = *examples->at(0);
    const int64_t words = example.num_words + 5;
    const std::vector<float> logits(static_cast<size_t>(5 * words), 0.5F);
    const std::vector<std::string> phrases = DecodeKeyPhrases(
        example, {.ngrams = logits}, {.official_compatibility = official});
    for (const auto& [name, value] : ScoreOpenkp(
             {{record->id, ReferencesOf(*record)}}, {{record->id, phrases}})) {
      EXPECT_TRUE(value >= 0 && value <= 1) << name;
    }
    openkp.Describe(example);
  }
  EXPECT_GT(parsed, kRounds / 5);
  EXPECT_LT(parsed, kRounds * 29 / 30);
}

TEST(OpenkpReaderTest, ReadsEveryRealRecord) {
  ETC_SHARED_DATA_OR_SKIP(const std::string path,
                          "data/openkp/OpenKP.sample.jsonl");
  const auto file = RecordFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 1);
  for (int64_t i = 0; i < file->size(); ++i) {
    const auto record = Openkp().ParseRecord(*file->Read(i), file->Where(i));
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->elements.size(), 69u);
    EXPECT_EQ(OpenkpWords(record->text).size(), 787u);
  }
}

}  // namespace
}  // namespace etc
