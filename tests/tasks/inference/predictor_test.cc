// Predictor against `realetc predict`: for each task the demo's checkpoint
// after one update, and all records of its dev sample. The files are the same
// bytes, whatever batches the records were in, and the JSON of each record says
// what the file says. Records given as structs are those given as JSON. Then
// records and checkpoints that nothing can be predicted from.
#include "tasks/inference/predictor.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/cpu_limit.h"
#include "nlohmann/json.hpp"
#include "tasks/classify/record.h"
#include "tasks/glue/record.h"
#include "tasks/hotpotqa/record.h"
#include "tasks/nq/record.h"
#include "tasks/openkp/record.h"
#include "tasks/squad/record.h"
#include "tasks/task/record_texts.h"
#include "tasks/tokens/record.h"
#include "tasks/wikihop/record.h"
#include "tests/support/demo_predictor.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The files of `realetc predict`: that of --output, and those beside it.
struct Files {
  std::string contents;
  std::vector<PredictionFile> more;
};

Files FilesOfPredict(const std::string& checkpoint, const std::string& data) {
  const auto run = RunCheckpoint(
      {.checkpoint = checkpoint, .data = {data}, .predicts = true});
  EXPECT_TRUE(run.ok()) << run.status();
  return {.contents = run->evaluation.predictions->FileContents(),
          .more = run->evaluation.predictions->MoreFiles()};
}

// The predictions without those that are errors.
std::vector<RecordPrediction> AllOk(
    const std::vector<absl::StatusOr<RecordPrediction>>& predictions) {
  std::vector<RecordPrediction> ok;
  for (const auto& prediction : predictions) {
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    if (prediction.ok()) {
      ok.push_back(*prediction);
    }
  }
  return ok;
}

// Parses the predictions in the files of a task once.
class ParsedFiles {
 public:
  ParsedFiles(const std::string& task, const Files& files) : task_(task) {
    if (task == "glue") {
      for (const auto text :
           absl::StrSplit(files.contents, '\n', absl::SkipEmpty())) {
        lines_.emplace(text);
      }
    } else if (task == "classify" || task == "openkp" || task == "tokens") {
      for (const auto text : absl::StrSplit(files.contents, '\n')) {
        lines_.insert(json::parse(text, nullptr, false).dump());
      }
    } else {
      file_ = json::parse(files.contents);
    }
    if (task == "nq") {
      for (const json& line : file_["predictions"]) {
        lines_.insert(line.dump());
      }
    } else if (task == "squad") {
      nbest_ = json::parse(files.more.at(0).contents);
    }
  }

  // Checks that a record's JSON says what they say.
  void ExpectHave(const RecordPrediction& prediction) {
    json line =
        json::parse(prediction.json, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(line.is_object()) << prediction.json;
    if (task_ == "glue") {
      EXPECT_EQ(line["id"], prediction.id);
      EXPECT_TRUE(lines_.contains(
          absl::StrCat(prediction.id, "\t", line["label"].get<std::string>())))
          << prediction.json;
      return;
    }
    if (task_ != "classify" && task_ != "tokens") {
      line.erase("truncated");
    }
    if (!lines_.empty()) {
      EXPECT_TRUE(lines_.contains(line.dump())) << prediction.json;
    } else if (task_ == "hotpotqa") {
      EXPECT_EQ(file_["answer"][prediction.id], line["answer"]);
      EXPECT_EQ(file_["sp"][prediction.id], line["sp"]);
    } else {
      EXPECT_EQ(file_[prediction.id], line["answer"]);
    }
    if (task_ == "squad") {
      EXPECT_EQ(nbest_[prediction.id], line["nbest"]);
    }
  }

 private:
  const std::string task_;
  std::set<std::string> lines_;  // of rows, or of the JSON of each prediction
  json file_;
  json nbest_;
};

class PredictorOfTaskTest : public testing::TestWithParam<std::string> {};

TEST_P(PredictorOfTaskTest, PredictsWhatPredictWrites) {
  const std::string& task = GetParam();
  const TemporaryDirectory directory;
  const std::string checkpoint = DemoCheckpoint(task, directory.path());
  const std::string dev = DemoFilesOf(task).dev;
  const Files files = FilesOfPredict(checkpoint, dev);
  std::vector<std::string> records = RecordsOf(checkpoint, dev);
  ASSERT_FALSE(records.empty());

  const Predictor predictor = OpenOrFail(checkpoint, {.task = task});
  EXPECT_EQ(predictor.task(), task);
  const std::vector<RecordPrediction> predictions =
      AllOk(predictor.Predict(records));
  ASSERT_EQ(predictions.size(), records.size());
  EXPECT_EQ(predictor.FileOf(predictions), files.contents);
  ParsedFiles parsed(task, files);
  for (const RecordPrediction& prediction : predictions) {
    parsed.ExpectHave(prediction);
  }

  const auto alone = predictor.Predict(records.back());
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->json, predictions.back().json);
  std::reverse(records.begin(), records.end());
  std::vector<RecordPrediction> reversed = AllOk(predictor.Predict(records));
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(predictor.FileOf(reversed), files.contents);
}

