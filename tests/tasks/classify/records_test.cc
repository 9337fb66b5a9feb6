// Files of all three kinds read as records, and predictions scored, without a
// model: RFC 4180 case by case, options completed by the training data, one
// clear message for each mistake, and scores computed by hand.

#include "tasks/classify/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/classify/metric.h"
#include "tasks/classify/prediction.h"
#include "tasks/classify/table.h"
#include "tasks/classify/task.h"
#include "tasks/data/hold_out.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/gzip_member.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

using Rows = std::vector<std::vector<std::string>>;

std::string Message(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The rows of a table behind its header.
absl::StatusOr<Rows> ReadRows(const std::string& text, TableFormat format) {
  ETC_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(text, format, "f"));
  Rows rows;
  while (true) {
    ETC_ASSIGN_OR_RETURN(auto row, table.Next());
    if (!row.has_value()) {
      return rows;
    }
    rows.push_back(*std::move(row));
  }
}

absl::StatusOr<Rows> Csv(const std::string& text) {
  return ReadRows(text, TableFormat::kCsv);
}

TEST(TableReaderTest, ReadsWhatRfc4180Says) {
  // The RFC's own examples, 2.1 to 2.7.
  const Rows rows = {{"zzz", "yyy", "xxx"}};
  for (const char* text :
       {"a,b,c\r\nzzz,yyy,xxx\r\n", "a,b,c\r\nzzz,yyy,xxx",
        "a,b,c\nzzz,yyy,xxx\n\n\r\n", "\"a\",\"b\",c\n\"zzz\",\"yyy\",xxx",
        "\xEF\xBB\xBF\"a\",b,c\nzzz,yyy,xxx"}) {
    EXPECT_EQ(*Csv(text), rows) << text;
  }
  EXPECT_EQ(*Csv("a,b,c\r\n\"aaa\",\"b \r\nbb\",\"ccc\"\r\nz,y,x"),
            (Rows{{"aaa", "b \r\nbb", "ccc"}, {"z", "y", "x"}}));
  EXPECT_EQ(*Csv("a,b,c\n\"aaa\",\"b\"\"bb\",\"c,\"\"\"\n"),
            (Rows{{"aaa", "b\"bb", "c,\""}}));
  EXPECT_EQ(*Csv("a,b\nx,\n\"\",\" x \""), (Rows{{"x", ""}, {"", " x "}}));
  EXPECT_EQ(*Csv("a\n\nb"), (Rows{{""}, {"b"}}));
  EXPECT_EQ(*Csv("a,b\n\nx,\"\n\"\r\n\r\n\nu,v"),
            (Rows{{"x", "\n"}, {"u", "v"}}));
  EXPECT_THAT(*Csv("a,b\n"), IsEmpty());
}

TEST(TableReaderTest, KeepsQuotesOfTabSeparatedText) {
  EXPECT_EQ(*ReadRows("\xEF\xBB\xBF"
                      "a\tb\r\n\"x\t5\", y\r\n\"\"\t\n",
                      TableFormat::kTsv),
            (Rows{{"\"x", "5\", y"}, {"\"\"", ""}}));
}

// Spreadsheets write such rows below a table, also of another width.
TEST(TableReaderTest, PassesOverRowsOfEmptyFieldsAtTheEnd) {
  EXPECT_EQ(*Csv("a,b\nx,y\r\n\"\",\r\n\n,,,\n,"), (Rows{{"x", "y"}}));
  EXPECT_EQ(*ReadRows("a\tb\nx\t\n\t\n", TableFormat::kTsv), (Rows{{"x", ""}}));
  EXPECT_THAT(*Csv("a,b\n,\n,,\n"), IsEmpty());
}

// The numbers of rows behind them stay those of other programs.
TEST(TableReaderTest, KeepsRowsOfEmptyFieldsBetweenOthers) {
  EXPECT_EQ(*Csv("a,b\n,\n\n\"\",\nx,y\n,\n\"u\nv\",w\n,\n"),
            (Rows{{"", ""}, {"", ""}, {"x", "y"}, {"", ""}, {"u\nv", "w"}}));
  EXPECT_EQ(*ReadRows("a\tb\n\t\nx\t\n\t\n", TableFormat::kTsv),
            (Rows{{"", ""}, {"x", ""}}));
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"a,b\n,\nx\n", "f:3: the row has 1 field"},
           {"a,b\nx,y\n,,\nu,v\n", "f:3: the row has 3 fields"}}) {
    EXPECT_THAT(Message(Csv(text).status()), HasSubstr(message)) << text;
  }
}

TEST(TableReaderTest, SaysWhereATableIsWrong) {
  const std::string nul(1, '\0');
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "f is empty, but its first line should name its columns"},
           {"\xEF\xBB\xBF\r\n", "f is empty"},
           {"a,b\nx,y\n1,2,3\n",
            "f:3: the row has 3 fields, but the header names 2 columns: \"a\", "
            "\"b\""},
           {"a,b\n\nx,y\n\nx", "f:5: the row has 1 field"},
           {"a,b\n\"x\ny\",z\nx\n", "f:4: the row has 1 field"},
           {"a,b\nx,\"y\nz\n\nu,v\n",
            "f:2: the quote that begins field 2 is never closed"},
           {"a,b\nx,\"y\nz\"u\n",
            "f:3: behind the closing quote of field 2 should be a comma"},
           {"a,b\n5\" nail,x\n", "f:2: field 1 has a quote, so it should be"},
           {"a,b\nx\ry,z\n", "f:2: field 1 has a carriage return"},
           {"a,b,a\n", "f:1: the column \"a\" is there twice"},
           {"a,b\nx,y\n" + nul + ",z\n", "f:3: there should be no NUL bytes"},
           {"a,b\nx,y\nx,\xE9\n",
            "f:3: the line should be UTF-8, but is not; `iconv -f cp1252"},
           {"\xFF\xFE"
            "a",
            "f should be UTF-8, but begins as UTF-16 does; `iconv -f UTF-16 -t "
            "utf-8 FILE` converts it"},
           {"\x28\xb5\x2f\xfd", "f should be text, but is packed by zstd"}}) {
    EXPECT_THAT(Message(Csv(text).status()), HasSubstr(message)) << text;
  }
  EXPECT_THAT(Message(ReadRows("a\tb\nx\n", TableFormat::kTsv).status()),
              HasSubstr("f:2: the row has 1 field"));
}

TEST(TableReaderTest, SaysThatCarriageReturnsAloneEndNoLine) {
  std::string rows = "text\tlabel\r";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&rows, "document\tx\r");
  }
  for (const TableFormat format : {TableFormat::kTsv, TableFormat::kCsv}) {
    const std::string message = Message(ReadRows(rows, format).status());
    EXPECT_THAT(message, HasSubstr("f:1: the line ends with a carriage return "
                                   "alone"));
    EXPECT_LT(message.size(), 300u);
  }
  EXPECT_THAT(Message(Csv("\"text\",\"label\"\r\"a\",\"b\"\r\n").status()),
              HasSubstr("f:1: the line ends with a carriage return alone"));
}

TEST(TableReaderTest, SeparatesFieldsByTheDelimiter) {
  TableReader table = *TableReader::Open("id;text\n1;a, b\n2;\"c;\"\"d\"\n",
                                         TableFormat::kCsv, "f", ';');
  EXPECT_THAT(table.columns(), ElementsAre("id", "text"));
  EXPECT_THAT(**table.Next(), ElementsAre("1", "a, b"));
  EXPECT_THAT(**table.Next(), ElementsAre("2", "c;\"d"));
  TableReader tabs =
      *TableReader::Open("id\ttext\n1\t\"a\"\n", TableFormat::kCsv, "f", '\t');
  EXPECT_THAT(**tabs.Next(), ElementsAre("1", "a"));
}

