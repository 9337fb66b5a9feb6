// Files to records, words and tags to spans, and the metric: how CoNLL's
// columns and documents are read, and CoNLL and JSON told apart, every mistake
// with its file and line, spans in code points, units where pieces and words do
// not agree, and what the data say of the labels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tasks/metrics.h"
#include "tasks/task/score_files.h"
#include "tasks/tokens/conll.h"
#include "tasks/tokens/task.h"
#include "tasks/tokens/words.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

using Strings = std::vector<std::string>;

TEST(TokensTagsTest, AreReadAsConllevalReadsThem) {
  const auto spans = [](const Strings& tags) {
    std::string text;
    for (const TagSpan& span : SpansOfTags(tags, TagReading::kConlleval)) {
      absl::StrAppend(&text, span.label, " ", span.first, "-", span.last, ", ");
    }
    return text;
  };
  EXPECT_EQ(spans({"B-a", "I-a", "O", "B-b"}), "a 0-1, b 3-3, ");
  EXPECT_EQ(spans({"B-a", "B-a", "I-b", "I-b"}), "a 0-0, a 1-1, b 2-3, ");
  EXPECT_EQ(spans({"I-a", "I-a", "O", "I-b"}), "a 0-1, b 3-3, ");
  EXPECT_EQ(spans({"B-a", "E-a", "I-a", "S-a", "S-a"}),
            "a 0-1, a 2-2, a 3-3, a 4-4, ");
  EXPECT_EQ(spans({"E-a", "E-a", "O"}), "a 0-0, a 1-1, ");
  EXPECT_EQ(spans({"B-a-b", "I-a-b"}), "a-b 0-1, ");
  EXPECT_EQ(spans({}), "");
}

// seqeval 1.2.2: Entities([tags], IOB2) and IOBES.
TEST(TokensTagsTest, AreReadAsSeqevalsStrictModeReadsThem) {
  const auto spans = [](TagReading reading, const Strings& tags) {
    std::string text;
    for (const TagSpan& span : SpansOfTags(tags, reading)) {
      absl::StrAppend(&text, span.label, " ", span.first, "-", span.last, ", ");
    }
    return text;
  };
  const auto iob2 = [&](const Strings& tags) {
    return spans(TagReading::kStrictIob2, tags);
  };
  EXPECT_EQ(iob2({"B-a", "I-a", "O", "B-b"}), "a 0-1, b 3-3, ");
  EXPECT_EQ(iob2({"I-a", "I-a", "O", "B-b", "B-b"}), "b 3-3, b 4-4, ");
  EXPECT_EQ(iob2({"B-a", "I-b", "I-b", "I-a"}), "a 0-0, ");
  EXPECT_EQ(iob2({"B-a-b", "I-a-b", "I-a"}), "a-b 0-1, ");
  EXPECT_EQ(iob2({}), "");
  const auto iobes = [&](const Strings& tags) {
    return spans(TagReading::kStrictIobes, tags);
  };
  EXPECT_EQ(iobes({"B-a", "I-a", "E-a", "S-b", "S-b"}),
            "a 0-2, b 3-3, b 4-4, ");
  EXPECT_EQ(iobes({"B-a", "I-a", "O", "B-a", "E-a"}), "a 3-4, ");
  EXPECT_EQ(iobes({"B-a", "I-a", "B-a", "E-a"}), "a 2-3, ");
  EXPECT_EQ(iobes({"B-a", "E-b", "E-a", "I-a", "E-a"}), "");
  EXPECT_EQ(iobes({"S-a", "E-a", "B-a", "E-a", "E-a"}), "a 0-0, a 2-3, ");
  EXPECT_EQ(iobes({"B-a", "I-a"}), "");
}

TEST(TokensTagsTest, HaveMistakes) {
  const auto strict = [](const char* previous, const char* tag) {
    return TagMistake(previous, tag, TagReading::kIob2);
  };
  EXPECT_EQ(strict("O", "B-a"), "");
  EXPECT_EQ(strict("I-a", "I-a"), "");
  EXPECT_EQ(strict("B-a", "O"), "");
  EXPECT_EQ(strict("O", "I-a"),
            " is \"I-a\", which should stand behind \"B-a\" or itself, but "
            "stands where no span is; tokens.tags \"conlleval\" lets spans "
            "begin so");
  EXPECT_THAT(strict("B-b", "I-a"), HasSubstr("but stands behind \"B-b\""));
  for (const char* tag : {"", "a", "B", "B-", "b-a", "o", "B_a"}) {
    EXPECT_EQ(strict("O", tag),
              absl::StrCat(" should be \"O\", or \"B-\" or \"I-\" and a label, "
                           "but is \"",
                           tag, "\""));
  }
  EXPECT_EQ(
      strict("O", "S-a"),
      " should be \"O\", or \"B-\" or \"I-\" and a label, but is \"S-a\"; "
      "tokens.tags \"conlleval\" and \"strict_iobes\" read IOBES");
  EXPECT_EQ(
      TagMistake("B-a", "L-a", TagReading::kConlleval),
      " should be \"O\", or \"B-\", \"I-\", \"E-\" or \"S-\" and a label, "
      "but is \"L-a\"; of BILOU, \"L-\" should be written as \"E-\" and "
      "\"U-\" as \"S-\", which tokens.tags \"conlleval\" reads");
  EXPECT_EQ(TagMistake("O", "I-a", TagReading::kConlleval), "");
  EXPECT_EQ(TagMistake("B-b", "E-a", TagReading::kConlleval), "");
  EXPECT_EQ(TagMistake("O", "I-a", TagReading::kStrictIob2), "");
  EXPECT_NE(TagMistake("O", "S-a", TagReading::kStrictIob2), "");
  EXPECT_EQ(TagMistake("O", "E-a", TagReading::kStrictIobes), "");
  EXPECT_NE(TagMistake("O", "L-a", TagReading::kStrictIobes), "");
}

