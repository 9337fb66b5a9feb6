// The reader of Natural Questions: both official formats (doc/nq.md 1.2, 1.3),
// the checks of spans (doc/nq.md 7.1, 9.6), files with byte order mark and
// CRLF, very long and empty documents, and damaged files, which must give an
// error or a record whose ranges lie within its document, never anything else.

#include "tasks/nq/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tasks/data/record_file.h"
#include "tasks/data/record_scanner.h"
#include "tasks/nq/task.h"
#include "tests/support/mutation.h"
#include "tests/support/sanitizers.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/nq/spec_record.h"

namespace etc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<NqRecord> Parse(const nlohmann::json& json) {
  return Nq().ParseRecord(json.dump(), "dev.jsonl: record 3");
}

std::string Message(const nlohmann::json& json) {
  const auto record = Parse(json);
  EXPECT_EQ(record.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(record.status().message());
}

std::vector<std::string> TextsOf(const NqRecord& record) {
  std::vector<std::string> texts;
  for (const NqToken& token : record.tokens) {
    texts.push_back(token.text);
  }
  return texts;
}

constexpr NqSpan kParagraph = {
    .start_byte = 25, .end_byte = 60, .start_token = 3, .end_token = 12};
constexpr NqSpan kAnnLee = {
    .start_byte = 48, .end_byte = 55, .start_token = 8, .end_token = 10};

// A span without its bytes, as in the simplified format.
NqSpan TokensOf(const NqSpan& span) {
  return {.start_token = span.start_token, .end_token = span.end_token};
}

TEST(NqRecordTest, ReadsTheInstanceOfTheSpec) {  // doc/nq.md 1.2
  const auto record = Parse(NqSpecJson());
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->example_id, -42);
  EXPECT_EQ(record->question, "who wrote blue");
  ASSERT_EQ(record->tokens.size(), 18u);
  EXPECT_EQ(record->tokens[3].text, "<P>");
  EXPECT_TRUE(record->tokens[3].is_html);
  EXPECT_EQ(record->tokens[9].text, "Lee");
  EXPECT_FALSE(record->tokens[9].is_html);
  ASSERT_EQ(record->candidates.size(), 3u);
  EXPECT_EQ(record->candidates[0].span, kParagraph);
  EXPECT_TRUE(record->candidates[0].top_level);
  EXPECT_FALSE(record->candidates[2].top_level);
  ASSERT_EQ(record->annotations.size(), 1u);
  EXPECT_EQ(record->annotations[0].long_answer, kParagraph);
  ASSERT_EQ(record->annotations[0].short_answers.size(), 1u);
  EXPECT_EQ(record->annotations[0].short_answers[0], kAnnLee);
  EXPECT_EQ(record->annotations[0].yes_no, NqYesNo::kNone);
}

TEST(NqRecordTest, ReadsTheSimplifiedFormatAlike) {  // doc/nq.md 1.3
  const auto original = Parse(NqSpecJson());
  const nlohmann::json json = SimplifiedNqJson(NqSpecJson());
  EXPECT_EQ(json["document_text"],
            "<H1> Blue </H1> <P> Blue was written by Ann Lee . </P> <Table> "
            "<Tr> Year 1999 </Tr> </Table>");
  const auto record = Parse(json);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(TextsOf(*record), TextsOf(*original));
  for (size_t i = 0; i < record->tokens.size(); ++i) {
    EXPECT_EQ(record->tokens[i].is_html, original->tokens[i].is_html) << i;
  }
  EXPECT_EQ(record->candidates[0].span, TokensOf(kParagraph));
  EXPECT_EQ(record->annotations[0].long_answer, TokensOf(kParagraph));
  EXPECT_EQ(record->annotations[0].short_answers[0], TokensOf(kAnnLee));
}

nlohmann::json WithText(const std::string& text) {
  nlohmann::json json = SimplifiedNqJson(NqSpecJson());
  json["document_text"] = text;
  json["long_answer_candidates"] = nlohmann::json::array();
  json["annotations"] = nlohmann::json::array();
  return json;
}

TEST(NqRecordTest, SplitsTextAtBlanksAndNowhereElse) {  // doc/nq.md 1.3
  const auto record =
      Parse(WithText("a  b\tc\xC2\xA0\xF0\x9F\x98\x80 <> <p> <p <3> p> "));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(TextsOf(*record),
              testing::ElementsAre("a", "", "b\tc\xC2\xA0\xF0\x9F\x98\x80",
                                   "<>", "<p>", "<p", "<3>", "p>", ""));
  std::vector<size_t> html;
  for (size_t i = 0; i < record->tokens.size(); ++i) {
    if (record->tokens[i].is_html) {
      html.push_back(i);
    }
  }
  EXPECT_THAT(html, testing::ElementsAre(4, 6));
}