TEST(TableReaderTest, TakesTheDelimiterOfALineForSpreadsheets) {
  const auto open = [](const std::string& text,
                       std::optional<char> delimiter = std::nullopt,
                       TableFormat format = TableFormat::kCsv) {
    return TableReader::Open(text, format, "f", delimiter);
  };
  const std::string rows = "sep=;\r\nid;text\r\n1;a, b\r\n";
  for (const std::string& text : {rows, "\xEF\xBB\xBF" + rows}) {
    for (const std::optional<char> delimiter :
         {std::optional<char>(), std::optional(';')}) {
      auto table = open(text, delimiter);
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_THAT(table->columns(), ElementsAre("id", "text"));
      EXPECT_THAT(**table->Next(), ElementsAre("1", "a, b"));
      EXPECT_EQ(table->Where(), "f:3");
    }
  }
  // An option says more than the line, and a TSV has tabs.
  EXPECT_THAT(open("sep=,\nid;text\n", ';')->columns(),
              ElementsAre("id", "text"));
  EXPECT_THAT(open("sep=\t\na,b\tc\n", {}, TableFormat::kTsv)->columns(),
              ElementsAre("a,b", "c"));
  EXPECT_THAT(Message(open("sep=;\na;b;a\n").status()),
              HasSubstr("f:2: the column \"a\" is there twice"));
  // Names of columns.
  EXPECT_THAT(open("sep=x,text\n")->columns(), ElementsAre("sep=x", "text"));
  EXPECT_THAT(open("sep=x\n")->columns(), ElementsAre("sep=x"));
}

// --- Records -----------------------------------------------------------------

ClassifyOptions Options(const nlohmann::json& json) {
  const auto options = ReadTaskOptions<Classify>(json, "c.json: classify");
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : ClassifyOptions();
}

// The records of a file with that name and text.
absl::StatusOr<std::vector<ClassifyRecord>> Read(const std::string& name,
                                                 const std::string& text,
                                                 const nlohmann::json& json) {
  TemporaryDirectory directory;
  const Classify classify(Options(json));
  ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> files,
                       classify.ReadFile(directory.Write(name, text), {}));
  std::vector<ClassifyRecord> records;
  for (const FileRecord& file : files) {
    // Without the directory.
    const std::string where = file.where.substr(file.where.rfind('/') + 1);
    ETC_ASSIGN_OR_RETURN(records.emplace_back(),
                         classify.ParseRecord(file.json, where));
  }
  return records;
}

TEST(ClassifyRecordsTest, AreTheSameFromTablesAndJson) {
  const std::string csv =
      "key,title,body,also,topic,other\n"
      "7,\"A, b\",\"say \"\"c\"\"\",d,food,x\n"
      "8,e,,,,y\n";
  const std::string tsv =
      "topic\talso\tbody\ttitle\tkey\n"
      "food\td\tsay \"c\"\tA, b\t7\n\t\t\te\t8\n";
  const std::string json =
      R"({"key": 7, "title": "A, b", "body": ["say \"c\""], "also": "d", "topic": "food"})"
      "\n"
      R"({"key": "8", "title": "e", "body": "", "also": null, "topic": null})";
  const nlohmann::json options = {{"text", {"title", "body"}},
                                  {"text_b", "also"},
                                  {"id", "key"},
                                  {"label", "topic"}};
  const std::string packed = GzipMember(csv);
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"d.csv", csv},
           {"d.CSV", csv},
           {"d.csv.gz", packed},
           {"d.tsv", tsv},
           {"d.jsonl", json},
           {"d.json", "[" + absl::StrReplaceAll(json, {{"\n", ","}}) + "]"}}) {
    SCOPED_TRACE(name);
    const auto records = Read(name, text, options);
    ASSERT_TRUE(records.ok()) << records.status();
    ASSERT_EQ(records->size(), 2u);
    const ClassifyRecord& first = records->front();
    EXPECT_EQ(first.id, "7");
    EXPECT_THAT(first.texts, ElementsAre("A, b", "say \"c\""));
    EXPECT_EQ(first.text_b, "d");
    EXPECT_THAT(first.answer->labels, ElementsAre("food"));
    const ClassifyRecord& second = records->back();
    EXPECT_EQ(second.id, "8");
    EXPECT_EQ(second.text_b, std::nullopt);
    EXPECT_EQ(second.answer, std::nullopt);
  }
}

TEST(ClassifyRecordsTest, AreNumberedWithoutIds) {
  for (const auto& [name, text] :
       {std::pair("d.tsv", "text\na\nb\n"),
        std::pair("d.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}")}) {
    const auto records = Read(name, text, nlohmann::json::object());
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_EQ(records->at(0).id, "0");
    EXPECT_EQ(records->at(1).id, "1");
  }
}

TEST(ClassifyRecordsTest, HaveSeveralLabelsOrANumber) {
  const nlohmann::json several = {{"type", "several"}};
  const auto labels = [&](const char* name, const std::string& text,
                          const nlohmann::json& options) {
    const auto records = Read(name, text, options);
    EXPECT_TRUE(records.ok()) << records.status();
    return records->front().answer->labels;
  };
  EXPECT_THAT(labels("d.csv", "text,label\nx,b; a;b\n", several),
              ElementsAre("a", "b"));
  EXPECT_THAT(labels("d.csv", "text,label\nx,\n", several), IsEmpty());
  EXPECT_THAT(labels("d.csv", "text,label\nx,b|a;c\n",
                     {{"type", "several"}, {"label_separator", "|"}}),
              ElementsAre("a;c", "b"));
  EXPECT_THAT(
      labels("d.jsonl", R"({"text": "x", "label": ["b", 1, true]})", several),
      ElementsAre("1", "b", "true"));
  // White space around labels is none of them, in a list as in a text.
  for (const char* value :
       {R"([" b", "a", "b\u00a0"])", R"(" b; a;b\u00a0")"}) {
    EXPECT_THAT(
        labels("d.jsonl",
               absl::StrCat(R"({"text": "x", "label": )", value, "}"), several),
        ElementsAre("a", "b"))
        << value;
  }
  const nlohmann::json number = {{"type", "number"}};
  for (const auto& [name, text] :
       {std::pair("d.csv", "text,label\nx, -2.5e1 \n"),
        std::pair("d.jsonl", R"({"text": "x", "label": -25})")}) {
    EXPECT_EQ(Read(name, text, number)->front().answer->number, -25);
  }
  EXPECT_EQ(Read("d.csv", "text,label\nx,\n", number)->front().answer,
            std::nullopt);
}

TEST(ClassifyRecordsTest, ReadADefaultFieldOnlyForOneThing) {
  for (const auto& [name, text] :
       {std::pair("d.csv", "text,text_b,id\na,b,7\n"),
        std::pair("d.jsonl", R"({"text": "a", "text_b": "b", "id": "7"})")}) {
    const auto pair = Read(name, text, nlohmann::json::object());
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ(pair->front().text_b, "b");
    const auto texts = Read(name, text, {{"text", {"text", "text_b"}}});
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_THAT(texts->front().texts, ElementsAre("a", "b"));
    EXPECT_EQ(texts->front().text_b, std::nullopt);
    EXPECT_TRUE(texts->front().has_id);
    const auto numbered = Read(name, text, {{"label", "id"}});
    ASSERT_TRUE(numbered.ok()) << numbered.status();
    EXPECT_THAT(numbered->front().answer->labels, ElementsAre("7"));
    EXPECT_FALSE(numbered->front().has_id);
    EXPECT_EQ(numbered->front().id, "0");
  }
}

