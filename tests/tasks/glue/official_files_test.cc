// GLUE's files, from bytes to token ids: the quirks of the official ones in
// miniature, mistakes with file and line, and, where the real data are beside
// the checkout, their numbers of rows and the inputs that the official program
// packs of them (doc/glue.md 2, 4, 12).

#include "tasks/glue/official_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "nlohmann/json.hpp"
#include "tasks/glue/task.h"
#include "tasks/task/score_files.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/text/word_tokenizer.h"

namespace etc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const GlueTask& TaskOf(const std::string& name) {
  const auto task = FindGlueTask(name);
  EXPECT_TRUE(task.ok()) << task.status();
  return **task;
}

std::vector<FileRecord> ReadOrFail(const std::string& path,
                                   const std::string& task) {
  const auto records = ReadGlueFile(path, TaskOf(task));
  EXPECT_TRUE(records.ok()) << records.status();
  return records.ok() ? *records : std::vector<FileRecord>();
}

// "id|text|text_b|label" of each row, "-" for what it has not; "broken".
std::vector<std::string> Rows(const std::string& contents,
                              const std::string& task,
                              const std::string& name = "dev.tsv") {
  TemporaryDirectory directory;
  std::vector<std::string> rows;
  for (const FileRecord& record :
       ReadOrFail(directory.Write(name, contents), task)) {
    if (!record.broken.empty()) {
      rows.emplace_back("broken");
      continue;
    }
    const auto row = nlohmann::json::parse(record.json);
    EXPECT_EQ(row["task"], TaskOf(task).name);
    rows.push_back(absl::StrCat(
        row["id"].get<std::string>(), "|", row["text"].get<std::string>(), "|",
        row.value("text_b", "-"), "|", row.value("label", "-")));
  }
  return rows;
}