TEST(NqRecordTest, ReadsDocumentsWithoutTokens) {
  nlohmann::json json = WithText("");
  EXPECT_THAT(Parse(json)->tokens, IsEmpty());
  json.erase("document_text");
  json["document_tokens"] = nlohmann::json::array();
  EXPECT_THAT(Parse(json)->tokens, IsEmpty());
}

TEST(NqRecordTest, ReadsRecordsWithoutAnnotations) {
  nlohmann::json json = NqSpecJson();
  json["annotations"] = nlohmann::json::array();
  EXPECT_THAT(Parse(json)->annotations, IsEmpty());
  json.erase("annotations");
  EXPECT_THAT(Parse(json)->annotations, IsEmpty());
}

TEST(NqRecordTest, KeepsEveryBitOfTheId) {  // doc/nq.md 10, trap 10
  nlohmann::json json = NqSpecJson();
  for (const int64_t id : {std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max(),
                           int64_t{-1220107454853145579}, int64_t{0}}) {
    json["example_id"] = id;
    EXPECT_EQ(Parse(json)->example_id, id);
    json["example_id"] = absl::StrCat(id);
    EXPECT_EQ(Parse(json)->example_id, id);
  }
  for (const nlohmann::json& bad :
       {nlohmann::json(1e18), nlohmann::json("9223372036854775808"),
        nlohmann::json(uint64_t{1} << 63), nlohmann::json(" 1"),
        nlohmann::json("+1"), nlohmann::json("-"), nlohmann::json(""),
        nlohmann::json("1 "), nlohmann::json(nullptr)}) {
    json["example_id"] = bad;
    EXPECT_THAT(Message(json), HasSubstr("record 3.example_id should be"))
        << bad;
  }
}

TEST(NqRecordTest, ReadsYesAndNoInAnyCase) {  // doc/nq.md 7.1
  nlohmann::json json = NqSpecJson();
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, NqYesNo>>{{"YES", NqYesNo::kYes},
                                                    {"no", NqYesNo::kNo},
                                                    {"None", NqYesNo::kNone}}) {
    json["annotations"][0]["yes_no_answer"] = text;
    EXPECT_EQ(Parse(json)->annotations[0].yes_no, expected) << text;
  }
  json["annotations"][0]["yes_no_answer"] = "maybe";
  EXPECT_EQ(Message(json),
            "dev.jsonl: record 3.annotations[0].yes_no_answer should be "
            "\"YES\", \"NO\" or \"NONE\", but is \"maybe\"");
}

// The spec's record with the token and byte range of its long answer changed.
nlohmann::json WithLongAnswer(const NqSpan& span) {
  nlohmann::json json = NqSpecJson();
  json["annotations"][0]["long_answer"] = {{"start_byte", span.start_byte},
                                           {"end_byte", span.end_byte},
                                           {"start_token", span.start_token},
                                           {"end_token", span.end_token}};
  return json;
}

// doc/nq.md 7.1, 9.6
TEST(NqRecordTest, ChecksSpansAsTheOfficialReaderDoes) {
  const std::string field = "dev.jsonl: record 3.annotations[0].long_answer.";
  EXPECT_EQ(Message(WithLongAnswer({-1, 1, -1, 1})),
            field +
                "end_token should be negative exactly if start_token is, but "
                "they are 1 and -1");
  EXPECT_EQ(Message(WithLongAnswer({-1, -1, 3, 1})),
            field + "end_token should be more than start_token, 3, but is 1");
  EXPECT_EQ(Message(WithLongAnswer({5, 5, 3, 4})),
            field + "end_byte should be more than start_byte, 5, but is 5");
  EXPECT_TRUE(Parse(WithLongAnswer({-1, -1, -2, -3}))
                  ->annotations[0]
                  .long_answer.is_null());
  const NqSpan first = {.start_token = 0, .end_token = 1};
  EXPECT_EQ(Parse(WithLongAnswer(first))->annotations[0].long_answer, first);
  EXPECT_EQ(Message(WithLongAnswer({-1, -1, 3, 19})),
            field +
                "end_token should be at most 18, the number of tokens of "
                "the document, but is 19");
}

TEST(NqRecordTest, LeavesNullShortAnswersOut) {  // doc/nq.md 7.1
  nlohmann::json json = NqSpecJson();
  auto& short_answers = json["annotations"][0]["short_answers"];
  const nlohmann::json null = {{"start_token", -1}, {"end_token", -1}};
  short_answers.insert(short_answers.begin(), null);
  EXPECT_THAT(Parse(json)->annotations[0].short_answers,
              testing::ElementsAre(kAnnLee));
}