TEST(ClassifyRecordsTest, HaveNoSecondTextWhereNoneIsSaidToHaveOne) {
  const nlohmann::json single = {{"text_b", ""}};
  for (const auto& [name, text] :
       {std::pair("d.csv", "text,text_b\na,b\n"),
        std::pair("d.jsonl", R"({"text": "a", "text_b": "b"})")}) {
    EXPECT_THAT(Message(Read(name, text, single).status()),
                HasSubstr("text_b should be absent: classify.text_b is \"\""));
  }
  for (const auto& [name, text] :
       {std::pair("d.csv", "text,text_b\na,\n"),
        std::pair("d.csv", "text\na\n"),
        std::pair("d.jsonl", R"({"text": "a", "text_b": null})")}) {
    EXPECT_TRUE(Read(name, text, single).ok()) << text;
  }
}

TEST(ClassifyRecordsTest, MayHaveNullBesideOtherTexts) {
  const nlohmann::json two = {{"text", {"title", "text"}}};
  const auto records = Read("d.jsonl", R"({"title": null, "text": "b"})", two);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(records->front().texts, ElementsAre("b"));
  EXPECT_THAT(
      Message(
          Read("d.jsonl", R"({"title": null, "text": null})", two).status()),
      HasSubstr("title and text should have a text, but has none"));
}

TEST(ClassifyRecordsTest, HaveNoLabelOfWhiteSpaceAlone) {
  const std::string blank = " \u00a0\u3000";
  const auto answer = [&](const char* type) {
    const auto records =
        Read("d.csv", "text,label\nx," + blank + "\n", {{"type", type}});
    EXPECT_TRUE(records.ok()) << records.status();
    return records->front().answer;
  };
  EXPECT_EQ(answer("one"), std::nullopt);
  EXPECT_EQ(answer("number"), std::nullopt);
  EXPECT_THAT(answer("several")->labels, IsEmpty());
  EXPECT_THAT(
      Read("d.csv", "text,label\nx,b;\u00a0a\u3000\n", {{"type", "several"}})
          ->front()
          .answer->labels,
      ElementsAre("a", "b"));
  EXPECT_THAT(
      Message(Read("d.jsonl",
                   R"({"text": "x", "label": ["a", ")" + blank + R"("]})",
                   {{"type", "several"}})
                  .status()),
      HasSubstr("record 0.label should be a list of labels"));
}

TEST(ClassifyRecordsTest, SayWhatIsWrongWithThem) {
  struct Case {
    const char* name;
    std::string text;
    nlohmann::json options;
    std::string message;
  };
  const nlohmann::json none = nlohmann::json::object();
  for (const auto& [name, text, options, message] : std::vector<Case>{
           {"d.txt", "a", none, "d.txt should end in .csv, .tsv, .jsonl or"},
           {"d.csv", "txt,label\nx,y\n", none,
            "has no column \"text\"; its columns are \"txt\", \"label\""},
           {"d.csv",
            "text,label\nx,y\n",
            {{"id", "key"}},
            "has no column \"key\""},
           {"d.csv",
            "text,label\nx,y\n",
            {{"text_b", "b"}},
            "has no column \"b\""},
           {"d.csv", "text,label\nx,y\n \t,y\n", none,
            "d.csv:3: text should have a text, but has none"},
           {"d.csv", "text,label\n\u00a0\u3000,y\n", none,
            "d.csv:2: text should have a text, but has none"},
           {"d.jsonl",
            R"({"text": "x"})",
            {{"text_b", "b"}},
            "d.jsonl: record 0.b is missing"},
           {"d.csv",
            "text,label\nx,high\n",
            {{"type", "number"}},
            "d.csv:2: label should be a number, but is \"high\""},
           {"d.csv",
            "text,label\nx,inf\n",
            {{"type", "number"}},
            "d.csv:2: label should be a number"},
           {"d.jsonl", R"({"text": 5})", none,
            "d.jsonl: record 0.text should be a string or an array"},
           {"d.jsonl", "{}", none, "d.jsonl: record 0.text is missing"},
           {"d.jsonl", R"({"text": "x", "id": []})", none,
            "record 0.id should be a string or a number"},
           {"d.jsonl", R"({"text": "x", "label": ["a"]})", none,
            "record 0.label should be a label"},
           {"d.jsonl",
            R"({"text": "x", "label": [[]]})",
            {{"type", "several"}},
            "record 0.label should be a list of labels"},
           {"d.jsonl",
            R"({"text": "x", "label": true})",
            {{"type", "number"}},
            "record 0.label should be a number"},
           {"d.jsonl", "{\"text\": \"\xE9\"}", none, "d.jsonl"}}) {
    EXPECT_THAT(Message(Read(name, text, options).status()),
                HasSubstr(message));
  }
}

TEST(ClassifyOptionsTest, SayWhatIsWrongWithThem) {
  const auto message = [](const nlohmann::json& json) {
    return Message(
        ReadTaskOptions<Classify>(json, "c.json: classify").status());
  };
  for (const auto& [json, words] :
       std::vector<std::pair<nlohmann::json, std::string>>{
           {{{"format", "xls"}}, "format should be \"json\" or \"csv\" or"},
           {{{"delimiter", ", "}}, "delimiter should be one character"},
           {{{"delimiter", "x"}}, "delimiter should be one character"},
           {{{"type", "two"}}, "type should be \"one\" or \"several\" or"},
           {{{"text", nlohmann::json::array()}}, "text should name at least"},
           {{{"text", {"a", "a"}}},
            "text should name at least one field, each"},
           {{{"labels", {"a"}}}, "labels should name at least two labels"},
           {{{"labels", {"a", "a"}}}, "labels should name at least two"},
           {{{"labels", {"a", "b", ""}}}, "each once, and none empty"},
           {{{"labels", {"a", "b", " "}}}, "each once, and none empty"},
           {{{"text", {"text", "label"}}},
            "c.json: classify.text should name another field than "
            "classify.label, but both name \"label\""},
           {{{"text_b", "label"}},
            "text_b should name another field than classify.label, but"},
           {{{"text_b", "text"}},
            "text_b should name another field than classify.text, but"},
           {{{"id", "label"}},
            "id should name another field than classify.label, but"},
           {{{"id", "text"}},
            "id should name another field than classify.text, but"},
           {{{"id", "key"}, {"text_b", "key"}},
            "id should name another field than classify.text_b, but"},
           {{{"label", "text"}},
            "text should name another field than classify.label, but"},
           {{{"format", "tsv"}, {"delimiter", ";"}},
            "delimiter should be absent unless format is \"csv\" or absent"},
           {{{"format", "json"}, {"delimiter", ";"}},
            "delimiter should be absent unless format is"},
           {{{"threshold", 0.3}},
            "threshold should be absent unless type is \"several\""},
           {{{"threshold", 0.3}, {"type", "number"}},
            "threshold should be absent unless type is \"several\""},
           {{{"label_separator", ","}},
            "label_separator should be absent unless type is \"several\""},
           {{{"mean", 1}}, "mean should be absent unless type is \"number\""},
           {{{"deviation", 1}, {"type", "several"}},
            "deviation should be absent unless type is \"number\""},
           {{{"labels", {"a", "b"}}, {"type", "number"}}, "labels should be"},
           {{{"class_weights", 2}}, "class_weights should be \"balanced\""},
           {{{"class_weights", "balanced"}, {"type", "several"}},
            "class_weights should be absent unless type is \"one\""},
           {{{"labels", {"a", "b"}}, {"class_weights", {{"c", 1}}}},
            "class_weights.c is the weight of no label"},
           {{{"class_weights", {{"c", -1}}}}, "class_weights.c should be a"},
           {{{"threshold", 1}, {"type", "several"}},
            "threshold should be in (0, 1), but is 1"},
           {{{"label_separator", ""}, {"type", "several"}},
            "label_separator should not be empty"},
           {{{"deviation", 0}, {"type", "number"}},
            "deviation should be more than 0"},
           {{{"lable", "x"}}, "did you mean \"label\"?"}}) {
    EXPECT_THAT(message(json), HasSubstr(words)) << json;
  }
}