Strings WordsOf(const std::string& text) {
  Strings words;
  for (const ByteRange& word : FindTokensWords(text)) {
    words.push_back(text.substr(static_cast<size_t>(word.begin),
                                static_cast<size_t>(word.end - word.begin)));
  }
  return words;
}

TEST(TokensWordsTest, EndAtWhiteSpaceAndPunctuation) {
  EXPECT_THAT(WordsOf(" Anna's caf\u00e9,\u00a0Z\u00fcrich\n(10km)"),
              ElementsAre("Anna", "'", "s", "caf\u00e9", ",", "Z\u00fcrich",
                          "(", "10km", ")"));
  EXPECT_THAT(WordsOf(" \t\u2003"), IsEmpty());
}

TEST(TokensWordsTest, AreCharactersOfScriptsWithoutBlanks) {
  // An ideograph, kana, and Thai with a mark on its letter.
  EXPECT_THAT(WordsOf("\u6771\u304b x\u0e01\u0e34\u0e02"),
              ElementsAre("\u6771", "\u304b", "x", "\u0e01\u0e34", "\u0e02"));
  // A mark belongs to the letter before it, or is a letter.
  EXPECT_THAT(WordsOf("e\u0301a \u0301b"), ElementsAre("e\u0301a", "\u0301b"));
}

TEST(TokensWordsTest, AreSymbols) {
  EXPECT_THAT(WordsOf("100\u20ac K\u00f6ln\u2192Bonn A\u00b1B x\u2122"),
              ElementsAre("100", "\u20ac", "K\u00f6ln", "\u2192", "Bonn", "A",
                          "\u00b1", "B", "x", "\u2122"));
  // A modifier, an acute accent, is a letter.
  EXPECT_THAT(WordsOf("d\u00b4Or"), ElementsAre("d\u00b4Or"));
  // A joiner belongs to the word that it is in, and begins none.
  EXPECT_THAT(WordsOf("\u0645\u06cc\u200c\u062e (\u200da"),
              ElementsAre("\u0645\u06cc\u200c\u062e", "(\u200d", "a"));
}

TEST(TokensWordsTest, AreEmojisOfSeveralCharacters) {
  const Strings emojis = {
      "\U0001f44d\U0001f3fd",                        // and its colour
      "\u2764\ufe0f",                                // and its style
      "\U0001f468\u200d\U0001f469\u200d\U0001f467",  // family
      "\u2764\ufe0f\u200d\U0001f525",                // heart on fire
      "\U0001f1e9\U0001f1ea",                        // flags
      "\U0001f1eb\U0001f1f7",
      "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e007f",  // flag of England
      "\U0001f44d"};
  EXPECT_EQ(WordsOf(absl::StrJoin(emojis, "")), emojis);
  // A third indicator begins a flag.
  EXPECT_THAT(WordsOf("a\U0001f1e9\U0001f1ea\U0001f1ebb"),
              ElementsAre("a", "\U0001f1e9\U0001f1ea", "\U0001f1eb", "b"));
}

TEST(TokensUnitsTest, JoinWordsThatHaveAPieceInCommon) {
  const std::string text = "ab, cd ef";
  const std::vector<ByteRange> words = FindTokensWords(text);
  ASSERT_EQ(words.size(), 4);
  // "a" "b," " c" "d": the comma has no piece of its own; " " of a piece does
  // not count; "ef" was cut off.
  const std::vector<Token> pieces = {
      {1, 0, 1}, {2, 1, 3}, {3, 3, 5}, {4, 5, 6}};
  EXPECT_THAT(
      FindTokensUnits(text, words, pieces),
      ElementsAre(TokensUnit{.piece = 0, .first_word = 0, .last_word = 1},
                  TokensUnit{.piece = 2, .first_word = 2, .last_word = 2}));
  // Words that the tokenizer drops, and a piece of white space.
  EXPECT_THAT(
      FindTokensUnits(text, words, {{1, 3, 4}, {2, 7, 9}}),
      ElementsAre(TokensUnit{.piece = 1, .first_word = 3, .last_word = 3}));
}

TEST(TokensOptionsTest, RefuseOneColumnForTwoThings) {
  const auto mistake = [](const nlohmann::json& json) {
    return std::string(
        ReadTaskOptions<Tokens>(json, "f.json: tokens").status().message());
  };
  EXPECT_EQ(mistake({{"label_column", 1}}),
            "f.json: tokens.label_column should be another column than "
            "word_column, but both are 1");
  EXPECT_EQ(mistake({{"word_column", -1}}),
            "f.json: tokens.label_column should be another column than "
            "word_column, but both are -1");
  EXPECT_EQ(mistake({{"document_column", 1}}),
            "f.json: tokens.document_column should be another column than "
            "word_column, but both are 1");
  EXPECT_EQ(mistake({{"label_column", 3}, {"document_column", 3}}),
            "f.json: tokens.document_column should be another column than "
            "label_column, but both are 3");
  EXPECT_EQ(mistake({{"word_column", 2}, {"document_column", 1}}), "");
  EXPECT_EQ(mistake(nlohmann::json::object()), "");
}