// The error of a file, or of its first row, without the path.
std::string Mistake(const std::string& contents, const std::string& task) {
  TemporaryDirectory directory;
  const std::string path = directory.Write("dev.tsv", contents);
  const auto records = ReadGlueFile(path, TaskOf(task));
  absl::Status status = records.status();
  for (size_t i = 0; records.ok() && i < records->size() && status.ok(); ++i) {
    status =
        Glue().ParseRecord((*records)[i].json, (*records)[i].where).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << contents;
  const std::string message(status.message());
  EXPECT_TRUE(absl::StartsWith(message, path)) << message;
  return message.substr(std::min(path.size(), message.size()));
}

TEST(GlueFileTest, HasNoQuoting) {
  EXPECT_THAT(
      Rows("index\tsentence1\tsentence2\tlabel\n"
           "0\t\"a\tb\" c\tentailment\n"
           "1\td\te \"\"\tnot_entailment\n",
           "rte"),
      ElementsAre("0|\"a|b\" c|entailment", "1|d|e \"\"|not_entailment"));
}

TEST(GlueFileTest, MayBeginWithAByteOrderMarkAndHaveCarriageReturns) {
  EXPECT_THAT(Rows("\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
                   "1\t7\t8\ta \t b\r\n"
                   "0\t9\t5\tc\td\r\n\r\n",
                   "mrpc"),
              ElementsAre("0|a | b|1", "1|c|d|0"));
}

TEST(GlueFileTest, OfColaHasNoHeaderUnlessItHas) {
  const std::string rows = "gj04\t1\t\tA b.\ngj04\t0\t*\tB a.\n";
  EXPECT_THAT(Rows(rows, "cola"), ElementsAre("0|A b.|-|1", "1|B a.|-|0"));
  EXPECT_THAT(Rows("source\tlabel\tmark\tsentence\n" + rows, "cola"),
              ElementsAre("0|A b.|-|1", "1|B a.|-|0"));
  EXPECT_THAT(Rows("source\tacceptable\tmark\ttext\n" + rows, "cola"),
              ElementsAre("0|A b.|-|1", "1|B a.|-|0"));
  // Whatever is in the place of labels.
  EXPECT_THAT(Rows("x\t-1\t\tA b.\nx\t\t*\tB a.\n", "cola"),
              ElementsAre("0|A b.|-|-1", "1|B a.|-|"));
  EXPECT_THAT(Rows("index\tsentence\n0\t1\n4\ta\n", "cola"),
              ElementsAre("0|1|-|-", "4|a|-|-"));
}

TEST(GlueFileTest, HasItsColumnsByNameOrElseByPlace) {
  // The tasks' files, with labels and without.
  EXPECT_THAT(Rows("sentence\tlabel\na b \t1\n", "sst2"),
              ElementsAre("0|a b |-|1"));
  EXPECT_THAT(Rows("index\tsentence\n3\ta\n", "SST-2"), ElementsAre("3|a|-|-"));
  EXPECT_THAT(Rows("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\ta\tb\n",
                   "mrpc"),
              ElementsAre("0|a|b|-"));
  const std::string stsb =
      "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\t"
      "sentence2";
  const std::string stsb_row = "5\tg\tf\t2012test\t0001\tnone\tnone\ta\tb";
  EXPECT_THAT(Rows(stsb + "\tscore\n" + stsb_row + "\t3.800\n", "stsb"),
              ElementsAre("5|a|b|3.800"));
  EXPECT_THAT(Rows(stsb + "\n" + stsb_row + "\n", "sts-b"),
              ElementsAre("5|a|b|-"));
  EXPECT_THAT(Rows("index\tquestion\tsentence\n0\tq\ts\n", "qnli"),
              ElementsAre("0|q|s|-"));
  // Other names; another order.
  EXPECT_THAT(
      Rows("n\tpremise\thypothesis\tclass\n9\ta\tb\tentailment\n", "rte"),
      ElementsAre("0|a|b|entailment"));
  EXPECT_THAT(Rows("n\tpremise\thypothesis\n9\ta\tb\n", "rte"),
              ElementsAre("0|a|b|-"));
  EXPECT_THAT(Rows("label\tsentence2\tsentence1\n1\tb\ta\n", "wnli"),
              ElementsAre("0|a|b|1"));
}

TEST(GlueFileTest, OfMnliHasItsLabelLastAndItsSetInItsName) {
  const std::string header =
      "index\tpromptID\tpairID\tgenre\tp1\tp2\tp3\tp4\tsentence1\tsentence2";
  const std::string row = "0\t1\t1n\tg\t(\t(\t(\t(\ta\tb";
  EXPECT_THAT(
      Rows(header + "\tlabel1\tgold_label\n" + row + "\tneutral\tentailment\n",
           "mnli"),
      ElementsAre("0|a|b|entailment"));
  // A file with annotators' labels only by place.
  std::string long_header = header;
  std::string long_row = row;
  for (int i = 1; i <= 5; ++i) {
    absl::StrAppend(&long_header, "\tlabel", i);
    absl::StrAppend(&long_row, "\tneutral");
  }
  EXPECT_THAT(
      Rows(long_header + "\tgold\n" + long_row + "\tcontradiction\n", "mnli"),
      ElementsAre("0|a|b|contradiction"));
  EXPECT_THAT(Rows(header + "\n" + row + "\n", "mnli"), ElementsAre("0|a|b|-"));
  // The diagnostic set, which is put to the model of MNLI, too.
  EXPECT_THAT(Rows("index\tsentence1\tsentence2\n7\ta\tb\n", "mnli"),
              ElementsAre("7|a|b|-"));
  TemporaryDirectory directory;
  for (const auto& [name, set] :
       std::map<std::string, std::string>{{"dev_matched.tsv", "matched"},
                                          {"dev_mismatched.tsv", "mismatched"},
                                          {"train.tsv", ""}}) {
    const auto records =
        ReadOrFail(directory.Write(name, header + "\n" + row + "\n"), "mnli");
    ASSERT_THAT(records, SizeIs(1));
    EXPECT_EQ(nlohmann::json::parse(records[0].json).value("set", ""), set);
    EXPECT_THAT(records[0].where, HasSubstr(name + ":2"));
  }
}

TEST(GlueFileTest, OfMnliHasNotItsSetInTheNameOfItsDirectory) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.File("mismatched"));
  for (const auto& [name, set] : std::map<std::string, std::string>{
           {"dev_matched.tsv", "matched"}, {"train.tsv", ""}}) {
    const auto records =
        ReadOrFail(directory.Write("mismatched/" + name,
                                   "index\tsentence1\tsentence2\n7\ta\tb\n"),
                   "mnli");
    ASSERT_THAT(records, SizeIs(1));
    EXPECT_EQ(nlohmann::json::parse(records[0].json).value("set", ""), set);
  }
}