TEST(ClassifyRecordTest, NamesTheDelimiterThatATableSeemsToHave) {
  const nlohmann::json none = nlohmann::json::object();
  for (const auto& [text, advice] :
       std::vector<std::pair<std::string, std::string>>{
           {"text;label\na, b;x\n",
            "semicolons seem to separate them: classify.delimiter \";\""},
           {"\"text\";\"label\"\n\"a\";\"x\"\n",
            "semicolons seem to separate them: classify.delimiter \";\""},
           {"text\tlabel\na\tx\n",
            "tabs seem to separate them: classify.delimiter \"\\t\""},
           {"text|label\na|x\n", "classify.delimiter \"|\""}}) {
    EXPECT_THAT(Message(Read("f.csv", text, none).status()), HasSubstr(advice))
        << text;
  }
  EXPECT_THAT(Message(Read("f.tsv", "text,label\na,x\n", none).status()),
              HasSubstr("classify.format \"csv\" with classify.delimiter "
                        "\",\""));
  const auto records =
      Read("f.csv", "text;label\na, b;x\n", {{"delimiter", ";"}});
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(records->front().texts, ElementsAre("a, b"));
  // Not where the column is just another.
  EXPECT_THAT(Message(Read("f.csv", "body,label\na,x\n", none).status()),
              Not(HasSubstr("seem")));
  // The message names only a few of many columns.
  std::string wide = "c0";
  for (int i = 1; i < 2000; ++i) {
    absl::StrAppend(&wide, ",c", i);
  }
  const std::string message =
      Message(Read("f.csv", wide + "\n", none).status());
  EXPECT_THAT(message, HasSubstr("\"c0\", \"c1\""));
  EXPECT_THAT(message, HasSubstr(" others"));
  EXPECT_LT(message.size(), 500u);
}

// --- Summaries of data -------------------------------------------------------

TEST(ClassifyDataTest, IsDescribedByItsLabels) {
  Notices notices;
  const auto lines = [&notices](const std::string& train,
                                const std::string& dev,
                                const nlohmann::json& json) {
    TemporaryDirectory directory;
    const Classify classify(Options(json));
    notices = classify.DescribeRecords(
        *classify.ReadFile(directory.Write("train.csv", train), {}),
        *classify.ReadFile(directory.Write("dev.csv", dev), {}));
    return notices.messages;
  };
  EXPECT_THAT(lines("text,label\na,x\nb,y\nc,x\n", "text,label\nd,x\ne,\n",
                    {{"labels", {"x", "y", "z"}}}),
              ElementsAre("training: 3 documents, 2 labels: \"x\" 2, \"y\" 1",
                          "evaluation: 2 documents, 1 without an answer, 1 "
                          "label: \"x\" 1 (always \"x\": accuracy 1.0000)"));
  EXPECT_THAT(notices.warnings,
              ElementsAre("no training document has the label \"z\""));
  EXPECT_EQ(lines("text,label\na,Good\nb,good\nc,\" GOOD\"\nd,bad\ne,b ad\n",
                  "text,label\na,bad\nf,bad\n",
                  {{"labels", {"Good", "good", " GOOD", "bad", "b ad"}}})
                .size(),
            2u);
  EXPECT_THAT(
      notices.warnings,
      AllOf(Contains("the labels \" GOOD\" and \"Good\" and \"good\" differ by "
                     "case or white space only, and are learnt as different "
                     "ones"),
            Contains(StartsWith("1 of the 2 documents for evaluation have the "
                                "text of a training document"))));
  EXPECT_THAT(
      lines("text,label\na,1\nb,2.5\n", "text\nc\n", {{"type", "number"}}),
      ElementsAre("training: 2 documents, numbers from 1 to 2.5",
                  "evaluation: 1 document, 1 without an answer"));
  EXPECT_THAT(
      lines("text,text_b,label\na,b,x\nc,d,y\n",
            "text,text_b,label\ne,f,x\ng,,y\n", {{"labels", {"x", "y"}}}),
      ElementsAre("training: 2 pairs, 2 labels: \"x\" 1, \"y\" 1",
                  "evaluation: 2 documents, 1 pair among them, 2 "
                  "labels: \"x\" 1, \"y\" 1 (always \"x\": accuracy "
                  "0.5000)"));
}

// --- What options take from the training data --------------------------------

class ClassifyCompletionTest : public testing::Test {
 protected:
  absl::StatusOr<nlohmann::json> Complete(nlohmann::json json) {
    const Classify classify(Options(json));
    DataConfig data = {.on_bad_record = on_bad_record_};
    data.train = {directory_.Write("train.csv", train_)};
    data.dev_fraction = dev_fraction_;
    ETC_RETURN_IF_ERROR(classify.CompleteOptions(data, &json));
    return json;
  }

  // `row` so many times.
  static std::string RepeatedRow(const std::string& row, int times) {
    std::string rows;
    for (int i = 0; i < times; ++i) {
      rows += row;
    }
    return rows;
  }

  TemporaryDirectory directory_;
  std::string on_bad_record_ = "error";
  double dev_fraction_ = 0;
  std::string train_ = "text,label\nx,b\ny,a\nz,b\nu,b\n";
};

TEST_F(ClassifyCompletionTest, CollectsLabelsAndWeights) {
  EXPECT_EQ(*Complete({{"class_weights", "balanced"}}),
            (nlohmann::json{{"labels", {"a", "b"}},
                            {"text_b", ""},
                            {"class_weights", {{"a", 2.0}, {"b", 4.0 / 6}}}}));
  const nlohmann::json listed = {{"labels", {"b", "a"}}, {"text_b", ""}};
  EXPECT_EQ(*Complete(listed), listed);
  // A second time, as when a run is resumed, it is as it was.
  EXPECT_EQ(*Complete(*Complete({{"class_weights", "balanced"}})),
            *Complete({{"class_weights", "balanced"}}));
  train_ = "text,label\nx,b;c\ny,\n";
  EXPECT_EQ((*Complete({{"type", "several"}}))["labels"],
            (nlohmann::json{"b", "c"}));
}

TEST_F(ClassifyCompletionTest, MeasuresNumbers) {
  train_ = "text,label\nx,10\ny,30\n";
  const auto json = Complete({{"type", "number"}});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["mean"], 20);
  EXPECT_EQ((*json)["deviation"], 10);
  const nlohmann::json given = {
      {"type", "number"}, {"mean", 0}, {"deviation", 1}, {"text_b", ""}};
  EXPECT_EQ(*Complete(given), given);
}