TEST(TokensOptionsTest, RefuseNamesThatAreNone) {
  const auto mistake = [](const nlohmann::json& json) {
    return std::string(
        ReadTaskOptions<Tokens>(json, "f.json: tokens").status().message());
  };
  EXPECT_EQ(mistake({{"format", "csv"}}),
            "f.json: tokens.format should be \"conll\" or \"json\", but is "
            "\"csv\"");
  EXPECT_EQ(mistake({{"tags", "bio"}}),
            "f.json: tokens.tags should be \"iob2\" or \"conlleval\" or "
            "\"strict_iob2\" or \"strict_iobes\", but is \"bio\"");
}

class TokensFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& contents) {
    return directory_.Write(name, contents);
  }

  // The JSON of the records of a file.
  std::vector<nlohmann::json> Records(const std::string& contents,
                                      const TokensOptions& options = {}) {
    const auto records =
        Tokens(options).ReadFile(Write("t.conll", contents), {});
    EXPECT_TRUE(records.ok()) << records.status();
    std::vector<nlohmann::json> read;
    for (const FileRecord& record : records.value_or(Files())) {
      read.push_back(nlohmann::json::parse(record.json));
    }
    return read;
  }

  // The first mistake of the records of a file, with its directory left out.
  std::string Mistake(const std::string& contents,
                      const TokensOptions& options = {},
                      const std::string& name = "t.conll") {
    const Tokens tokens(options);
    const auto records = tokens.ReadFile(Write(name, contents), {});
    absl::Status status = records.status();
    for (const FileRecord& record : records.value_or(Files())) {
      if (status.ok()) {
        const auto parsed = tokens.ParseRecord(record.json, record.where);
        status = parsed.ok() ? tokens.CheckRecord(*parsed, record.where)
                             : parsed.status();
      }
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    std::string message(status.message());
    const size_t begin = message.find(name);
    return begin == std::string::npos ? message : message.substr(begin);
  }

  // The gold spans of the only record of a file.
  std::vector<TokensSpan> Spans(const std::string& contents,
                                const TokensOptions& options = {}) {
    const Tokens tokens(options);
    const auto records = tokens.ReadFile(Write("t.conll", contents), {});
    EXPECT_TRUE(records.ok()) << records.status();
    const auto record =
        tokens.ParseRecord(records->at(0).json, records->at(0).where);
    EXPECT_TRUE(record.ok()) << record.status();
    return record->spans.value();
  }

  using Files = std::vector<FileRecord>;
  TemporaryDirectory directory_;
};

TEST_F(TokensFileTest, HasDocumentsFromDocstartOn) {
  const auto records = Records(
      "-DOCSTART- -X- -X- O\n\nEU NNP x B-ORG\nsays V x O\n\n\nNo D x O\n"
      "-DOCSTART- O\r\nAnna N x B-PER\r\n");
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0]["sentences"],
            nlohmann::json::parse(R"([["EU", "says"], ["No"]])"));
  EXPECT_EQ(records[0]["tags"],
            nlohmann::json::parse(R"([["B-ORG", "O"], ["O"]])"));
  EXPECT_EQ(records[1]["sentences"], nlohmann::json::parse(R"([["Anna"]])"));
}

TEST_F(TokensFileTest, HasDocumentsFromDocstartInTheColumnOfWords) {
  const auto records = Records(
      "1 -DOCSTART- O\n\n2 x O\n\n3 y B-p\n4 -DOCSTART- O\n\n5 z O\n"
      "-DOCSTART-\n-DOCSTART- w O\n",
      {.word_column = 2});
  ASSERT_EQ(records.size(), 3);
  EXPECT_EQ(records[0]["sentences"],
            nlohmann::json::parse(R"([["x"], ["y"]])"));
  EXPECT_EQ(records[1]["sentences"], nlohmann::json::parse(R"([["z"]])"));
  EXPECT_EQ(records[2]["sentences"], nlohmann::json::parse(R"([["w"]])"));
}

TEST_F(TokensFileTest, HasDocumentsOfAColumn) {
  const auto records = Records("a\tx\tO\na\ty z\tB-p\n\na\tw\tO\nb\tx\tO\n",
                               {.word_column = 2, .document_column = 1});
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0]["id"], "a");
  EXPECT_EQ(records[0]["sentences"],
            nlohmann::json::parse(R"([["x", "y z"], ["w"]])"));
  EXPECT_EQ(records[1]["id"], "b");
}

TEST_F(TokensFileTest, HasADocumentForEachSentenceWithoutEither) {
  const auto records = Records("\xef\xbb\xbfx O\n\ny\xc3\xa9 B-p\n");
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0]["sentences"], nlohmann::json::parse(R"([["x"]])"));
  EXPECT_EQ(records[1]["tags"], nlohmann::json::parse(R"([["B-p"]])"));
}

TEST_F(TokensFileTest, MayHaveWordsAlone) {
  const auto records = Records("x\ny\n");
  ASSERT_EQ(records.size(), 1);
  EXPECT_FALSE(records[0].contains("tags"));
  EXPECT_FALSE(Records("x N\n", {.label_column = 4})[0].contains("tags"));
  // The last column is the documents'.
  EXPECT_FALSE(Records("x N a\n", {.document_column = 3})[0].contains("tags"));
}