TEST(NqRecordTest, NamesThePlaceOfAMistake) {
  const std::string record = "dev.jsonl: record 3";
  for (const char* field : {"example_id", "question_text", "document_tokens",
                            "long_answer_candidates"}) {
    nlohmann::json json = NqSpecJson();
    json.erase(field);
    EXPECT_EQ(Message(json), absl::StrCat(record, ".", field, " is missing"));
  }
  const auto changed = [](const std::string& pointer,
                          const nlohmann::json& value) {
    nlohmann::json json = NqSpecJson();
    json[nlohmann::json::json_pointer(pointer)] = value;
    return json;
  };
  EXPECT_EQ(Message(changed("/document_tokens/4", {{"html_token", true}})),
            record + ".document_tokens[4].token is missing");
  EXPECT_EQ(Message(changed("/document_tokens/4/html_token", 1)),
            record +
                ".document_tokens[4].html_token should be true or false, but "
                "is 1");
  EXPECT_EQ(Message(changed("/document_tokens", "text")),
            record + ".document_tokens should be a list of objects");
  EXPECT_EQ(Message(changed("/long_answer_candidates/1/end_token", 19)),
            record +
                ".long_answer_candidates[1].end_token should be at most 18, "
                "the number of tokens of the document, but is 19");
  EXPECT_EQ(
      Message(changed(
          "/long_answer_candidates/1",
          {{"start_token", -1}, {"end_token", -1}, {"top_level", true}})),
      record + ".long_answer_candidates[1].start_token should not be negative");
  EXPECT_EQ(Message(changed("/long_answer_candidates/2/top_level", "yes")),
            record +
                ".long_answer_candidates[2].top_level should be true or "
                "false, but is \"yes\"");
  EXPECT_EQ(Message(changed("/annotations", nullptr)),
            record + ".annotations should be a list of objects");
  EXPECT_EQ(Message(changed("/annotations/0/short_answers", nullptr)),
            record + ".annotations[0].short_answers should be a list of spans");
  EXPECT_EQ(Message(changed("/annotations/0/short_answers/0/end_token", 99)),
            record +
                ".annotations[0].short_answers[0].end_token should be at most "
                "18, the number of tokens of the document, but is 99");
  EXPECT_EQ(Message(changed("/annotations/0/short_answers/0", 7)),
            record +
                ".annotations[0].short_answers[0] should be an object, but is "
                "7");
}

// doc/nq.md 1.1: the longest document, one annotated near its end.
TEST(NqRecordTest, ReadsTheLongestDocuments) {
  constexpr int64_t kTokens = 156551;
  nlohmann::json json = NqSpecJson();
  auto& tokens = json["document_tokens"];
  const nlohmann::json word = tokens[4];
  for (size_t i = tokens.size(); i < kTokens; ++i) {
    tokens.push_back(word);
  }
  json["long_answer_candidates"][1]["end_token"] = kTokens;
  for (const nlohmann::json& either : {json, SimplifiedNqJson(json)}) {
    const auto record = Parse(either);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->tokens.size(), size_t{kTokens});
    EXPECT_EQ(record->candidates[1].span.end_token, kTokens);
  }
}

TEST(NqReaderTest, ReadsLinesWithByteOrderMarkAndCrlf) {
  TemporaryDirectory directory;
  const std::string line = NqSpecJson().dump();
  const auto file = RecordFile::Open(directory.Write(
      "dev.jsonl", absl::StrCat("\xEF\xBB\xBF", line, "\r\n", line, "\r\n")));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->size(), 2);
  EXPECT_TRUE(Nq().ParseRecord(*file->Read(1), file->Where(1)).ok());
}

TEST(NqReaderTest, RefusesBytesThatAreNotTextInJson) {
  for (const char byte : {'\xff', '\0', '\x1f'}) {
    std::string line = NqSpecJson().dump();
    line[line.find("written")] = byte;
    EXPECT_FALSE(Nq().ParseRecord(line, "here").ok()) << int{byte};
  }
}

// Expects the invariants of every record that is read.
void ExpectUsable(const NqRecord& record) {
  const auto num_tokens = static_cast<int64_t>(record.tokens.size());
  const auto expect_within = [&](const NqSpan& span) {
    EXPECT_LE(span.end_token, num_tokens);
    if (span.start_token >= 0 || span.end_token >= 0) {
      EXPECT_LE(0, span.start_token);
      EXPECT_LT(span.start_token, span.end_token);
    }
    if (span.start_byte >= 0 || span.end_byte >= 0) {
      EXPECT_LE(0, span.start_byte);
      EXPECT_LT(span.start_byte, span.end_byte);
    }
  };
  for (const NqCandidate& candidate : record.candidates) {
    EXPECT_GE(candidate.span.start_token, 0);
    expect_within(candidate.span);
  }
  for (const NqAnnotation& annotation : record.annotations) {
    expect_within(annotation.long_answer);
    for (const NqSpan& span : annotation.short_answers) {
      EXPECT_FALSE(span.is_null());
      expect_within(span);
    }
  }
}