// Squares of these numbers are beyond the largest double, or 0.
TEST_F(ClassifyCompletionTest, MeasuresTheLargestAndTheLeastNumbers) {
  const auto moments = [this](const char* first, const char* second) {
    train_ = absl::StrCat("text,label\nx,", first, "\ny,", second, "\n");
    const auto json = Complete({{"type", "number"}});
    EXPECT_TRUE(json.ok()) << json.status();
    return std::pair((*json)["mean"].get<double>(),
                     (*json)["deviation"].get<double>());
  };
  EXPECT_THAT(moments("1e200", "-1e200"), Pair(0, DoubleEq(1e200)));
  EXPECT_THAT(moments("1.6e308", "1.7e308"),
              Pair(DoubleEq(1.65e308), DoubleNear(5e306, 1e293)));
  EXPECT_THAT(moments("0", "1e-200"), Pair(DoubleEq(5e-201), DoubleEq(5e-201)));
}

TEST_F(ClassifyCompletionTest, HasADeviationOfOneWhereNumbersAreEqual) {
  // Their mean by a sum is another number.
  train_ = absl::StrCat("text,label\n", RepeatedRow("x,0.1\n", 8));
  const auto json = Complete({{"type", "number"}});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["mean"], 0.1);
  EXPECT_EQ((*json)["deviation"], 1);
}

TEST_F(ClassifyCompletionTest, LeavesOutWhatIsHeldOut) {
  dev_fraction_ = 0.25;
  train_ = "text,label\n";
  for (int i = 0; i < 16; ++i) {
    absl::StrAppend(&train_, "x,", i * i, "\n");
  }
  const std::vector<bool> is_held_out =
      ChooseHeldOut(std::vector<std::string>(16), {.fraction = dev_fraction_});
  double sum = 0;
  for (int i = 0; i < 16; ++i) {
    sum += is_held_out[static_cast<size_t>(i)] ? 0 : i * i;
  }
  const auto numbers = Complete({{"type", "number"}});
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ((*numbers)["mean"], sum / 12);

  // 3 of 9 documents and 2 of 7 stay.
  dev_fraction_ = 0.7;
  train_ = absl::StrCat("text,label\n", RepeatedRow("x,a\n", 9),
                        RepeatedRow("x,b\n", 7));
  EXPECT_EQ(
      *Complete({{"class_weights", "balanced"}}),
      (nlohmann::json{{"labels", {"a", "b"}},
                      {"text_b", ""},
                      {"class_weights", {{"a", 5.0 / 6}, {"b", 5.0 / 4}}}}));
}

TEST_F(ClassifyCompletionTest, FindsOutWhetherRecordsArePairs) {
  const auto text_b = [this](const std::string& rows,
                             const nlohmann::json& json) {
    train_ = rows;
    const auto completed = Complete(json);
    EXPECT_TRUE(completed.ok()) << completed.status();
    return completed->value("text_b", "not noted");
  };
  const nlohmann::json none = nlohmann::json::object();
  EXPECT_EQ(text_b("text,text_b,label\nx,u,a\ny,,b\n", none), "text_b");
  EXPECT_EQ(text_b("text,label\nx,a\ny,b\n", none), "");
  EXPECT_EQ(text_b("text,text_b,label\nx,,a\ny,,b\n", none), "");
  // An option has the last word, and a field may be another one's.
  EXPECT_EQ(text_b("text,also,label\nx,u,a\ny,v,b\n", {{"text_b", "also"}}),
            "also");
  EXPECT_EQ(text_b("text,text_b,label\nx,u,a\ny,v,b\n",
                   {{"text", {"text", "text_b"}}}),
            "not noted");
  // Some lines alone have the field.
  EXPECT_EQ(text_b(R"({"text": "x", "text_b": "u", "label": "a"}
{"text": "y", "label": "b"}
)",
                   {{"format", "json"}}),
            "not noted");
}

TEST(ClassifyStratumTest, IsTheFirstOfSeveralLabels) {
  const Classify classify(Options({{"type", "several"}}));
  Classify::Record record;
  EXPECT_EQ(classify.Stratum(record), "");
  record.answer.emplace();
  EXPECT_EQ(classify.Stratum(record), "");
  for (const char* second : {"b", "c"}) {
    record.answer->labels = {"a", second};
    EXPECT_EQ(classify.Stratum(record), "a");
  }
}

TEST_F(ClassifyCompletionTest, SaysWhatIsWrongWithTheData) {
  const nlohmann::json none = nlohmann::json::object();
  EXPECT_THAT(
      Message(Complete({{"labels", {"a", "c"}}}).status()),
      HasSubstr(
          "train.csv:2: label should be one of \"a\", \"c\", but is \"b\""));
  EXPECT_THAT(Message(Complete({{"labels", {"a", "b", "c"}},
                                {"class_weights", "balanced"}})
                          .status()),
              HasSubstr("need a document of each label, but there is none of "
                        "c"));
  EXPECT_THAT(Message(Complete({{"label", "topic"}}).status()),
              AllOf(HasSubstr("train.csv has no column \"topic\""),
                    HasSubstr("\"text\", \"label\"")));
  train_ = "text,label\nx,b\ny,\n";
  EXPECT_THAT(Message(Complete(none).status()), HasSubstr("has only b"));
  train_ = "text,label\n";
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&train_, "x,label ", i, "\n");
  }
  EXPECT_THAT(Message(Complete(none).status()),
              HasSubstr("has 30 different labels in 30 documents"));
  train_ = "text,label\nx,\n";
  EXPECT_THAT(Message(Complete({{"type", "number"}}).status()),
              HasSubstr("should have a number, but no record has one"));
}

TEST_F(ClassifyCompletionTest, SkipsBadRecordsWhereTheRunDoes) {
  train_ = "text,label\nx,b\n,c\ny,a\n";
  EXPECT_THAT(Message(Complete(nlohmann::json::object()).status()),
              HasSubstr("train.csv:3: text should have a text"));
  on_bad_record_ = "skip";
  EXPECT_EQ((*Complete(nlohmann::json::object()))["labels"],
            (nlohmann::json{"a", "b"}));
}

// --- The bundled sample ------------------------------------------------------

std::string SamplePath(const std::string& name) {
  return absl::StrCat(ETC_SOURCE_DIR, "/tasks/classify/sample/", name);
}

// Records of the sample.
std::vector<ClassifyRecord> ReadSample(const std::string& name) {
  const Classify classify(
      Options({{"text", {"title", "text"}}, {"label", "outcome"}}));
  const auto files = classify.ReadFile(SamplePath(name), {});
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<ClassifyRecord> records;
  for (const FileRecord& file : *files) {
    const auto record = classify.ParseRecord(file.json, file.where);
    EXPECT_TRUE(record.ok()) << record.status();
    records.push_back(*record);
  }
  return records;
}