TEST_F(TokensFileTest, LeavesOutWhatIsNoWordOfConllu) {
  const std::string contents =
      "# sent_id = 1\n# text = Im Haus\n1-2\tIm\t_\n1\tIn\tO\n2\tdem\tO\n"
      "3\tHaus\tB-p\n\n# sent_id = 2\n1\tx\tO\n1.1\ty\t_\n2\t3.5\t";
  const Tokens tokens(TokensOptions{.word_column = 2});
  const auto records =
      tokens.ReadFile(Write("t.conllu", contents + "B-p\n"), {});
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 2);
  const auto field = [](const FileRecord& record, const char* name) {
    return nlohmann::json::parse(record.json)[name];
  };
  EXPECT_EQ(field((*records)[0], "sentences"),
            nlohmann::json::parse(R"([["In", "dem", "Haus"]])"));
  EXPECT_EQ(field((*records)[0], "tags"),
            nlohmann::json::parse(R"([["O", "O", "B-p"]])"));
  EXPECT_EQ(field((*records)[1], "sentences"),
            nlohmann::json::parse(R"([["x", "3.5"]])"));
  // Lines are those of the file.
  EXPECT_THAT(Mistake(contents + "I-p\n", {.word_column = 2}, "t.conllu"),
              StartsWith("t.conllu:11: the label is \"I-p\""));
  // A first column of words has no ids.
  const auto of_words =
      Tokens().ReadFile(Write("w.conllu", "# x\n3.5 O\n1-2 B-p\n"), {});
  ASSERT_TRUE(of_words.ok()) << of_words.status();
  EXPECT_EQ(field(of_words->at(0), "sentences"),
            nlohmann::json::parse(R"([["3.5", "1-2"]])"));
}

TEST_F(TokensFileTest, LeavesOutCommentsThatStandBeforeAllWords) {
  // MultiCoNER has such comments.
  const auto records = Records(
      "# id 7\tdomain=en\nx _ _ O\n# _ _ B-p\n\n# id 8\tdomain=en\ny _ _ O\n");
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0]["sentences"], nlohmann::json::parse(R"([["x", "#"]])"));
  EXPECT_EQ(records[0]["tags"], nlohmann::json::parse(R"([["O", "B-p"]])"));
  EXPECT_EQ(records[1]["sentences"], nlohmann::json::parse(R"([["y"]])"));
  // GermEval has such comments.
  EXPECT_EQ(Records("#\thttp://x\t[2009]\n1\tx\tO\tO\n2\t#\tB-p\tO\n",
                    {.word_column = 2, .label_column = 3})[0]["sentences"],
            nlohmann::json::parse(R"([["x", "#"]])"));
  // "#" is a word here.
  for (const char* contents : {"#\tO\nx\tB-p\n", "# O\nx B-p\n", "#\nx\n"}) {
    EXPECT_EQ(Records(contents)[0]["sentences"],
              nlohmann::json::parse(R"([["#", "x"]])"))
        << contents;
  }
  EXPECT_EQ(Records("# N a\nx N a\n", {.document_column = 3})[0]["sentences"],
            nlohmann::json::parse(R"([["#", "x"]])"));
  // A line without the column of labels may be a word.
  EXPECT_EQ(Mistake("\n# id 7\nx _ _ O\n", {.label_column = 4}),
            "t.conll:3 should have 3 columns, as line 2 has, but has 4; line 2 "
            "begins with #: comments are to be removed, or the file named "
            ".conllu");
  EXPECT_EQ(Mistake("x O\n# id 7\n"),
            "t.conll:2 should have 2 columns, as line 1 has, but has 3");
}

TEST_F(TokensFileTest, HasSpansInCodePointsOfItsWords) {
  EXPECT_THAT(Spans("-DOCSTART-\n\nZ\u00fc B-p\nx I-p\n\n\u6771 B-q\ny B-q\n"
                    "z O\n"),
              ElementsAre(TokensSpan{"p", 0, 4}, TokensSpan{"q", 5, 6},
                          TokensSpan{"q", 7, 8}));
  // A sentence ends a span.
  EXPECT_THAT(
      Spans("-DOCSTART-\n\na I-p\n\nb I-p\n", {.tags = TagReading::kConlleval}),
      ElementsAre(TokensSpan{"p", 0, 1}, TokensSpan{"p", 2, 3}));
  EXPECT_THAT(Spans("-DOCSTART-\n\na I-p\n\nb B-p\n",
                    {.tags = TagReading::kStrictIob2}),
              ElementsAre(TokensSpan{"p", 2, 3}));
}

TEST_F(TokensFileTest, LooksAtNoLabelsOutsideOfStrictSpans) {
  for (const TagReading tags :
       {TagReading::kStrictIob2, TagReading::kStrictIobes}) {
    const TokensOptions options = {.tags = tags, .labels = {"p"}};
    const bool is_iobes = tags == TagReading::kStrictIobes;
    const std::string begin = is_iobes ? "S-" : "B-";
    EXPECT_THAT(
        Spans("-DOCSTART-\n\na I-q\nb " + begin + "p\nc I-q\n", options),
        ElementsAre(TokensSpan{"p", 2, 3}));
    EXPECT_EQ(Mistake("-DOCSTART-\n\na I-q\nb " + begin + "q\n", options),
              "t.conll:4: the label should be one of \"p\", but is \"q\"");
  }
}

// As tables that have records of both kinds are written.
TEST_F(TokensFileTest, TakesNullForNoSentences) {
  const auto parsed = Tokens().ParseRecord(
      R"({"text": "Anna came.", "sentences": null, "tags": null,
          "spans": []})",
      "t.jsonl: record 0");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->text, "Anna came.");
}

TEST_F(TokensFileTest, MayHaveWordsWithWhiteSpaceAtTheirEnds) {
  const Tokens tokens;
  const auto records = tokens.ReadFile(
      Write("t.conll", "\u00a0x B-p\ny\u00a0 I-p\nz\u3000 O\n"), {});
  ASSERT_TRUE(records.ok()) << records.status();
  const FileRecord& record = records->at(0);
  const auto parsed = tokens.ParseRecord(record.json, record.where);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed->spans, ElementsAre(TokensSpan{"p", 0, 5}));
  EXPECT_TRUE(tokens.CheckRecord(*parsed, record.where).ok());
  // What is between words is in no span.
  EXPECT_EQ(Mistake(R"({"sentences": [["\u00a0x", "y"]], "spans": [
                        {"start": 2, "end": 4, "label": "p"}]})",
                    {}, "t.jsonl"),
            "t.jsonl: record 0.spans[0] should neither begin nor end with "
            "white space, but is \" y\"");
}