TEST(GlueFileTest, OfQqpLeavesOutRowsThatAreBroken) {
  const std::string header = "id\tqid1\tqid2\tquestion1\tquestion2\t";
  EXPECT_THAT(Rows(header + "is_duplicate\n11\t1\t2\ta\tb\t0\n"
                            "12\t3\t4\t\"c\n\nd\te\t1\n"
                            "13\t5\t6\tf\tg\t1\n",
                   "qqp"),
              ElementsAre("0|a|b|0", "broken", "broken", "1|f|g|1"));
  EXPECT_THAT(Rows("id\tquestion1\tquestion2\n0\ta\tb\n1\tc\n2\td\te\n", "qqp"),
              ElementsAre("0|a|b|-", "broken", "2|d|e|-"));
  TemporaryDirectory directory;
  const auto records = ReadOrFail(
      directory.Write("t.tsv", "id\tquestion1\tquestion2\n0\ta\n"), "qqp");
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_THAT(records[0].broken,
              HasSubstr("t.tsv:2 should have 3 columns, as the first line has, "
                        "but has 2"));
}

TEST(GlueFileTest, NamesFileAndLineOfAMistake) {
  const std::string rte = "index\tsentence1\tsentence2\tlabel\n";
  EXPECT_EQ(Mistake(rte + "0\ta\tb\tentailment\n1\ta\tb\n", "rte"),
            ":3 should have 4 columns, as the first line has, but has 3");
  EXPECT_EQ(Mistake(rte + "0\ta\tb\tc\tentailment\n", "rte"),
            ":2 should have 4 columns, as the first line has, but has 5");
  EXPECT_EQ(Mistake(rte + "0\ta\tb\tentailed\n", "rte"),
            ":2: label should be entailment or not_entailment, but is "
            "\"entailed\"");
  EXPECT_EQ(Mistake("sentence\tlabel\na\t1\nb\t\n", "sst2"),
            ":3: label should be 0 or 1, but is \"\"");
  EXPECT_EQ(
      Mistake(rte + "0\ta\tb\tentailment\n\n1\ta\tb\tentailment\n", "rte"),
      ":3 should be a row, but is empty");
  EXPECT_EQ(Mistake(rte + std::string("0\ta\0\tb\tentailment\n", 18), "rte"),
            ":2 should be text in UTF-8, but has a NUL byte");
  EXPECT_EQ(Mistake(rte + "0\ta\xE9\tb\tentailment\n", "rte"),
            ":2 should be UTF-8, but is not");
  EXPECT_EQ(Mistake(rte + "zero\ta\tb\tentailment\n", "rte"),
            ":2 should begin with the number of the row, but its index is "
            "\"zero\"");
  EXPECT_EQ(Mistake("", "rte"), " should be a file of RTE, but is empty");
  const std::string stsb = "index\tsentence1\tsentence2\tscore\n";
  for (const char* score : {"high", "5.1", "-0.5", "nan", ""}) {
    EXPECT_EQ(
        Mistake(absl::StrCat(stsb, "0\ta\tb\t", score, "\n"), "stsb"),
        absl::StrCat(":2: score should be a number from 0 to 5, but is \"",
                     score, "\""));
  }
}