TEST(ClassifySampleTest, NeedsTwoPlacesThatAreFarApart) {
  const auto tokenizer = LoadTokenizer(SamplePath("vocab.txt"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(ReadSample("train.csv.gz").size(), 900u);
  const std::vector<ClassifyRecord> dev = ReadSample("dev.csv.gz");
  ASSERT_EQ(dev.size(), 80u);
  // Documents by who won at court, whether that was annulled, the outcome.
  std::map<std::string, int> documents;
  for (const ClassifyRecord& record : dev) {
    const std::string& text = record.texts.at(1);
    const size_t appeal = text.find("On appeal the ruling was ");
    ASSERT_NE(appeal, std::string::npos) << record.id;
    EXPECT_GT((*tokenizer)->Encode(text.substr(0, appeal)).size(), 1500u);
    EXPECT_LT((*tokenizer)->Encode(text).size(), 2030u);
    for (const Token& token : (*tokenizer)->Encode(text)) {
      EXPECT_NE((*tokenizer)->Piece(token.id), "[UNK]") << record.id;
    }
    const bool is_owner =
        absl::StartsWith(text, "The court ruled for the owner");
    const bool is_annulled = text.find("annulled", appeal) != std::string::npos;
    ++documents[absl::StrCat(is_owner, is_annulled,
                             record.answer->labels.at(0))];
  }
  EXPECT_THAT(documents,
              ElementsAre(Pair("00tenant", 20), Pair("01retrial", 20),
                          Pair("10owner", 20), Pair("11retrial", 20)));
}

// --- Predictions and scores --------------------------------------------------

TEST(ClassifyPredictionTest, IsDecodedByType) {
  ClassifyOptions options = Options({{"labels", {"no", "yes", "so"}}});
  const auto one = DecodeClassify({0.F, 2.F, 2.F}, options);
  EXPECT_THAT(one.answer.labels, ElementsAre("yes"));
  // 1 / (1 + 2 e^2)
  EXPECT_THAT(one.probabilities,
              ElementsAre(Pair("no", 0.063379), Pair("yes", 0.468311),
                          Pair("so", 0.468311)));
  options = Options(
      {{"type", "several"}, {"labels", {"yes", "no"}}, {"threshold", 0.25}});
  const auto several = DecodeClassify({0.F, -1.F}, options);
  EXPECT_THAT(several.answer.labels, ElementsAre("no", "yes"));
  EXPECT_THAT(several.probabilities,
              ElementsAre(Pair("yes", 0.5), Pair("no", 0.268941)));
  EXPECT_THAT(DecodeClassify({-2.F, 1e30F}, options).answer.labels,
              ElementsAre("no"));
  // A logit of 0 is a probability of 0.5: the least one that is enough.
  options = Options(
      {{"type", "several"}, {"labels", {"yes", "no"}}, {"threshold", 0.5}});
  EXPECT_THAT(DecodeClassify({0.F, -0.01F}, options).answer.labels,
              ElementsAre("yes"));
  options = Options({{"type", "number"}, {"mean", 3}, {"deviation", 0.1}});
  EXPECT_EQ(DecodeClassify({2.F}, options).answer.number, 3.2);
  // Numbers of 15 digits beside the largest double, which rounds up.
  options =
      Options({{"type", "number"}, {"mean", 1.5e308}, {"deviation", 1.5e300}});
  for (const float output : {1e30F, -1e30F}) {
    EXPECT_TRUE(std::isfinite(DecodeClassify({output}, options).answer.number));
  }
}

// The output is a float in units of the deviation, to which a large mean, as of
// Unix times, adds digits.
TEST(ClassifyPredictionTest, KeepsTheDigitsOfNumbersBesideALargeMean) {
  const Classify classify(
      Options({{"type", "number"}, {"mean", 1.7e9}, {"deviation", 50}}));
  ById<ClassifyPrediction> predictions;
  for (const auto& [output, number] :
       {std::pair(0.5F, 1700000025.0), std::pair(0.75F, 1700000037.5),
        std::pair(1e-3F, 1700000000.05)}) {
    predictions.emplace_back(absl::StrCat(predictions.size()),
                             DecodeClassify({output}, classify.options()));
    EXPECT_EQ(predictions.back().second.answer.number, number);
  }
  const std::string text = classify.FileContents({.predictions = predictions});
  EXPECT_THAT(text, HasSubstr("\"value\":1700000025.0}"));
  EXPECT_THAT(text, HasSubstr("\"value\":1700000000.05}"));
  TemporaryDirectory directory;
  const auto read = classify.ReadPredictions(directory.Write("p.jsonl", text));
  ASSERT_TRUE(read.ok()) << read.status();
  for (size_t i = 0; i < predictions.size(); ++i) {
    EXPECT_EQ(read->at(i).second.answer, predictions[i].second.answer);
  }
}

TEST(ClassifyPredictionTest, IsWrittenAndReadBack) {
  const ById<ClassifyPrediction> predictions = {
      {"a", {{.labels = {"food"}}, {{"food", 0.75}, {"\u00e9", 0.25}}}},
      {"b", {{.type = ClassifyType::kSeveral, .labels = {"x", "y"}}, {}}},
      {"c", {{.type = ClassifyType::kNumber, .number = -2.5}, {}}}};
  const std::string text =
      Classify().FileContents({.predictions = predictions});
  EXPECT_EQ(
      text,
      R"({"id":"a","label":"food","probabilities":{"food":0.75,"\u00e9":0.25}}
{"id":"b","labels":["x","y"],"probabilities":{}}
{"id":"c","value":-2.5}
)");
  TemporaryDirectory directory;
  const auto read =
      Classify().ReadPredictions(directory.Write("p.jsonl", text));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), predictions.size());
  for (size_t i = 0; i < predictions.size(); ++i) {
    EXPECT_EQ((*read)[i].first, predictions[i].first);
    EXPECT_EQ((*read)[i].second.answer, predictions[i].second.answer);
  }
  EXPECT_EQ(Classify().FileContents({.predictions = *read}), text);
}

TEST(ClassifyPredictionTest, KeepsItsProbabilitiesInTheOrderOfTheLabels) {
  const std::string line =
      R"({"id":"a","label":"yes","probabilities":{"yes":0.75,"no":0.25}})";
  TemporaryDirectory directory;
  const Classify classify(Options({{"labels", {"yes", "no"}}}));
  const auto read =
      classify.ReadPredictions(directory.Write("p.jsonl", line + "\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(classify.PredictionJson("a", read->front().second), line);
  for (const char* probabilities : {"[0.5]", R"({"yes": "much"})"}) {
    EXPECT_THAT(
        Message(classify
                    .ReadPredictions(directory.Write(
                        "bad.jsonl", absl::StrCat(R"({"id":"a","label":"no",)",
                                                  R"("probabilities":)",
                                                  probabilities, "}")))
                    .status()),
        HasSubstr("record 0.probabilities should"));
  }
}

TEST(ClassifyPredictionTest, SaysWhatWasTruncated) {
  const ById<ClassifyPrediction> predictions = {
      {"a", {{.labels = {"x"}}, {{"x", 1.0}}}},
      {"b", {{.labels = {"x"}}, {{"x", 1.0}}}}};
  const std::string text = Classify().FileContents(
      {.predictions = predictions,
       .truncated = {{}, {TruncatedPart{.unit = "pieces", .count = 854}}}});
  EXPECT_EQ(text,
            R"({"id":"a","label":"x","probabilities":{"x":1.0}}
{"id":"b","label":"x","probabilities":{"x":1.0},"truncated":{"pieces":854}}
)");
  TemporaryDirectory directory;
  EXPECT_TRUE(
      Classify().ReadPredictions(directory.Write("p.jsonl", text)).ok());
}

// The labels stand in the file as another threshold chose them.
TEST(ClassifyPredictionTest, IsChosenAnewByTheThresholdOfTheOptions) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "p.jsonl",
      R"({"id":"a","labels":[],"probabilities":{"y":0.3,"x":0.4,"z":0.2}}
{"id":"b","labels":["w"]}
)");
  const auto labels = [&](nlohmann::json options) {
    options["type"] = "several";
    const auto read = Classify(Options(options)).ReadPredictions(path);
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->at(1).second.answer.labels, ElementsAre("w"));
    return read->at(0).second.answer.labels;
  };
  EXPECT_THAT(labels({{"threshold", 0.3}}), ElementsAre("x", "y"));
  EXPECT_THAT(labels(nlohmann::json::object()), IsEmpty());
}