TEST_F(TokensFileTest, RefusesMistakesByFileAndLine) {
  EXPECT_EQ(Mistake("a N O\nb O\n"),
            "t.conll:2 should have 3 columns, as line 1 has, but has 2");
  EXPECT_THAT(Mistake("-DOCSTART- O\n\nx O\n\ny O\nz I-p\n"),
              StartsWith("t.conll:6: the label is \"I-p\", which should stand "
                         "behind \"B-p\" or itself, but stands where no span "
                         "is; tokens.tags"));
  EXPECT_THAT(Mistake("x B-p\n\ny I-p\n"), StartsWith("t.conll:3: the label"));
  EXPECT_THAT(Mistake("x O\ny PER\n"),
              StartsWith("t.conll:2: the label should be \"O\", or \"B-\""));
  EXPECT_THAT(Mistake("x U-p\n"),
              StartsWith("t.conll:1: the label should be \"O\", or \"B-\""));
  EXPECT_EQ(Mistake("x B-q\n", {.labels = {"p", "r"}}),
            "t.conll:1: the label should be one of \"p\", \"r\", but is \"q\"");
  EXPECT_THAT(Mistake("a\xff O\n"),
              StartsWith("t.conll:1 should be UTF-8, but is not; `iconv"));
  EXPECT_EQ(Mistake("x O\n", {.word_column = 3}),
            "t.conll:1 should have column 3 (tokens.word_column), but has 2 "
            "columns");
  EXPECT_EQ(Mistake("x O\n", {.document_column = 4}),
            "t.conll:1 should have column 4 (tokens.document_column), but has "
            "2 columns");
  EXPECT_EQ(Mistake("x O\n", {.word_column = -2, .document_column = 1}),
            "t.conll:1: tokens.document_column (1) should be another column "
            "than tokens.word_column (-2), but of 2 columns they are the same");
  EXPECT_EQ(Mistake("\tO\n"),
            "t.conll:1 should have a word in column 1, but has none");
  EXPECT_THAT(Mistake("x", {}, "t.xml"),
              StartsWith("t.xml should end in .conll, .conllu, .iob, .iob2, "
                         ".bio, .tsv, .txt, .jsonl or .json, "));
}

// Nothing but the first word of each line would be read.
TEST_F(TokensFileTest, RefusesTextThatIsNoConll) {
  EXPECT_EQ(
      Mistake("The old Ann Lee is here too.\nSo is Bob.\n", {}, "report.txt"),
      "report.txt:1 is read as CoNLL, whose column 7 "
      "(tokens.label_column) should be a label such as \"O\" or "
      "\"B-town\", but is \"too.\"; texts that are not split go into "
      "JSON lines, and columns without labels are read with "
      "tokens.label_column=8");
  EXPECT_FALSE(Records("x noun\n", {.label_column = 3})[0].contains("tags"));
  EXPECT_THAT(Mistake("7\tThe old mill.\n", {}, "t.tsv"),
              StartsWith("t.tsv:1 is read as CoNLL"));
  EXPECT_EQ(Mistake("Report\n\nThe mill.\n", {}, "report.txt"),
            "report.txt:3 should have 1 column, as line 1 has, but has 2; "
            "texts that are not split go into JSON lines");
  // Labels of any scheme, and none as CoNLL-U has it.
  EXPECT_EQ(Records("x E-p\n").size(), 1);
  EXPECT_EQ(Records("x _\n").size(), 1);
  EXPECT_TRUE(Tokens(TokensOptions{.word_column = 2})
                  .ReadFile(Write("t.conllu", "1\tx\tSpaceAfter=No\n"), {})
                  .ok());
}