INSTANTIATE_TEST_SUITE_P(Tasks, PredictorOfTaskTest,
                         testing::Values("wikihop", "hotpotqa", "openkp", "nq",
                                         "classify", "glue", "squad", "tokens"),
                         [](const auto& task) { return task.param; });

// Rows of files say their task and their number; others need not.
TEST(PredictorOfGlueTest, TakesTextsAlone) {
  const TemporaryDirectory directory;
  const Predictor predictor =
      OpenOrFail(DemoCheckpoint("glue", directory.path()), {});
  const auto of_json =
      predictor.Predict(R"({"text": "the old town", "text_b": "a town"})");
  ASSERT_TRUE(of_json.ok()) << of_json.status();
  const auto of_struct = predictor.PredictStruct(
      GlueRecord{.id = "0", .text = "the old town", .text_b = "a town"});
  ASSERT_TRUE(of_struct.ok()) << of_struct.status();
  EXPECT_EQ(of_struct->json, of_json->json);
  const auto* const value = of_struct->As<GluePrediction>();
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(json::parse(of_json->json),
            json({{"id", "0"}, {"label", value->label}}));
  EXPECT_THAT(
      predictor.Predict(R"({"text": "a", "task": "qqqq"})").status().ToString(),
      HasSubstr("task"));
  // A pair of which one text is under another name is not one text.
  const std::string none = "text_b is missing: MRPC is about two texts";
  EXPECT_THAT(predictor.Predict(R"({"text": "a", "text_pair": "b"})")
                  .status()
                  .ToString(),
              HasSubstr(none));
  EXPECT_THAT(predictor.PredictStruct(GlueRecord{.id = "0", .text = "a"})
                  .status()
                  .ToString(),
              HasSubstr(none));
}

class PredictorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory();
    checkpoint_ = new std::string(DemoCheckpoint(
        "classify", directory_->path(),
        {"data.max_long_length=16", "classify.text=[\"text\"]"}));
    predictor_ = new Predictor(OpenOrFail(*checkpoint_, {}));
  }
  static void TearDownTestSuite() {
    delete predictor_;
    delete checkpoint_;
    delete directory_;
  }

  static std::string ErrorOf(const std::string& record) {
    const auto prediction = predictor_->Predict(record);
    EXPECT_EQ(prediction.status().code(), absl::StatusCode::kInvalidArgument)
        << prediction.status();
    return std::string(prediction.status().message());
  }

  static const TemporaryDirectory* directory_;
  static const std::string* checkpoint_;
  static const Predictor* predictor_;
};
const TemporaryDirectory* PredictorTest::directory_ = nullptr;
const std::string* PredictorTest::checkpoint_ = nullptr;
const Predictor* PredictorTest::predictor_ = nullptr;