TEST(GlueFileTest, ThatIsOfAnotherTaskOrLacksItsHeaderIsRefused) {
  EXPECT_THAT(Mistake("sentence\tlabel\na\t1\n", "mrpc"),
              HasSubstr(":1 should be the header of a file of MRPC, with the "
                        "columns #1 String, #2 String and, unless it is a test "
                        "file, Quality, but has 2 columns"));
  EXPECT_THAT(Mistake("0\ta\tb\tentailment\n", "rte"),
              HasSubstr("but has a row"));
  EXPECT_THAT(Mistake("0\ta\tb\n", "rte"), HasSubstr("but has a row"));
  EXPECT_THAT(Mistake("1\t7\t8\ta\tb\n", "mrpc"), HasSubstr("but has a row"));
  EXPECT_THAT(Mistake("a\t1\n", "sst2"), HasSubstr("but has a row"));
  EXPECT_THAT(Mistake("question\tlabel\na\t1\n", "qnli"),
              HasSubstr("but has the columns \"question\", \"label\""));
}

TEST(GlueFileTest, WhoseLinesEndWithCarriageReturnsAloneIsRefused) {
  std::string contents = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&contents, "1\t7\t8\ta\tb\r");
  }
  const std::string message = Mistake(contents, "mrpc");
  EXPECT_THAT(message, HasSubstr(":1 ends with a carriage return alone"));
  EXPECT_LT(message.size(), 300u);
}

TEST(GlueFileTest, WithALineThatIsTooLongIsRefused) {
  TemporaryDirectory directory;
  const std::string path = directory.Write(
      "dev.tsv",
      absl::StrCat("sentence\tlabel\n", std::string(2000, 'a'), "\t1\n"));
  const absl::Status status =
      ReadGlueFile(path, TaskOf("sst2"),
                   {.max_record_bytes = 1000, .max_record_field = "a.field"})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("dev.tsv:2: a line should have at most 1000 bytes "
                        "(a.field)"));
}

// A file of so many rows.
std::string QnliOfRows(int64_t rows, bool has_labels) {
  std::string contents = "index\tquestion\tsentence";
  absl::StrAppend(&contents, has_labels ? "\tlabel\n" : "\n");
  for (int64_t i = 0; i < rows; ++i) {
    absl::StrAppend(&contents, i, "\tq\ts",
                    has_labels ? "\tentailment\n" : "\n");
  }
  return contents;
}

TEST(GlueFileTest, OfTheFirstQnliIsRefused) {
  for (const auto& [rows, has_labels] : std::vector<std::pair<int64_t, bool>>{
           {108436, true}, {5732, true}, {5740, false}}) {
    EXPECT_THAT(Mistake(QnliOfRows(rows, has_labels), "qnli"),
                AllOf(HasSubstr(absl::StrCat(" has ", rows, " rows")),
                      HasSubstr("get QNLI version 2")));
    TemporaryDirectory directory;
    EXPECT_TRUE(
        ReadGlueFile(directory.Write("dev.tsv", QnliOfRows(rows, !has_labels)),
                     TaskOf("qnli"))
            .ok());
  }
}

// --- Packing -----------------------------------------------------------------

// [CLS] is 10, [SEP] 11, the words from 12 on.
const WordTokenizer& Words() {
  static const auto* const words =
      new WordTokenizer({"[CLS]", "[SEP]", "a", "b", "c", "d"});
  return *words;
}

GlueOptions OptionsOf(const std::string& task, int64_t length, bool is_bert,
                      const Tokenizer& tokenizer) {
  GlueOptions options;
  options.task = &TaskOf(task);
  options.labels = options.task->labels;
  options.input.has_long_tokens = !is_bert;
  (is_bert ? options.input.max_global_length : options.input.max_long_length) =
      length;
  EXPECT_TRUE(Glue().UseVocabulary(tokenizer, &options).ok());
  return options;
}

// The example of a row's JSON.
std::shared_ptr<const GlueExample> ExampleOf(const std::string& json,
                                             const GlueOptions& options,
                                             const Tokenizer& tokenizer) {
  auto record = Glue().ParseRecord(json, "dev.tsv:2");
  EXPECT_TRUE(record.ok()) << record.status();
  const auto examples =
      Glue(options, &tokenizer).MakeExamples(*std::move(record), "dev.tsv:2");
  EXPECT_TRUE(examples.ok()) << examples.status();
  EXPECT_THAT(*examples, SizeIs(1));
  return examples->front();
}