TEST_F(TokensFileTest, RefusesMistakesInJson) {
  const auto mistake = [&](const std::string& line,
                           const TokensOptions& options = {}) {
    return Mistake(line + "\n", options, "t.jsonl");
  };
  const auto span = [&](const std::string& spans,
                        const TokensOptions& options = {}) {
    return mistake(R"({"text": "a b\u00e9 c", "spans": )" + spans + "}",
                   options);
  };
  EXPECT_EQ(span(R"([{"start": 4, "end": 7, "label": "p"}])"),
            "t.jsonl: record 0.spans[0] should be a part of the text, which "
            "has 6 characters (7 bytes), but is from 4 to 7");
  EXPECT_THAT(span(R"([{"start": -1, "end": 1, "label": "p"}])"),
              HasSubstr("but is from -1 to 1"));
  EXPECT_THAT(span(R"([{"start": 2, "end": 2, "label": "p"}])"),
              HasSubstr("but is from 2 to 2"));
  EXPECT_EQ(span(R"([{"start": 2, "end": 6, "label": "p"},
                    {"start": 0, "end": 3, "label": "p"}])"),
            "t.jsonl: record 0.spans[0], from 2 to 6, overlaps spans[1], from "
            "0 to 3");
  EXPECT_EQ(span(R"([{"start": 1, "end": 4, "label": "p"}])"),
            "t.jsonl: record 0.spans[0] should neither begin nor end with "
            "white space, but is \" b\u00e9\"");
  EXPECT_EQ(
      span(R"([{"start": 0, "end": 1, "label": "q"}])", {.labels = {"p"}}),
      "t.jsonl: record 0.spans[0].label should be one of \"p\", but is "
      "\"q\"");
  EXPECT_THAT(span(R"([{"start": 0, "label": "q"}])"),
              HasSubstr("spans[0].end is missing"));
  EXPECT_THAT(span("3"), HasSubstr("record 0.spans should be a list"));
  EXPECT_THAT(mistake(R"({"text": " "})"),
              HasSubstr("record 0.text should have a word, but has none"));
  EXPECT_THAT(mistake(R"({"id": 1})"), HasSubstr("record 0.text is missing"));
  EXPECT_THAT(mistake(R"({"sentences": [["a"]], "tags": [["O", "O"]]})"),
              HasSubstr("record 0.tags[0] should have 1 label, one for each "
                        "word, but has 2"));
  EXPECT_THAT(mistake(R"({"sentences": [["a", "b"]], "tags": [["O", "I-p"]]})"),
              HasSubstr("record 0.tags[0][1] is \"I-p\", which should"));
  EXPECT_THAT(mistake(R"({"sentences": [["a", " "]]})"),
              HasSubstr("sentences[0][1] should be a word, but is empty"));
  EXPECT_THAT(mistake(R"({"sentences": ["a"]})"),
              HasSubstr("sentences should be a list of sentences, each a list "
                        "of words"));
  EXPECT_THAT(mistake(R"({"sentences": []})"),
              HasSubstr("sentences should have a word, but has none"));
  EXPECT_EQ(mistake(R"({"text": "a", "sentences": [["a"]]})"),
            "t.jsonl: record 0.text should not stand beside sentences, whose "
            "words are the text");
  EXPECT_EQ(mistake(R"({"text": "a", "tags": [["O"]], "spans": []})"),
            "t.jsonl: record 0.tags should stand beside sentences, whose words "
            "have tags, but stands beside text");
  EXPECT_EQ(mistake(R"({"sentences": [["a"]], "tags": [["B-p"]],
                        "spans": []})"),
            "t.jsonl: record 0.spans should be those of tags, or not stand "
            "beside them");
}

TEST_F(TokensFileTest, RefusesSpansOfOtherTexts) {
  const auto mistake = [&](const std::string& text, int start, int end) {
    const nlohmann::json span = {
        {"start", start}, {"end", end}, {"label", "p"}, {"text", "Ann"}};
    const nlohmann::json record = {{"text", text},
                                   {"spans", nlohmann::json::array({span})}};
    return Mistake(record.dump(), {}, "t.jsonl");
  };
  EXPECT_EQ(mistake("Z\u00fc Ann is", 4, 7),
            "t.jsonl: record 0.spans[0].text is \"Ann\", but characters 4 to 7 "
            "are \"nn \"; start and end should count code points, but count "
            "bytes");
  EXPECT_EQ(mistake("\U0001f600 Ann is", 3, 6),
            "t.jsonl: record 0.spans[0].text is \"Ann\", but characters 3 to 6 "
            "are \"nn \"; start and end should count code points, but count "
            "UTF-16 units");
  EXPECT_EQ(mistake("Z\u00fc Ann is", 7, 9),
            "t.jsonl: record 0.spans[0].text is \"Ann\", but characters 7 to 9 "
            "are \"is\"; start and end should count code points");
  EXPECT_THAT(Mistake(R"({"sentences": [["a", "b"]], "spans": [
                          {"start": 0, "end": 1, "label": "p", "text": "b"}]})",
                      {}, "t.jsonl"),
              HasSubstr("spans[0].text is \"b\", but characters 0 to 1 are "
                        "\"a\""));
  EXPECT_TRUE(Tokens()
                  .ParseRecord(R"({"text": "\u00fc Ann", "spans": [
                      {"start": 2, "end": 5, "label": "p", "text": "Ann"},
                      {"start": 0, "end": 1, "label": "p", "text": null}]})",
                               "t.jsonl: record 0")
                  .ok());
}

TEST_F(TokensFileTest, TakesSpansBesideTheSameTags) {
  // As the line of a prediction has them, and absent fields as null.
  const auto record = Tokens().ParseRecord(
      R"({"text": null, "sentences": [["a", "b"], ["c"]],
          "tags": [["O", "B-p"], ["B-q"]],
          "spans": [{"start": 4, "end": 5, "label": "q", "probability": 0.5},
                    {"start": 2, "end": 3, "label": "p", "text": "b"}]})",
      "t.jsonl: record 0");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(*record->spans,
              ElementsAre(TokensSpan{"p", 2, 3}, TokensSpan{"q", 4, 5}));
  EXPECT_TRUE(
      Tokens()
          .ParseRecord(R"({"text": "a", "tags": null})", "t.jsonl: record 0")
          .ok());
}

TEST_F(TokensFileTest, SaysWhichLabelsThereAre) {
  const Tokens tokens;
  const std::string train = Write("train.conll", "x B-q\n\ny B-p\nz I-p\n");
  nlohmann::json options = nlohmann::json::object();
  DataConfig data;
  data.train = {train};
  ASSERT_TRUE(tokens.CompleteOptions(data, &options).ok());
  EXPECT_EQ(options, nlohmann::json::parse(R"({"labels": ["p", "q"]})"));
  data.train = {Write("none.conll", "x O\n")};
  EXPECT_THAT(tokens.CompleteOptions(data, &options).message(),
              HasSubstr("none.conll should have a span at least"));
  data.train = {Write("words.conll", "x\n")};
  EXPECT_THAT(tokens.CompleteOptions(data, &options).message(),
              HasSubstr("words.conll should have labels for training"));

  const auto records = tokens.ReadFile(train, {});
  const WordTokenizer tokenizer(Strings{});
  const Notices notices = Tokens({.labels = {"p", "q", "r"}}, &tokenizer)
                              .DescribeRecords(*records, {});
  EXPECT_THAT(
      notices.messages,
      ElementsAre("training: 2 documents, 3 words, 2 spans: \"p\" 1, \"q\" 1"));
  EXPECT_THAT(
      notices.warnings,
      ElementsAre("no training document has a span with the label \"r\""));
}