TEST_F(PredictorTest, TakesStructsAndGivesThem) {
  const auto of_json =
      predictor_->Predict(R"({"id": "a", "text": "the weather in oslo"})");
  ASSERT_TRUE(of_json.ok()) << of_json.status();
  const auto of_struct = predictor_->PredictStruct(ClassifyRecord{
      .id = "a", .has_id = true, .texts = {"the weather in oslo"}});
  ASSERT_TRUE(of_struct.ok()) << of_struct.status();
  EXPECT_EQ(of_struct->json, of_json->json);
  EXPECT_EQ(of_struct->id, "a");
  const auto* const value = of_struct->As<ClassifyPrediction>();
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(json::parse(of_json->json)["label"], value->answer.labels.at(0));
  EXPECT_EQ(of_struct->As<SquadPrediction>(), nullptr);
  EXPECT_THAT(predictor_->PredictStruct(WikihopRecord{}).status().ToString(),
              HasSubstr("should be a record of classify, but is a struct of "
                        "another type"));
}

TEST_F(PredictorTest, RefusesStructsAsItDoesRecords) {
  for (const ClassifyRecord& record :
       {ClassifyRecord{}, ClassifyRecord{.texts = {" "}}}) {
    EXPECT_THAT(predictor_->PredictStruct(record).status().ToString(),
                HasSubstr("record 0: text should have a text, but has none"));
  }
  EXPECT_THAT(
      predictor_->PredictStruct(ClassifyRecord{.texts = {"a"}, .text_b = "b"})
          .status()
          .ToString(),
      HasSubstr("text_b should be absent"));
}

TEST_F(PredictorTest, RefusesStructsThatAreNotUtf8) {
  for (const ClassifyRecord& record :
       {ClassifyRecord{.texts = {"fine", "a \xff b"}},
        ClassifyRecord{.id = "\xff", .has_id = true, .texts = {"a"}},
        ClassifyRecord{.texts = {"a"}, .text_b = "\xff"}}) {
    EXPECT_EQ(predictor_->PredictStruct(record).status(),
              absl::InvalidArgumentError("record 0 should be UTF-8, but is "
                                         "not"));
  }
}

TEST_F(PredictorTest, NumbersAStructWithoutAnId) {
  const auto of_json = predictor_->Predict(R"({"text": "oslo"})");
  ASSERT_TRUE(of_json.ok()) << of_json.status();
  const auto of_struct =
      predictor_->PredictStruct(ClassifyRecord{.texts = {"oslo"}});
  ASSERT_TRUE(of_struct.ok()) << of_struct.status();
  EXPECT_EQ(of_struct->id, "0");
  EXPECT_EQ(of_struct->json, of_json->json);
}

// The texts of each task's struct: in lists and in structs in it, too.
TEST(RecordTextsTest, AreThoseOfAllStructs) {
  EXPECT_TRUE(
      HasUtf8Texts(HotpotqaRecord{.context = {{.title = "caf\u00e9"}}}));
  EXPECT_FALSE(HasUtf8Texts(HotpotqaRecord{.context = {{.title = "\xff"}}}));
  EXPECT_FALSE(HasUtf8Texts(GlueRecord{.text_b = "\xff"}));
  EXPECT_FALSE(HasUtf8Texts(NqRecord{.tokens = {{.text = "\xff"}}}));
  EXPECT_FALSE(HasUtf8Texts(OpenkpRecord{.text = "\xff"}));
  EXPECT_FALSE(HasUtf8Texts(SquadRecord{.context = "\xff"}));
  EXPECT_FALSE(HasUtf8Texts(TokensRecord{.sentences = {{"a", "\xff"}}}));
  EXPECT_FALSE(HasUtf8Texts(WikihopRecord{.supports = {"a", "\xff"}}));
}

TEST_F(PredictorTest, SaysWhatItCut) {
  const auto whole = predictor_->Predict(R"({"text": "a b c"})");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->truncated, IsEmpty());
  EXPECT_FALSE(json::parse(whole->json).contains("truncated"));

  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "1 ";  // a piece each
  }
  const auto cut =
      predictor_->Predict(json{{"id", "long"}, {"text", text}}.dump());
  ASSERT_TRUE(cut.ok()) << cut.status();
  // 16 tokens, [CLS] and [SEP] among them.
  EXPECT_THAT(cut->truncated,
              ElementsAre(TruncatedPart{.unit = "pieces", .count = 86}));
  EXPECT_EQ(json::parse(cut->json)["truncated"], json({{"pieces", 86}}));
}