TEST(ClassifyPredictionTest, CountsALabelOnce) {
  TemporaryDirectory directory;
  const auto scores = ScoreFiles(
      Classify(Options({{"type", "several"}})),
      {.gold = directory.Write(
           "gold.jsonl", R"({"id": "a", "text": "t", "label": ["x", "y"]})"),
       .predictions = directory.Write(
           "p.jsonl", R"({"id": "a", "labels": ["z", "x", "z"]})")});
  ASSERT_TRUE(scores.ok()) << scores.status();
  // TP 1, FP 1, FN 1.
  EXPECT_THAT(*scores, Contains(Pair("micro_f1", 0.5)));
}

ById<ClassifyPrediction> Predicted(const ById<ClassifyAnswer>& answers) {
  ById<ClassifyPrediction> predictions;
  for (const auto& [id, answer] : answers) {
    predictions.push_back({id, {.answer = answer}});
  }
  return predictions;
}

ById<ClassifyAnswer> Labels(const std::vector<std::string>& labels) {
  ById<ClassifyAnswer> answers;
  for (const std::string& label : labels) {
    answers.push_back({absl::StrCat(answers.size()), {.labels = {label}}});
  }
  return answers;
}

TEST(ClassifyScoreTest, OfOneLabelIsAccuracyF1AndMatthews) {
  // no: P 1/2, R 1, F1 2/3; yes: P 1, R 1/2, F1 2/3; maybe: only predicted, 0.
  const Scores scores =
      ScoreClassify(Labels({"no", "yes", "yes", "yes", "yes"}),
                    Predicted(Labels({"no", "no", "yes", "yes", "maybe"})),
                    ClassifyType::kOne);
  // c = 3, s = 5; p = 2, 2, 1; t = 1, 4, 0: (15 - 10) / sqrt(16 * 8)
  EXPECT_THAT(
      scores.metrics,
      ElementsAre(Pair("accuracy", 0.6), Pair("macro_f1", DoubleEq(4.0 / 9)),
                  Pair("micro_f1", DoubleEq(0.6)),
                  Pair("mcc", DoubleEq(5 / std::sqrt(128)))));
  EXPECT_THAT(
      scores.diagnostics,
      ElementsAre(
          Pair("precision[maybe]", 0.0), Pair("recall[maybe]", 0.0),
          Pair("f1[maybe]", 0.0), Pair("support[maybe]", 0.0),
          Pair("precision[no]", 0.5), Pair("recall[no]", 1.0),
          Pair("f1[no]", DoubleEq(2.0 / 3)), Pair("support[no]", 1.0),
          Pair("precision[yes]", 1.0), Pair("recall[yes]", 0.5),
          Pair("f1[yes]", DoubleEq(2.0 / 3)), Pair("support[yes]", 4.0),
          Pair("confusion[no,no]", 1.0), Pair("confusion[yes,maybe]", 1.0),
          Pair("confusion[yes,no]", 1.0), Pair("confusion[yes,yes]", 2.0)));
}

TEST(ClassifyScoreTest, OfSeveralLabelsIsF1AndExactMatch) {
  const auto answers = [](const std::vector<std::vector<std::string>>& all) {
    ById<ClassifyAnswer> made;
    for (const auto& labels : all) {
      made.push_back({absl::StrCat(made.size()),
                      {.type = ClassifyType::kSeveral, .labels = labels}});
    }
    return made;
  };
  // a: TP 1, FN 1; b: TP 1, FP 1; c: FP 1.
  const Scores scores = ScoreClassify(
      answers({{"a", "b"}, {"a"}, {}}),
      Predicted(answers({{"a", "b"}, {"b", "c"}, {}})), ClassifyType::kSeveral);
  EXPECT_THAT(scores.metrics,
              ElementsAre(Pair("micro_f1", DoubleEq(4.0 / 7)),
                          Pair("macro_f1", DoubleEq(4.0 / 9)),
                          Pair("exact_match", DoubleEq(2.0 / 3))));
  EXPECT_THAT(scores.diagnostics, Contains(Pair("support[a]", 2.0)));
}

// With the largest probability F1 is 2 * 1 / (1 + 3), with two 2 * 1 / (2 + 3),
// with four, as two are equal, 2 * 3 / (4 + 3), with all 2 * 3 / (6 + 3).
TEST(ClassifyScoreTest, OfSeveralLabelsFindsTheBestThreshold) {
  const ById<ClassifyAnswer> gold = {
      {"0", {.type = ClassifyType::kSeveral, .labels = {"a", "b"}}},
      {"1", {.type = ClassifyType::kSeveral, .labels = {"b"}}}};
  ById<ClassifyPrediction> predictions = {
      {"0",
       {{.type = ClassifyType::kSeveral, .labels = {"a"}},
        {{"a", 1.0}, {"b", 0.4}, {"c", 0.3}}}},
      {"1",
       {{.type = ClassifyType::kSeveral},
        {{"a", 0.45}, {"b", 0.4}, {"c", 0.1}}}}};
  const Metrics found =
      ScoreClassify(gold, predictions, ClassifyType::kSeveral).metrics;
  EXPECT_THAT(found, Contains(Pair("micro_f1", DoubleEq(0.5))));
  EXPECT_THAT(found, Contains(Pair("best_micro_f1", DoubleEq(6.0 / 7))));
  EXPECT_THAT(found, Contains(Pair("best_micro_f1_thresh", DoubleEq(0.35))));
  // Not of files that have none.
  predictions.back().second.probabilities.clear();
  EXPECT_THAT(ScoreClassify(gold, predictions, ClassifyType::kSeveral).metrics,
              Not(Contains(Pair("best_micro_f1", testing::_))));
}

TEST(ClassifyScoreTest, ComesWithARemarkOnOneAnswerForAll) {
  ById<ClassifyAnswer> gold = Labels({"a", "b"});
  const auto remark = [&gold](const ById<ClassifyPrediction>& predictions,
                              ClassifyType type) {
    return ClassifyRemark(gold, predictions, type);
  };
  const std::string same = "all 2 predictions are the same";
  EXPECT_EQ(remark(Predicted(Labels({"a", "a"})), ClassifyType::kOne), same);
  EXPECT_EQ(remark(Predicted(Labels({"a", "b"})), ClassifyType::kOne), "");
  EXPECT_EQ(remark(Predicted(Labels({"a"})), ClassifyType::kOne), "");
  EXPECT_EQ(remark({{"0", {{.type = ClassifyType::kNumber, .number = 3}}},
                    {"1", {{.type = ClassifyType::kNumber, .number = 3}}}},
                   ClassifyType::kNumber),
            same);
  const ClassifyAnswer none = {.type = ClassifyType::kSeveral};
  EXPECT_EQ(remark({{"0", {none}}, {"1", {none}}}, ClassifyType::kSeveral),
            "no label of any prediction reaches the threshold");
  EXPECT_EQ(remark({{"0", {none, {{"a", 0.4}, {"b", 0.1}}}},
                    {"1", {none, {{"a", 0.2}, {"b", 0.3}}}}},
                   ClassifyType::kSeveral),
            "no label of any prediction reaches the threshold; best_micro_f1 "
            "1.0000 at 0.25");
  // One answer for all may be right.
  gold = Labels({"a", "a"});
  EXPECT_EQ(remark(Predicted(Labels({"a", "a"})), ClassifyType::kOne), "");
  gold = {{"0", none}, {"1", none}};
  EXPECT_EQ(remark({{"0", {none}}, {"1", {none}}}, ClassifyType::kSeveral), "");
}