TEST_F(TokensFileTest, SaysWhichSpansNoPredictionIsEqualTo) {
  const WordTokenizer tokenizer(Strings{});
  // [CLS], four pieces and [SEP]
  const Tokens tokens({.input = {.max_long_length = 6}, .labels = {"p"}},
                      &tokenizer);
  const auto train = tokens.ReadFile(Write("train.conll", "x B-p\ny O\n"), {});
  ASSERT_TRUE(train.ok()) << train.status();
  const auto line = [](const std::string& text,
                       const std::vector<std::pair<int, int>>& ends) {
    nlohmann::json record = {{"text", text},
                             {"spans", nlohmann::json::array()}};
    for (const auto& [start, end] : ends) {
      record["spans"].push_back(
          {{"start", start}, {"end", end}, {"label", "p"}});
    }
    return record.dump() + "\n";
  };
  // One piece has "100" and the sign behind it.
  const std::string path =
      Write("dev.jsonl", line("a \ubd80\uc0b0\uc5d0", {{2, 4}}) +
                             line("a 100\u20ac b", {{2, 5}, {7, 8}}) +
                             line("a b c d e", {{0, 3}, {6, 9}}));
  const auto dev = tokens.ReadFile(path, {});
  ASSERT_TRUE(dev.ok()) << dev.status();
  const Notices notices = tokens.DescribeRecords(*train, *dev);
  EXPECT_THAT(
      notices.messages,
      ElementsAre("training: 1 document, 2 words, 1 span: \"p\" 1",
                  "evaluation: 3 documents, 11 words, 5 spans: \"p\" 5"));
  EXPECT_THAT(
      notices.warnings,
      ElementsAre(
          absl::StrCat(
              "2 of 5 spans of the evaluation begin or end within a "
              "word, or within words that have a piece in common, so that no "
              "prediction can be equal to them (recall at most 0.6000); the "
              "first: ",
              path,
              ": record 0.spans[0] \"\ubd80\uc0b0\" in \"\ubd80\uc0b0\uc5d0\""),
          "1 of 5 spans of the evaluation lie in what is cut off: see "
          "data.max_long_length"));
}

TEST_F(TokensFileTest, IsScoredAsSeqevalScores) {
  // Right: p of x y. Wrong: q for p, and one of two words for both.
  const std::string gold =
      Write("gold.conll", "x B-p\ny I-p\nz O\n\nu B-p\nv O\n\na B-q\nb I-q\n");
  const std::string predicted = Write(
      "predicted.conll", "x I-p\ny I-p\nz O\n\nu B-q\nv O\n\na O\nb I-q\n");
  const auto scores = ScoreFiles(Tokens(), {gold, predicted},
                                 ScoringRules::kDefault, {}, nullptr);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores,
              ElementsAre(Pair("f1", 1.0 / 3), Pair("precision", 1.0 / 3),
                          Pair("recall", 1.0 / 3), Pair("precision[p]", 1),
                          Pair("recall[p]", 0.5), Pair("f1[p]", 2.0 / 3),
                          Pair("support[p]", 2), Pair("precision[q]", 0),
                          Pair("recall[q]", 0), Pair("f1[q]", 0),
                          Pair("support[q]", 1)));
  const std::string lines =
      Write("predicted.jsonl",
            "{\"id\": \"0\", \"spans\": [{\"start\": 0, \"end\": 3, \"label\": "
            "\"p\", \"text\": \"x y\", \"probability\": 0.5}]}\n"
            "{\"id\": \"1\", \"spans\": []}\n"
            "{\"id\": \"2\", \"spans\": []}\n");
  const auto of_lines =
      ScoreFiles(Tokens(), {gold, lines}, ScoringRules::kDefault, {}, nullptr);
  ASSERT_TRUE(of_lines.ok()) << of_lines.status();
  EXPECT_THAT(of_lines->front(), Pair("f1", 0.5));
  const auto missing = ScoreFiles(
      Tokens(), {gold, Write("few.jsonl", "{\"id\": \"0\", \"spans\": []}\n")},
      ScoringRules::kDefault, {}, nullptr);
  EXPECT_THAT(missing.status().message(), HasSubstr("few.jsonl"));
}