TEST(GlueExampleTest, IsBertsInputOrEtcs) {
  const std::string row =
      R"({"task":"mrpc","id":"4","text":"a b","text_b":"c","label":"1"})";
  const GlueOptions bert = OptionsOf("mrpc", 128, true, Words());
  const auto of_bert = ExampleOf(row, bert, Words());
  EXPECT_EQ(of_bert->record_id, "4");
  EXPECT_THAT(of_bert->global_token_ids, ElementsAre(10, 12, 13, 11, 14, 11));
  EXPECT_THAT(of_bert->global_type_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(of_bert->long_token_ids, IsEmpty());
  EXPECT_EQ(of_bert->label, 1);
  EXPECT_TRUE(of_bert->has_answer);

  const GlueOptions etc = OptionsOf("mrpc", 128, false, Words());
  const auto of_etc = ExampleOf(row, etc, Words());
  EXPECT_THAT(of_etc->long_token_ids, ElementsAre(10, 12, 13, 11, 14, 11));
  EXPECT_THAT(of_etc->long_type_ids, ElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(of_etc->global_token_ids, ElementsAre(1));
}

TEST(GlueExampleTest, IsASingleTextWhereTheSecondHasNoPieces) {
  const GlueOptions options = OptionsOf("qqp", 4, true, Words());
  const auto example =
      ExampleOf(R"({"task":"qqp","id":"0","text":"a b c","text_b":" "})",
                options, Words());
  EXPECT_THAT(example->global_token_ids, ElementsAre(10, 12, 13, 11));
  EXPECT_THAT(example->global_type_ids, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(example->dropped_pieces, 1);
  EXPECT_FALSE(example->has_answer);
}

TEST(GlueExampleTest, HasAsManyTextsAsItsTask) {
  const auto error_of = [](const std::string& task, const std::string& rest) {
    const Glue glue(OptionsOf(task, 128, true, Words()), &Words());
    const std::string row = absl::StrCat(R"({"task":")", task,
                                         R"(","id":"0","text":"a")", rest, "}");
    auto record = glue.ParseRecord(row, "dev.tsv:2");
    EXPECT_TRUE(record.ok()) << record.status();
    return std::string(
        glue.MakeExamples(*std::move(record), "dev.tsv:2").status().message());
  };
  const std::string both = R"(,"text_b":"b")";
  EXPECT_EQ(error_of("mnli", ""),
            "dev.tsv:2.text_b is missing: MNLI is about two texts");
  EXPECT_EQ(error_of("mnli", both), "");
  EXPECT_EQ(error_of("cola", both),
            "dev.tsv:2.text_b should not be given: CoLA is about one text");
  EXPECT_EQ(error_of("cola", ""), "");
}

TEST(GlueExampleTest, HasTheClassThatTheConfigurationGivesItsLabel) {
  const std::string row =
      R"({"task":"mnli","id":"0","text":"a","text_b":"b","label":"neutral"})";
  GlueOptions options = OptionsOf("mnli", 128, true, Words());
  EXPECT_EQ(ExampleOf(row, options, Words())->label, 2);
  options.labels = {"entailment", "neutral", "contradiction"};
  EXPECT_EQ(ExampleOf(row, options, Words())->label, 1);
}

// --- Real data ---------------------------------------------------------------

int64_t CountRows(const std::string& file, const std::string& task) {
  const std::string path = SharedDataPath("data/glue/" + file);
  const auto records = ReadOrFail(path, task);
  for (const FileRecord& record : records) {
    EXPECT_EQ(record.broken, "");
    const auto parsed = Glue().ParseRecord(record.json, record.where);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->has_label, !absl::StrContains(file, "test")) << file;
  }
  return static_cast<int64_t>(records.size());
}