TEST(ClassifyScoreTest, OfNumbersIsCorrelationAndDistance) {
  const auto answers = [](const std::vector<double>& numbers) {
    ById<ClassifyAnswer> made;
    for (const double number : numbers) {
      made.push_back({absl::StrCat(made.size()),
                      {.type = ClassifyType::kNumber, .number = number}});
    }
    return made;
  };
  const Scores scores =
      ScoreClassify(answers({1, 2, 3, 4}), Predicted(answers({10, 20, 30, 41})),
                    ClassifyType::kNumber);
  constexpr double kTolerance = 6e-8;
  EXPECT_THAT(
      scores.metrics,
      ElementsAre(Pair("pearson", testing::DoubleNear(0.9997173, kTolerance)),
                  Pair("spearman", DoubleEq(1)),
                  Pair("mse", DoubleEq((81 + 324 + 729 + 1369) / 4.0)),
                  Pair("mae", DoubleEq((9 + 18 + 27 + 37) / 4.0))));
}

TEST(ClassifyScoreTest, ComparesFilesOfTheSameDocuments) {
  TemporaryDirectory directory;
  const std::string gold =
      directory.Write("gold.csv", "id,text,label\nx,t,no\n");
  const auto score = [&](const std::string& predictions) {
    return ScoreFiles(
        Classify(),
        {.gold = gold, .predictions = directory.Write("p.jsonl", predictions)});
  };
  const auto scores = score(R"({"id":"x","label":"no"})");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, AllOf(Contains(Pair("accuracy", 1.0)),
                             Contains(Pair("confusion[no,no]", 1.0))));
  EXPECT_THAT(Message(score(R"({"id":"y","label":"no"})").status()),
              HasSubstr("should have a line for each document of"));
  EXPECT_THAT(Message(score(R"({"id":"x"})").status()),
              HasSubstr("p.jsonl: record 0.label is missing"));
  EXPECT_THAT(Message(score(R"({"id":"x","value":3})").status()),
              HasSubstr("should have \"label\" for each document, but has "
                        "\"value\" for x"));
  directory.Write("gold.csv", "id,text\nx,t\n");
  EXPECT_THAT(Message(score(R"({"id":"x","label":"no"})").status()),
              HasSubstr("gold.csv:2 is the first"));
}

TEST(ClassifyScoreTest, PairsNoRecordsByIdsThatComeAgain) {
  TemporaryDirectory directory;
  const auto message = [&](const std::string& gold,
                           const std::string& predictions) {
    return Message(ScoreFiles(Classify(), {.gold = directory.File(gold),
                                           .predictions = directory.Write(
                                               "p.jsonl", predictions)})
                       .status());
  };
  directory.Write("part-1.csv", "text,label\nt,cat\nt,dog\n");
  directory.Write("part-2.csv", "text,label\nt,dog\nt,dog\n");
  const std::string two =
      "{\"id\":\"0\",\"label\":\"dog\"}\n{\"id\":\"1\",\"label\":\"dog\"}\n";
  EXPECT_THAT(message("part-?.csv", two),
              AllOf(HasSubstr("part-2.csv:2: the id \"0\" should occur once"),
                    HasSubstr("part-1.csv:2 too")));
  EXPECT_THAT(message("part-1.csv", two + two),
              AllOf(HasSubstr("p.jsonl: record 2: the id \"0\""),
                    HasSubstr("p.jsonl: record 0 too")));
  EXPECT_TRUE(
      ScoreFiles(Classify(), {.gold = directory.File("part-2.csv"),
                              .predictions = directory.Write("p.jsonl", two)})
          .ok());
}

TEST(ClassifyScoreTest, LeavesOutRecordsWithoutLabel) {
  TemporaryDirectory directory;
  const ScoredFiles files = {
      .gold = directory.Write("gold.csv", "text,label\na,yes\nb,\nc,no\n"),
      .predictions = directory.Write("p.jsonl",
                                     R"({"id":"0","label":"yes"}
{"id":"1","label":"yes"}
{"id":"2","label":"yes"}
)")};
  UnansweredRecords unanswered;
  const auto scores = ScoreFiles(Classify(), files, {}, {}, &unanswered);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, AllOf(Contains(Pair("accuracy", 0.5)),
                             Contains(Pair("support[yes]", 1.0))));
  EXPECT_EQ(unanswered.count, 1);
  EXPECT_EQ(unanswered.first, directory.File("gold.csv:3"));
}

TEST(ClassifyScoreTest, NamesEachCellOfTheConfusionOnce) {
  const Scores scores = ScoreClassify(Labels({"a", "a,b", "a\"]", "b"}),
                                      Predicted(Labels({"b,c", "c", "b", "b"})),
                                      ClassifyType::kOne);
  EXPECT_THAT(scores.diagnostics,
              AllOf(Contains(Pair(R"(confusion[a,"b,c"])", 1.0)),
                    Contains(Pair(R"(confusion["a,b",c])", 1.0)),
                    Contains(Pair(R"(confusion["a\"]",b])", 1.0)),
                    Contains(Pair("confusion[b,b]", 1.0))));
}

TEST(ClassifyScoreTest, OfHugeNumbersIsFinite) {
  const ById<ClassifyAnswer> gold = {
      {"a", {.type = ClassifyType::kNumber, .number = 1e300}},
      {"b", {.type = ClassifyType::kNumber, .number = -1.7e308}},
      {"c", {.type = ClassifyType::kNumber, .number = 1.7e308}}};
  ById<ClassifyAnswer> wrong = gold;
  std::swap(wrong[1].second, wrong[2].second);
  for (const auto& answers : {gold, wrong}) {
    for (const auto& [name, value] :
         ScoreClassify(gold, Predicted(answers), ClassifyType::kNumber)
             .metrics) {
      EXPECT_TRUE(std::isfinite(value)) << name;
    }
  }
  EXPECT_THAT(
      ScoreClassify(gold, Predicted(gold), ClassifyType::kNumber).metrics,
      Contains(Pair("pearson", DoubleEq(1))));
}

TEST(ClassifyRecordTest, IsNotToldApartByRoundedNumbers) {
  const auto parse = [](const std::string& json) {
    return Classify().ParseRecord(json, "d.jsonl: record 0");
  };
  const auto largest = parse(R"({"text":"t","id":18446744073709551615})");
  ASSERT_TRUE(largest.ok()) << largest.status();
  EXPECT_EQ(largest->id, "18446744073709551615");
  EXPECT_THAT(
      Message(parse(R"({"text":"t","id":18446744073709551616})").status()),
      HasSubstr("need quotation marks"));
  EXPECT_THAT(
      Message(parse(R"({"text":"t","label":18446744073709551616})").status()),
      HasSubstr("need quotation marks"));
}

TEST(ClassifyPredictionTest, HasNoMoreDigitsThanItSays) {
  ById<ClassifyPrediction> predictions;
  for (int i = 0; i <= 1'000'000; i += 7) {
    predictions.push_back(
        {"a",
         {{.labels = {"x"}},
          {{"x", std::round(static_cast<double>(i)) / 1e6}}}});
  }
  for (const absl::string_view line :
       absl::StrSplit(Classify().FileContents({.predictions = predictions}),
                      '\n', absl::SkipEmpty())) {
    EXPECT_LE(line.size(),
              absl::string_view(
                  R"({"id":"a","label":"x","probabilities":{"x":0.123456}})")
                  .size())
        << line;
  }
}

}  // namespace
}  // namespace etc