TEST_F(TokensFileTest, IsScoredByTheContentsOfPredictions) {
  const auto f1 = [&](const std::string& gold, const std::string& predicted,
                      TokensFormat format = TokensFormat::kByName) {
    const auto scores = ScoreFiles(Tokens(TokensOptions{.format = format}),
                                   {.gold = gold, .predictions = predicted});
    EXPECT_TRUE(scores.ok()) << scores.status();
    return scores.ok() ? FindMetric(*scores, "f1").value_or(-1) : -1;
  };
  const std::string lines =
      R"({"id": "0", "spans": [{"start": 0, "end": 1, "label": "p"}]})";
  const std::string tags = "x I-p\ny O\n";
  const std::string conll = Write("gold.conll", "x B-p\ny O\n");
  const std::string json = Write(
      "gold.jsonl",
      R"({"text": "x y", "spans": [{"start": 0, "end": 1, "label": "p"}]})");
  for (const std::string& gold : {conll, json}) {
    EXPECT_EQ(f1(gold, Write("p.txt", lines)), 1);
    EXPECT_EQ(f1(gold, Write("p.data", "\xef\xbb\xbf \n" + lines)), 1);
    EXPECT_EQ(f1(gold, Write("p.conll", "[\n" + lines + "]\n")), 1);
    EXPECT_EQ(f1(gold, Write("p.data", tags)), 1);
    EXPECT_EQ(f1(gold, Write("p.jsonl", "\n" + tags)), 1);
  }
  EXPECT_EQ(f1(json, Write("p.conll", tags), TokensFormat::kJson), 1);
  EXPECT_EQ(f1(conll, Write("p.jsonl", lines), TokensFormat::kConll), 1);
  // Brackets are words.
  EXPECT_EQ(f1(Write("gold.conll", "{ B-p\n\" O\n\n[ O\n"),
               Write("p.conll", "{ B-p\n\" O\n\n[ O\n")),
            1);
  EXPECT_EQ(f1(Write("gold.conll", "[ [ B-p\n"), Write("p.conll", "[ [ B-p\n")),
            1);
  EXPECT_EQ(f1(Write("gold.conll", "{ { B-p\n"), Write("p.conll", "{ { B-p\n")),
            1);
}

TEST_F(TokensFileTest, IsScoredWithSpansThatCanBe) {
  const auto mistake = [&](const std::string& gold_spans,
                           const std::string& predicted_spans) {
    const auto scores = ScoreFiles(
        Tokens(),
        {.gold = Write("gold.jsonl",
                       R"({"text": "a b", "spans": [)" + gold_spans + "]}\n"),
         .predictions = Write("p.jsonl", R"({"id": "0", "spans": [)" +
                                             predicted_spans + "]}\n")});
    return absl::StrReplaceAll(scores.status().message(),
                               {{directory_.File(""), ""}});
  };
  const auto span = [](int start, int end) {
    return absl::StrCat("{\"start\": ", start, ", \"end\": ", end,
                        ", \"label\": \"p\"}");
  };
  EXPECT_EQ(mistake(span(0, 1), span(0, 3)), "");
  EXPECT_EQ(mistake(span(0, 9), span(0, 1)),
            "gold.jsonl: record 0.spans[0] should be a part of the text, which "
            "has 3 characters (3 bytes), but is from 0 to 9");
  EXPECT_EQ(mistake(span(0, 1) + "," + span(0, 1), span(0, 1)),
            "gold.jsonl: record 0.spans[1], from 0 to 1, overlaps spans[0], "
            "from 0 to 1");
  EXPECT_EQ(mistake(span(0, 1), span(0, 1) + "," + span(-1, 1)),
            "p.jsonl: record 0.spans[1] should have 0 <= start < end, but is "
            "from -1 to 1");
  EXPECT_EQ(mistake(span(0, 1), span(3, 2)),
            "p.jsonl: record 0.spans[0] should have 0 <= start < end, but is "
            "from 3 to 2");
}

TEST_F(TokensFileTest, IsScoredWithTheWordsOfTheGoldAlone) {
  const auto status = [&](const std::string& gold, const std::string& predicted,
                          const std::string& name = "gold.conll") {
    const auto scores =
        ScoreFiles(Tokens(), {.gold = Write(name, gold),
                              .predictions = Write("tags.conll", predicted)});
    return absl::StrReplaceAll(scores.status().message(),
                               {{directory_.File(""), ""}});
  };
  const std::string gold =
      "-DOCSTART- O\n\nMill B-t\nLake I-t\nis O\nold O\n\nNo O\n";
  EXPECT_EQ(status(gold,
                   "-DOCSTART- x O\n\nMill x B-t\n\nLake x I-t\nis x O\n"
                   "old x O\nNo x O\n"),
            "");
  EXPECT_EQ(
      status(gold, "-DOCSTART- O\n\n\nMill B-t\nLake I-t\nold O\nNo O\n"),
      "tags.conll:6 should have the word \"is\", as gold.conll:5, but has "
      "\"old\"");
  EXPECT_EQ(status(gold, "-DOCSTART- O\n\nMill O\nLake O\nis O\nold O\n"),
            "tags.conll:6 should stand before the word \"No\", as in "
            "gold.conll:8, but is the last one of its document");
  EXPECT_EQ(status("a B-t\n\nb O\n", "a B-t\n\nb O\nc O\n"),
            "tags.conll:4 should have no word of this document, which ends at "
            "gold.conll:3, but has \"c\"");
  EXPECT_EQ(status(R"({"sentences": [["a"], ["b", "c"]],
                       "tags": [["O"], ["B-t", "O"]]})",
                   "-DOCSTART-\n\na O\nb B-t\nd O\n", "gold.json"),
            "tags.conll:5 should have the word \"c\", as gold.json: record "
            "0.sentences[1][1], but has \"d\"");
  const auto of_text = [&](const std::string& predicted) {
    return status(R"({"text": "Z\u00fc is\nold.", "spans": []})", predicted,
                  "gold.json");
  };
  EXPECT_EQ(of_text("Z\u00fc B-t\nis O\nold. O\n"), "");
  EXPECT_EQ(
      of_text("Z\u00fc B-t\nold. O\n"),
      "tags.conll:2 should have the word \"is\\no\", as gold.json: record "
      "0.text from character 3 on, but has \"old.\"");
  EXPECT_EQ(
      of_text("Z\u00fc B-t\nis O\n"),
      "tags.conll:2 should stand before \"old.\", as in gold.json: record "
      "0.text, but is the last one of its document");
}

}  // namespace
}  // namespace etc