TEST(RealGlueTest, HasAllRowsOfTheOfficialFiles) {
  ETC_SHARED_DATA_OR_SKIP(const std::string data, "data/glue/MRPC/train.tsv");
  EXPECT_EQ(CountRows("CoLA/train.tsv", "cola"), 8551);
  EXPECT_EQ(CountRows("CoLA/dev.tsv", "cola"), 696);
  EXPECT_EQ(CountRows("CoLA/test.tsv", "cola"), 709);
  EXPECT_EQ(CountRows("SST-2/train.tsv", "sst2"), 67349);
  EXPECT_EQ(CountRows("SST-2/dev.tsv", "sst2"), 582);
  EXPECT_EQ(CountRows("SST-2/test.tsv", "sst2"), 1214);
  EXPECT_EQ(CountRows("MRPC/train.tsv", "mrpc"), 3668);
  EXPECT_EQ(CountRows("MRPC/dev.tsv", "mrpc"), 272);
  EXPECT_EQ(CountRows("MRPC/test.tsv", "mrpc"), 1150);
  EXPECT_EQ(CountRows("STS-B/train.tsv", "stsb"), 5749);
  EXPECT_EQ(CountRows("STS-B/dev.tsv", "stsb"), 1000);
  EXPECT_EQ(CountRows("STS-B/test.tsv", "stsb"), 920);
  EXPECT_EQ(CountRows("QNLI/dev.tsv", "qnli"), 3642);
  EXPECT_EQ(CountRows("QNLI/test.tsv", "qnli"), 3642);
  EXPECT_EQ(CountRows("RTE/train.tsv", "rte"), 2490);
  EXPECT_EQ(CountRows("RTE/dev.tsv", "rte"), 185);
  EXPECT_EQ(CountRows("RTE/test.tsv", "rte"), 2000);
  EXPECT_EQ(CountRows("WNLI/train.tsv", "wnli"), 635);
  EXPECT_EQ(CountRows("WNLI/dev.tsv", "wnli"), 48);
  EXPECT_EQ(CountRows("WNLI/test.tsv", "wnli"), 98);
  EXPECT_EQ(CountRows("MNLI/train.sample.tsv", "mnli"), 6);
  EXPECT_EQ(CountRows("MNLI/dev_matched.sample.tsv", "mnli"), 5);
  EXPECT_EQ(CountRows("MNLI/dev_mismatched.sample.tsv", "mnli"), 5);
  EXPECT_EQ(CountRows("MNLI/test_matched.sample.tsv", "mnli"), 5);
  EXPECT_EQ(CountRows("MNLI/test_mismatched.sample.tsv", "mnli"), 5);
  EXPECT_EQ(CountRows("QQP/dev.sample.tsv", "qqp"), 5);
}

TEST(RealGlueTest, IsPackedAsByTheOfficialProgram) {
  ETC_SHARED_DATA_OR_SKIP(const std::string golden,
                          "golden/text_tasks/glue.json");
  ETC_SHARED_DATA_OR_SKIP(const std::string vocabulary,
                          "data/vocab/bert-uncased/vocab.txt");
  const auto tokenizer = LoadTokenizer(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto cases =
      nlohmann::json::parse(ReadFile(golden).value()).at("features");
  ASSERT_THAT(cases, SizeIs(48));
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.dump());
    const std::string title = expected["task"];
    const auto records =
        ReadOrFail(SharedDataPath(absl::StrCat(
                       "data/glue/", title, "/",
                       title == "MNLI" ? "dev_matched.sample.tsv" : "dev.tsv")),
                   title);
    const GlueOptions options =
        OptionsOf(title, expected["max_seq_length"], true, **tokenizer);
    const auto example = ExampleOf(
        records.at(expected["row"].get<size_t>()).json, options, **tokenizer);
    EXPECT_EQ(example->global_token_ids,
              expected["input_ids"].get<std::vector<int32_t>>());
    std::vector<int32_t> types(example->global_token_ids.size(), 0);
    if (expected["first_one"] >= 0) {
      std::fill(types.begin() + expected["first_one"].get<int64_t>(),
                types.end(), 1);
    }
    EXPECT_EQ(example->global_type_ids, types);
    EXPECT_EQ(example->global_length(), expected["length"]);
    EXPECT_EQ(example->gold.label, expected["label"]);
  }
}

}  // namespace
}  // namespace etc