TEST_F(PredictorTest, ReadsLongerTextsThanTheTrainingDid) {
  const Predictor longer =
      OpenOrFail(*checkpoint_, {.overrides = {"data.max_long_length=128"}});
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += "1 ";
  }
  const auto whole = longer.Predict(json{{"text", text}}.dump());
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->truncated, IsEmpty());
}

TEST(PredictorOfPositionsTest, RefusesLengthsThatPositionsDoNotReach) {
  const TemporaryDirectory directory;
  const std::string checkpoint =
      DemoCheckpoint("classify", directory.path(),
                     {"model.max_absolute_position_embeddings=16",
                      "data.max_long_length=16", "data.max_global_length=16"});
  for (const char* field : {"data.max_long_length", "data.max_global_length"}) {
    const absl::Status status =
        Predictor::Open(checkpoint, {.overrides = {absl::StrCat(field, "=17")}})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(field,
                                       " should be at most 16, the "
                                       "number of positions")));
  }
}

TEST_F(PredictorTest, SaysWhatIsWrongWithARecord) {
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("text"));
  EXPECT_THAT(ErrorOf(R"({"text": ""})"), HasSubstr("should have a text"));
  EXPECT_THAT(ErrorOf(R"({"text": " "})"), HasSubstr("should have a text"));
  EXPECT_THAT(ErrorOf(R"({"text": 5})"), HasSubstr("text"));
  EXPECT_THAT(ErrorOf("no JSON"), HasSubstr("record 0"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("record 0"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("record 0"));
  EXPECT_THAT(ErrorOf("{\"text\": \"caf\xe9\"}"), HasSubstr("UTF-8"));
  const auto too_long = predictor_->Predict(std::string(
      static_cast<size_t>(predictor_->max_record_bytes()) + 1, ' '));
  EXPECT_EQ(too_long.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(too_long.status().ToString(),
              HasSubstr("data.max_record_megabytes"));
}

TEST_F(PredictorTest, AnswersTheOthersBesideABadRecord) {
  const auto predictions = predictor_->Predict(std::vector<std::string>{
      R"({"text": "a"})", "no JSON", R"({"text": "b"})", R"({"text": "b"})"});
  ASSERT_EQ(predictions.size(), 4u);
  EXPECT_TRUE(predictions[0].ok()) << predictions[0].status();
  EXPECT_THAT(predictions[1].status().ToString(), HasSubstr("record 1"));
  ASSERT_TRUE(predictions[2].ok()) << predictions[2].status();
  EXPECT_EQ(predictions[2]->id, "2");
  ASSERT_TRUE(predictions[3].ok()) << predictions[3].status();
  EXPECT_EQ(predictions[3]->id, "3");
  EXPECT_THAT(predictor_->Predict(std::vector<std::string>()), IsEmpty());
}

// More records than run at a time: 16 batches of one.
TEST_F(PredictorTest, NamesARecordByItsPlaceAmongAll) {
  const Predictor predictor = OpenOrFail(*checkpoint_, {.batch_size = 1});
  EXPECT_EQ(predictor.batch_size(), 1);
  std::vector<std::string> records(18, R"({"text": "a"})");
  records[16] = "no JSON";
  const auto predictions = predictor.Predict(records);
  ASSERT_EQ(predictions.size(), 18u);
  EXPECT_THAT(predictions[16].status().ToString(), HasSubstr("record 16"));
  ASSERT_TRUE(predictions[17].ok()) << predictions[17].status();
  EXPECT_EQ(predictions[17]->id, "17");
}

TEST_F(PredictorTest, TakesAnotherBatchSizeThanTheTraining) {
  const int64_t trained = predictor_->batch_size();
  EXPECT_EQ(OpenOrFail(*checkpoint_, {.batch_size = trained + 3}).batch_size(),
            trained + 3);
  CheckpointRunOptions options;
  options.checkpoint = *checkpoint_;
  options.batch_size = trained + 5;
  const auto opened = OpenCheckpoint(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->config.train.evaluation_batch_size, trained + 5);
}

TEST_F(PredictorTest, OutlivesWhatIsPending) {
  auto copy = std::make_unique<Predictor>(*predictor_);
  Predictor::Pending pending = copy->Start(R"({"text": "a"})", "here 7");
  copy.reset();
  const auto prediction = pending.Get();
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->id, "7");
}

TEST_F(PredictorTest, GivesAPendingPredictionOnce) {
  for (const char* const record : {R"({"text": "a"})", "no JSON"}) {
    Predictor::Pending pending = predictor_->Start(record);
    Predictor::Pending copy = pending;
    pending.Get().status().IgnoreError();
    EXPECT_THROW(static_cast<void>(pending.Get()), c10::Error);
    EXPECT_THROW(static_cast<void>(copy.Get()), c10::Error);
  }
}

TEST_F(PredictorTest, RefusesSizesOutOfBoundsBeforeAnyRecord) {
  const auto message = [](const PredictorOptions& options) {
    const absl::Status status = Predictor::Open(*checkpoint_, options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message({.threads = 5000}),
            "--threads should be at most 1024, but is 5000");
  EXPECT_EQ(message({.threads = -1}),
            "--threads should be at least 0, but is -1");
  for (const int64_t batch_size : {-3, 0}) {
    EXPECT_EQ(
        message({.batch_size = batch_size}),
        absl::StrCat("--batch-size should be at least 1, but is ", batch_size));
  }
}

TEST_F(PredictorTest, RefusesOtherCheckpoints) {
  EXPECT_EQ(
      Predictor::Open(*checkpoint_, {.task = "wikihop"}).status().message(),
      absl::StrCat(*checkpoint_, " is of classify, but should be of wikihop"));
  EXPECT_EQ(Predictor::Open(directory_->File("none")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(
      Predictor::Open(*checkpoint_, {.device = "gpu"}).status().ToString(),
      HasSubstr("--device should be"));
}

// `last` is a link, which a training that goes on sets anew.
TEST_F(PredictorTest, NamesTheDirectoryThatItHasLoaded) {
  const std::string taken = predictor_->checkpoint();
  EXPECT_NE(taken, *checkpoint_);
  EXPECT_EQ(taken, std::filesystem::canonical(*checkpoint_).string());
}

TEST_F(PredictorTest, WarnsOfOtherResidualScores) {
  std::vector<std::string> warnings;
  const Predictor off = OpenOrFail(
      *checkpoint_, {.residual_attention = "off",
                     .callbacks = {.warning = [&](const std::string& line) {
                       warnings.push_back(line);
                     }}});
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("trained with sum"),
                                          HasSubstr("now off"))));
  EXPECT_TRUE(off.Predict(R"({"text": "a"})").ok());

  // Gates at 1 compute what the model was trained with.
  warnings.clear();
  const Predictor gates = OpenOrFail(
      *checkpoint_, {.residual_attention = "gate=1",
                     .callbacks = {.warning = [&](const std::string& line) {
                       warnings.push_back(line);
                     }}});
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_TRUE(gates.Predict(R"({"text": "a"})").ok());
  EXPECT_THAT(Predictor::Open(*checkpoint_, {.residual_attention = "gate=x"})
                  .status()
                  .ToString(),
              HasSubstr("but is \"gate=x\""));
}

TEST_F(PredictorTest, WarnsOfMoreThreadsThanCores) {
  std::vector<std::string> warnings;
  OpenOrFail(*checkpoint_,
             {.threads = CpusOfProcess() + 1,
              .callbacks = {.warning = [&](const std::string& line) {
                warnings.push_back(line);
              }}});
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("more threads than cores")));
}

}  // namespace
}  // namespace etc