// The damages of one round: to the line, to the text of the document, or to one
// value of the record, so that it can often still be read.
std::string DamagedLine(int round, Mutator* mutator) {
  static const auto* dictionary =
      new std::vector<std::string>{"{",       "}",
                                   "[",       "]",
                                   "\"",      "\\",
                                   ",",       ":",
                                   "-1",      "19",
                                   "1e400",   "null",
                                   "true",    " ",
                                   "<P>",     "\\u0000",
                                   "\\ud83d", "\xC3",
                                   "\xFF",    "\"YES\"",
                                   "  ",      "\xF0\x9F\x98\x80"};
  nlohmann::json json = NqSpecJson();
  if (round % 2 == 0) {
    json = SimplifiedNqJson(json);
  }
  if (round % 3 == 0) {
    return mutator->Mutate(json.dump(), *dictionary);
  }
  if (round % 3 == 1 && json.contains("document_text")) {
    json["document_text"] = mutator->Mutate(
        json["document_text"].get<std::string>(), {" ", "  ", "<", ">"});
  } else {
    static const auto* values = new std::vector<nlohmann::json>{
        -2, -1, 0,    1,    2,     9,  17, 18,  19,     1.5, uint64_t{1} << 63,
        "", "", "no", true, false, {}, {}, "7", nullptr};
    const nlohmann::json leaves = json.flatten();
    const auto leaf = std::next(
        leaves.begin(), static_cast<int64_t>(mutator->Below(leaves.size())));
    json[nlohmann::json::json_pointer(leaf.key())] =
        (*values)[mutator->Below(values->size())];
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TEST(NqReaderTest, SurvivesDamagedFiles) {
  Mutator mutator(20240601);
  int parsed = 0;
  constexpr int kRounds = RoundsOfDamage(6000);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = DamagedLine(round, &mutator);
    RecordScanner scanner("mutant");
    (void)(scanner.Scan(text).ok() && scanner.Finish().ok());
    const auto record = Nq().ParseRecord(text, "mutant");
    if (!record.ok()) {
      EXPECT_THAT(std::string(record.status().message()), HasSubstr("mutant"));
      continue;
    }
    ++parsed;
    ExpectUsable(*record);
  }
  EXPECT_GT(parsed, kRounds / 5);
  EXPECT_LT(parsed, kRounds * 4 / 5);
}

// The only record of a file of real data.
absl::StatusOr<NqRecord> ReadReal(const std::string& path) {
  const auto file = RecordFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 1);
  return Nq().ParseRecord(*file->Read(0), file->Where(0));
}

TEST(NqReaderTest, ReadsARealOriginalRecord) {
  ETC_SHARED_DATA_OR_SKIP(
      const std::string path,
      "data/natural_questions/nq-dev-original.sample.jsonl");
  const auto record = ReadReal(path);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->example_id, 5225754983651766092);
  EXPECT_EQ(record->tokens.size(), 2983u);
  EXPECT_EQ(record->candidates.size(), 10u);
  ASSERT_EQ(record->annotations.size(), 5u);
  EXPECT_EQ(record->annotations[3].long_answer, record->candidates[0].span);
  EXPECT_EQ(record->annotations[3].short_answers[0].start_byte, 44318);
  ExpectUsable(*record);
}

TEST(NqReaderTest, ReadsARealSimplifiedRecord) {
  ETC_SHARED_DATA_OR_SKIP(
      const std::string path,
      "data/natural_questions/nq-train-simplified.sample.jsonl");
  const auto record = ReadReal(path);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->tokens.size(), 3948u);
  EXPECT_EQ(record->candidates.size(), 37u);
  // Candidates begin with a tag and end with its partner.
  for (const NqCandidate& candidate : record->candidates) {
    const auto at = [&](int64_t token) {
      return record->tokens[static_cast<size_t>(token)];
    };
    EXPECT_TRUE(at(candidate.span.start_token).is_html);
    EXPECT_THAT(at(candidate.span.end_token - 1).text,
                testing::StartsWith("</"));
  }
  ASSERT_EQ(record->annotations.size(), 1u);
  EXPECT_EQ(record->annotations[0].long_answer.start_token, 212);
}

TEST(NqReaderTest, ReadsARealRecordWithoutAnnotations) {
  ETC_SHARED_DATA_OR_SKIP(
      const std::string path,
      "data/natural_questions/nq-test-simplified-unannotated.sample.jsonl");
  const auto record = ReadReal(path);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->example_id, -1220107454853145579);
  EXPECT_EQ(record->tokens.size(), 2255u);
  EXPECT_THAT(record->annotations, IsEmpty());
}

}  // namespace
}  // namespace etc
