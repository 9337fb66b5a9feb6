// `realetc evaluate` and `predict`: the checkpoint of a run that they take, and
// their warning of a residual mode that is not that of the training. Their
// results are tested with the libraries. For predictions also the records that
// they are of, and the files that they replace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class EvaluateCommandTest : public RealetcTest {
 protected:
  // Trains with seeds 1 and 2.
  void Train() {
    json config = Config();
    config["train"]["seeds"] = {1, 2};
    const Result result = Run("train " + WriteConfig(config));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("median of 2 seeds\naccuracy  "));
  }

  // Makes summary.json say that the best accuracies are these.
  void WriteScores(double first, double second) {
    json summary = json::parse(Contents(run_ + "/summary.json"));
    summary["runs"][0]["best"]["accuracy"] = first;
    summary["runs"][1]["best"]["accuracy"] = second;
    directory_.Write("run/summary.json", summary.dump());
  }

  const std::string run_ = directory_.File("run");
};

TEST_F(EvaluateCommandTest, TakesTheBestCheckpointOfARun) {
  Train();
  const std::string of_first = Run("evaluate " + run_ + "/seed-1").out;
  const Result second = Run("evaluate " + run_ + "/seed-2");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat("checkpoint: ", run_,
                                                 "/seed-2/checkpoints/best, "
                                                 "the best\n")));
  EXPECT_THAT(second.out, StartsWith("accuracy  "));

  WriteScores(0.25, 0.5);
  Result best = Run("evaluate " + run_);
  EXPECT_EQ(best.code, 0) << best.err;
  EXPECT_THAT(best.err,
              HasSubstr("/seed-2/checkpoints/best, the best of 2 seeds by "
                        "accuracy, 0.5000\n"));
  EXPECT_EQ(best.out, second.out);
  WriteScores(0.75, 0.5);
  best = Run("evaluate --json " + run_);
  EXPECT_THAT(best.err, HasSubstr("/seed-1/checkpoints/best, the best of 2"));
  EXPECT_TRUE(json::parse(best.out)["accuracy"].is_number()) << best.out;

  const std::string predictions = directory_.File("predictions.json");
  const Result predict = Run(absl::StrCat("predict ", run_, " --data ",
                                          directory_.File("data.json"),
                                          " --output ", predictions));
  EXPECT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(json::parse(Contents(predictions)).size(), 6u);

  // An unfinished run has no summary.
  std::filesystem::remove(run_ + "/summary.json");
  const Result unknown = Run("evaluate " + run_);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(Lines(unknown.err), 1) << unknown.err;
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("summary.json"),
                    HasSubstr(run_ + "/seed-1, " + run_ + "/seed-2\n")));
  std::filesystem::remove_all(run_ + "/seed-2");
  const Result only = Run("evaluate " + run_);
  EXPECT_EQ(only.code, 0) << only.err;
  EXPECT_EQ(only.out, of_first);
}

TEST_F(EvaluateCommandTest, SaysWhatADirectoryWithoutCheckpointShouldBe) {
  for (const std::string& path :
       {directory_.path(), directory_.File("nowhere")}) {
    const Result result = Run("evaluate " + path);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr(path), HasSubstr("run_config.json"),
                                  HasSubstr("seed-1")));
  }
}

TEST_F(EvaluateCommandTest, TakesADevice) {
  nlohmann::json config = Config();
  config["train"]["device"] = "cpu";
  const Result trained = Run("train " + WriteConfig(config));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err,
              HasSubstr("device: cpu (train.device is \"cpu\")\n"));
  const std::string predict =
      absl::StrCat("predict ", run_, " --data ", directory_.File("data.json"),
                   " --output ", directory_.File("predictions.json"));
  for (const std::string& command : {"evaluate " + run_, predict}) {
    // The device of the training does not matter.
    EXPECT_THAT(Run(command).err, HasSubstr("(--device is \"auto\", and "));
    const Result cpu = Run(command + " --device cpu");
    EXPECT_EQ(cpu.code, 0) << cpu.err;
    EXPECT_THAT(cpu.err, HasSubstr("device: cpu (--device is \"cpu\")\n"));
    const Result unknown = Run(command + " --device gpu");
    EXPECT_EQ(unknown.code, 1);
    EXPECT_THAT(unknown.err,
                HasSubstr("realetc: --device should be \"auto\", \"cpu\""));
    const Result absent = Run(command + " --device cuda:120");
    EXPECT_EQ(absent.code, 1);
    EXPECT_THAT(absent.err,
                AllOf(HasSubstr("realetc: --device is \"cuda:120\", but "),
                      HasSubstr("can be used here: cpu")));
  }
}

TEST_F(EvaluateCommandTest, SaysIfTheResidualModeIsNotThatOfTheTraining) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const Result off = Run("evaluate " + run_ + " --residual off");
  EXPECT_EQ(off.code, 0) << off.err;
  EXPECT_THAT(off.err, HasSubstr("realetc: warning: residual attention: "
                                 "trained with sum, now off; "));
  for (const std::string same : {"", " --residual sum"}) {
    EXPECT_THAT(Run("evaluate " + run_ + same).err, Not(HasSubstr("warning")));
  }
}

// A factor that rounds to 0 leaves gates as they began, at the value of a mode
// that computes the same.
TEST_F(EvaluateCommandTest, SaysIfGatesComputeAnotherMode) {
  for (const auto& [initial, same, other] :
       {std::tuple(0, "off", "sum"), std::tuple(1, "sum", "off")}) {
    std::filesystem::remove_all(run_);
    json config = Config();
    config["residual_attention"] = "gate";
    config["model"]["residual_gate_init"] = initial;
    config["train"]["gate_learning_rate_factor"] = 1e-60;
    ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
    const Result trained = Run("evaluate --json " + run_);
    EXPECT_THAT(trained.err, AllOf(HasSubstr("residual attention gate"),
                                   Not(HasSubstr("warning"))));
    const Result as_mode =
        Run(absl::StrCat("evaluate --json ", run_, " --residual ", same));
    EXPECT_EQ(as_mode.out, trained.out);
    EXPECT_THAT(as_mode.err, Not(HasSubstr("warning")));
    EXPECT_THAT(Run(absl::StrCat("evaluate ", run_, " --residual ", other)).err,
                HasSubstr(absl::StrCat("trained with gate, now ", other)));
    EXPECT_THAT(Run("evaluate " + run_ + " --residual gate=0.5").err,
                HasSubstr("warning: residual attention: gate=0.5 sets gates of "
                          "models that have none; this one keeps its own"));
  }
}

TEST_F(EvaluateCommandTest, EvaluatesWithGatesAndDecay) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string evaluate = "evaluate --json " + run_;
  const Result sum = Run(evaluate);
  const Result one = Run(evaluate + " --residual gate=1");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, sum.out);
  EXPECT_THAT(one.err, AllOf(HasSubstr("residual attention gate"),
                             Not(HasSubstr("warning"))));
  EXPECT_THAT(Run(evaluate + " --residual gate").err,
              HasSubstr("trained with sum, now gate"));
  const Result decay = Run(evaluate + " --residual decay=0.75");
  EXPECT_EQ(decay.code, 0) << decay.err;
  EXPECT_THAT(decay.err, AllOf(HasSubstr("trained with sum, now decay=0.75"),
                               HasSubstr("residual attention decay=0.75")));
  const Result low = Run(evaluate + " --residual decay=1e-5");
  EXPECT_EQ(low.code, 1);
  EXPECT_THAT(low.err, AllOf(HasSubstr("residual_decay should be above"),
                             HasSubstr("2 layers")));
}

TEST_F(EvaluateCommandTest, InspectShowsLearntGates) {
  json config = Config();
  config["residual_attention"] = "gate";
  config["train"]["gate_learning_rate_factor"] = 1000;
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const Result inspect = Run("inspect " + run_);
  EXPECT_EQ(inspect.code, 0) << inspect.err;
  EXPECT_THAT(
      inspect.out,
      AllOf(HasSubstr("   layer       g2g       g2l       l2g       l2l   "
                      "largest\n       1   "),
            HasSubstr("Residual attention: gate"),
            HasSubstr("encoder.layers.1.attention.g2g_gate")));
  EXPECT_THAT(Run("evaluate " + run_ + " --residual off").err,
              HasSubstr("trained with gate, now off"));
  const Result exported =
      Run("export " + run_ + " " + directory_.File("exported"));
  EXPECT_EQ(exported.code, 1);
  // Which checkpoint, and why not.
  EXPECT_EQ(Lines(exported.err), 2) << exported.err;
  EXPECT_THAT(exported.err, HasSubstr("only files of RealETC have gates"));
}

// The rows of a table are in memory: a mistake in the last one is reported
// before any of them is run.
TEST_F(EvaluateCommandTest, ChecksRecordsInMemoryBeforeTheModelIsLoaded) {
  const std::string good = "id,text,label\n0,mira,x\n1,rome,y\n2,lima,x\n";
  const std::string data = directory_.Write("good.csv", good);
  json config = Config();
  config["task"] = "classify";
  config["data"] = {{"train", {data}}, {"dev", {data}}};
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const auto with_row = [&](const std::string& command, const char* row) {
    return Run(absl::StrCat(command, " --data ",
                            directory_.Write("rows.csv", good + row)));
  };
  const std::string output = directory_.File("p.jsonl");
  const std::string evaluate = "evaluate " + run_;
  const std::string predict =
      absl::StrCat("predict ", run_, " --output ", output);
  for (const auto& [command, row] :
       {std::pair(evaluate, "3,,x\n"), std::pair(evaluate, "1,mira,x\n"),
        std::pair(evaluate, "3,mira,z\n"), std::pair(predict, "3,,x\n"),
        std::pair(predict, "1,mira,x\n")}) {
    const Result result = with_row(command, row);
    EXPECT_EQ(result.code, 1) << command << row;
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("rows.csv:5"), Not(HasSubstr("device: "))));
  }
  EXPECT_FALSE(std::filesystem::exists(output));
  const Result odd_label = with_row(predict, "3,mira,z\n");
  EXPECT_EQ(odd_label.code, 0) << odd_label.err;
  EXPECT_EQ(Lines(Contents(output)), 4);

  config["data"]["on_bad_record"] = "skip";
  config["output"] = directory_.File("skips");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const Result skips =
      with_row("evaluate " + directory_.File("skips"), "3,,x\n");
  EXPECT_EQ(skips.code, 0) << skips.err;
  EXPECT_THAT(skips.err, HasSubstr("warning: skipped 1 bad record: "));
}

// The same of records that stay in their file.
TEST_F(EvaluateCommandTest, ChecksRecordsInFilesBeforeTheModelIsLoaded) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const json good = json::parse(Contents(directory_.File("data.json")));
  const std::string output = directory_.File("p.json");
  const auto expect_error = [&](const json& records, const std::string& part) {
    const std::string data =
        " --data " + directory_.Write("bad.json", records.dump());
    for (const std::string& command :
         {"evaluate " + run_, "predict " + run_ + " --output " + output}) {
      const Result result = Run(command + data);
      EXPECT_EQ(result.code, 1) << command;
      EXPECT_THAT(result.err, AllOf(HasSubstr("bad.json: record 5" + part),
                                    Not(HasSubstr("device: "))));
    }
  };
  json records = good;
  records.back()["query"] = 7;
  expect_error(records, ".query should be a string, but is 7");
  records = good;
  records.back()["id"] = "q1";
  expect_error(records, ": the id \"q1\" should occur once, but is that of ");
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(EvaluateCommandTest, SaysBeforeTheRunThatThereIsNothingToScore) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  json records = json::parse(Contents(directory_.File("data.json")));
  for (json& record : records) {
    record.erase("answer");
  }
  const Result result =
      Run(absl::StrCat("evaluate ", run_, " --data ",
                       directory_.Write("test.json", records.dump())));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the data have no answers, so there "
                                          "is nothing to score"),
                                Not(HasSubstr("device: "))));
}

// Evaluates a run of classify that has held out a quarter of its records.
class HeldOutCommandTest : public EvaluateCommandTest {
 protected:
  void SetUp() override {
    json config = Config();
    config["task"] = "classify";
    config["data"] = {{"train", {directory_.Write("docs.csv", rows_)}},
                      {"dev_fraction", 0.25}};
    ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  }
  Result Evaluate(const std::string& options = "") const {
    return Run(absl::StrCat("evaluate --json ", run_, options));
  }

  const std::string rows_ =
      "text,label\noslo,x\nrome,y\nlima,x\nmira,y\noslo mira,x\n"
      "rome mira,y\nlima mira,x\nmira lives,y\n";
};

TEST_F(HeldOutCommandTest, FindsItsRecordsAgainAfterAMove) {
  const Result trained = Evaluate();
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("\n2 examples in "));
  std::filesystem::rename(directory_.File("docs.csv"),
                          directory_.File("moved.csv"));
  const Result gone = Evaluate();
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, AllOf(HasSubstr("docs.csv"),
                              HasSubstr(" (give its new place with --data)")));
  const std::string data = " --data " + directory_.File("moved.csv");
  const Result moved = Evaluate(data);
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(moved.out, trained.out);
  EXPECT_THAT(moved.err,
              AllOf(HasSubstr("only the records that it held out of them "
                              "(data.dev_fraction) are evaluated, 2 of 8 "
                              "records, sha256:"),
                    HasSubstr("\n2 examples in ")));
  // Predictions are of all records, as are the scores of other ones.
  const std::string output = directory_.File("p.jsonl");
  EXPECT_EQ(
      Run(absl::StrCat("predict ", run_, data, " --output ", output)).code, 0);
  EXPECT_EQ(Lines(Contents(output)), 8);
  directory_.Write("moved.csv", rows_ + "lives,x\n");
  const Result other = Evaluate(data);
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("\n9 examples in "), Not(HasSubstr("held out"))));
}

// A file of another form than those of the training.
TEST_F(HeldOutCommandTest, TakesFieldsThatSayHowFilesAreRead) {
  const std::string data =
      " --data " +
      directory_.Write("semicolons.csv", "text;label\noslo;x\n;y\nmira;x\n");
  const std::string output = directory_.File("p.jsonl");
  const std::string predict =
      absl::StrCat("predict ", run_, data, " --output ", output);
  for (const Result& result : {Evaluate(data), Run(predict)}) {
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr("classify.delimiter \";\" reads that"));
  }
  const std::string reads =
      " --set 'classify.delimiter=;' --set data.on_bad_record=skip";
  const Result evaluated = Evaluate(data + reads);
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.err, AllOf(HasSubstr("\n2 examples in "),
                                   HasSubstr("skipped 1 bad record: ")));
  const Result predicted = Run(predict + reads);
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(Lines(Contents(output)), 2);
  for (const std::string other : {"classify.labels=[\"y\",\"x\"]",
                                  "train.seed=1", "classify.delimiter"}) {
    const Result refused =
        Run(absl::StrCat("evaluate ", run_, " --set '", other, "'"));
    EXPECT_EQ(refused.code, 1) << other;
    EXPECT_THAT(refused.err,
                HasSubstr(absl::StrCat("--set ", other,
                                       " should set one of the fields that say "
                                       "how the data of classify are read or "
                                       "answers decoded: classify.format, ")));
  }
}

// Fifteen pieces of context, seven of which have room beside the question.
TEST_F(EvaluateCommandTest, CutsWindowsOfSquadAnew) {
  const std::string data = directory_.Write(
      "squad.json",
      R"({"data":[{"paragraphs":[{"context":"mira lives in oslo . mira lives )"
      R"(in rome . mira lives in lima .","qas":[{"id":"a","question":)"
      R"("town mira","answers":[{"text":"oslo","answer_start":14}]}]}]}]})");
  json config = Config();
  config["task"] = "squad";
  config["squad"] = {{"max_query_length", 2}, {"doc_stride", 4}};
  config["data"] = {{"train", {data}},
                    {"dev", {data}},
                    {"max_long_length", 12},
                    {"max_global_length", 8}};
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string evaluate = "evaluate " + run_;
  EXPECT_THAT(Run(evaluate).err,
              AllOf(HasSubstr("\n3 examples in "), Not(HasSubstr("warning"))));
  const std::string closer = " --set squad.doc_stride=2";
  EXPECT_THAT(Run(evaluate + closer).err, HasSubstr("\n5 examples in "));
  const std::string predict =
      absl::StrCat("predict ", run_, " --data ", data, " --output ",
                   directory_.File("predictions.json"));
  EXPECT_THAT(Run(predict + closer).err, HasSubstr("\n5 examples in "));

  const auto warns = HasSubstr(
      "warning: squad.doc_stride 7 is not below the 7 pieces of a "
      "window beside a question of 2: windows do not overlap");
  const std::string apart = " --set squad.doc_stride=7";
  EXPECT_THAT(Run(evaluate + apart).err, warns);
  EXPECT_THAT(Run(predict + apart).err, warns);
  config["squad"]["doc_stride"] = 7;
  config["output"] = directory_.File("other");
  EXPECT_THAT(Run("train --dry-run " + WriteConfig(config)).err, warns);
}

// Every label is likely enough by a small threshold, none by a large one.
TEST_F(EvaluateCommandTest, DecodesByAThresholdOfItsOwn) {
  json config = Config();
  const std::string data =
      directory_.Write("docs.csv", "text,label\noslo,x;y\nrome,y\nlima,x\n");
  config["task"] = "classify";
  config["classify"] = {{"type", "several"}};
  config["data"] = {{"train", {data}}, {"dev", {data}}};
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  const std::string output = directory_.File("p.jsonl");
  const std::string predict =
      absl::StrCat("predict ", run_, " --data ", data, " --output ", output);
  const auto micro_f1 = [&](const std::string& threshold) {
    const std::string set = " --set classify.threshold=" + threshold;
    const Result evaluated = Run("evaluate --json " + run_ + set);
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_EQ(Run(predict + set).code, 0);
    const std::string score =
        absl::StrCat("score classify --json ", data, " ", output, " --config ",
                     directory_.File("run.json"), set);
    const Result scored = Run(score);
    EXPECT_EQ(scored.code, 0) << scored.err;
    // The same of a file that was decoded by another threshold.
    EXPECT_EQ(Run(predict).code, 0);
    EXPECT_EQ(Run(score).out, scored.out);
    const json scores = json::parse(evaluated.out);
    EXPECT_EQ(json::parse(scored.out)["micro_f1"], scores["micro_f1"]);
    return scores.value("micro_f1", -1.0);
  };
  // 4 of 6 are right.
  EXPECT_DOUBLE_EQ(micro_f1("0.000001"), 0.8);
  EXPECT_EQ(micro_f1("0.999999"), 0);
}

// Runs `realetc predict` with a trained model.
class PredictCommandTest : public RealetcTest {
 protected:
  void SetUp() override {
    json config = Config();
    config["train"]["evaluate_every"] = 0;
    ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
    records_ = json::parse(Contents(directory_.File("data.json")));
  }

  Result Predict(const std::string& data, const std::string& output) const {
    return Run(absl::StrCat("predict ", directory_.File("run"), " --data ",
                            data, " --output ", output));
  }
  std::string Write(const std::string& name, const json& records) {
    return directory_.Write(name, records.dump());
  }

  json records_;
  const std::string output_ = directory_.File("p.json");
};

TEST_F(PredictCommandTest, LooksAtNoAnswers) {
  json odd = records_;
  odd[0]["answer"] = nullptr;
  odd[1]["answer"] = "nowhere";
  odd[2]["answer"] = {1, 2};
  odd[3].erase("answer");
  const Result odd_result = Predict(Write("odd.json", odd), output_);
  EXPECT_EQ(odd_result.code, 0) << odd_result.err;
  const std::string predictions = Contents(output_);
  EXPECT_EQ(json::parse(predictions).size(), 6u);
  ASSERT_EQ(Predict(directory_.File("data.json"), output_).code, 0);
  EXPECT_EQ(Contents(output_), predictions);
}

TEST_F(PredictCommandTest, WritesToStandardOutputWhenAsked) {
  const std::string data = directory_.File("data.json");
  ASSERT_EQ(Predict(data, output_).code, 0);
  const Result result = Predict(data, "-");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, Contents(output_));
  EXPECT_THAT(result.err, HasSubstr("predictions in standard output\n"));
}

TEST_F(PredictCommandTest, RefusesIdsThatComeAgain) {
  json again = records_;
  again[4]["id"] = "q1";
  const std::string path = Write("again.json", again);
  const std::string message =
      absl::StrCat(path,
                   ": record 4: the id \"q1\" should occur once, but is "
                   "that of ",
                   path, ": record 1 too\n");
  const Result in_one = Predict(path, output_);
  EXPECT_EQ(in_one.code, 1);
  EXPECT_THAT(in_one.err, HasSubstr(message));
  EXPECT_FALSE(std::filesystem::exists(output_));
  const Result evaluate =
      Run(absl::StrCat("evaluate ", directory_.File("run"), " --data ", path));
  EXPECT_EQ(evaluate.code, 1);
  EXPECT_THAT(evaluate.err, HasSubstr(message));

  const std::string first = directory_.File("data.json");
  const std::string second = Write("second.json", {records_[3]});
  const Result in_two = Predict(first + " " + second, output_);
  EXPECT_EQ(in_two.code, 1);
  EXPECT_THAT(in_two.err, AllOf(HasSubstr(second + ": record 0: the id \"q3\""),
                                HasSubstr(first + ": record 3 too\n")));
}

TEST_F(PredictCommandTest, ReplacesNothingThatItReads) {
  const std::string data = directory_.File("data.json");
  const std::string before = Contents(data);
  const std::string link = directory_.File("link.json");
  std::filesystem::create_symlink(data, link);
  const std::string hard_link = directory_.File("hard.json");
  std::filesystem::create_hard_link(data, hard_link);
  const std::string checkpoint =
      directory_.File("run/seed-1/checkpoints/last/model.safetensors");
  ASSERT_TRUE(std::filesystem::exists(checkpoint));
  const std::string weights = Contents(checkpoint);
  for (const std::string& output :
       {data, link, hard_link, directory_.path() + "/./data.json",
        directory_.File("run/seed-1/checkpoints/best/vocab.txt"), checkpoint}) {
    const Result result = Predict(data, output);
    EXPECT_EQ(result.code, 1) << output;
    EXPECT_THAT(
        result.err,
        HasSubstr("--output should not replace what is read, but " + output));
  }
  EXPECT_EQ(Contents(data), before);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(Contents(checkpoint), weights);
  // The files of the run, whatever the checkpoint is called.
  for (const char* name : {"best", "best/"}) {
    const Result result =
        Run(absl::StrCat("predict ", directory_.File("run/seed-1/checkpoints/"),
                         name, " --data ", data, " --output ",
                         directory_.File("run/seed-1/metrics.jsonl")));
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("should not replace what is read"));
  }
}

TEST_F(PredictCommandTest, KeepsALinkToItsOutput) {
  const std::string link = directory_.File("link.json");
  std::filesystem::create_symlink(output_, link);
  const Result result = Predict(directory_.File("data.json"), link);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_regular_file(output_));
}

TEST_F(PredictCommandTest, SaysFirstThatItsOutputCannotBeWritten) {
  const std::string data = directory_.File("data.json");
  const std::string nowhere = directory_.File("nowhere.json");
  std::filesystem::create_symlink(directory_.File("no/p.json"), nowhere);
  const std::string below_file = directory_.File("data.json/p.json");
  for (const auto& [output, message] :
       {std::pair(below_file, std::string("which cannot be written: ")),
        std::pair(directory_.File("no/p.json"),
                  directory_.File("no is no directory")),
        std::pair(nowhere, directory_.File("no is no directory")),
        std::pair(directory_.path(), directory_.path() + " is a directory"),
        std::pair(std::string("''"), std::string("is empty"))}) {
    const Result result = Predict(data, output);
    EXPECT_EQ(result.code, 1) << output;
    EXPECT_THAT(result.err, HasSubstr(message));
    // Before the model is loaded.
    EXPECT_THAT(result.err, Not(HasSubstr("device: ")));
  }
}

TEST_F(PredictCommandTest, RefusesDataOfWhichNothingIsLeft) {
  json config = Config();
  config["train"]["evaluate_every"] = 0;
  config["data"]["on_bad_record"] = "skip";
  config["output"] = directory_.File("skips");
  ASSERT_EQ(Run("train " + WriteConfig(config)).code, 0);
  json bad = records_;
  bad[0].erase("query");
  const auto predict = [&](const json& records) {
    return Run(absl::StrCat("predict ", directory_.File("skips"), " --data ",
                            Write("bad.json", records), " --output ", output_));
  };
  const Result some = predict(bad);
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_THAT(some.err, HasSubstr("warning: skipped 1 bad record: "));
  EXPECT_EQ(json::parse(Contents(output_)).size(), 5u);
  std::filesystem::remove(output_);
  const Result none = predict({bad[0], bad[0]});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("there is nothing to predict: skipped 2 bad "
                                  "records, the first: "));
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(PredictCommandTest, SaysHowManyRecordsWereCut) {
  json some = records_;
  std::string support;
  for (int i = 0; i < 1250; ++i) {  // 5000 pieces of one sentence
    support += "mira lives in oslo ";
  }
  some[2]["supports"] = {support};
  const std::string path = Write("some.json", some);
  const std::string evaluate = "evaluate " + directory_.File("run");
  const std::string message =
      "\n1 record was cut: see data.max_long_length, data.max_global_length "
      "and the options of the task; \"q2\" lost 5000 pieces\n";
  EXPECT_THAT(Run(evaluate + " --data " + path).err,
              testing::EndsWith(message));
  EXPECT_THAT(Predict(path, output_).err, testing::EndsWith(message));
  EXPECT_THAT(Run(evaluate).err, Not(HasSubstr("cut: ")));
  // Relative positions reach further than the training did.
  const Result longer = Run(absl::StrCat(evaluate, " --data ", path,
                                         " --set data.max_long_length=6000"));
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.err, Not(HasSubstr("cut: ")));
  EXPECT_THAT(Run(evaluate + " --set data.workers=2").err,
              HasSubstr("data.max_long_length, data.max_global_length, "
                        "data.max_record_megabytes, data.on_bad_record"));
}

TEST_F(PredictCommandTest, LeavesUnansweredRecordsOutOfScoresAndSaysSo) {
  json some = records_;
  some[1].erase("answer");
  some[4].erase("answer");
  const std::string path = Write("some.json", some);
  const std::string run = directory_.File("run");
  const Result evaluate =
      Run(absl::StrCat("evaluate ", run, " --json --data ", path));
  EXPECT_EQ(evaluate.code, 0) << evaluate.err;
  EXPECT_THAT(evaluate.err,
              HasSubstr("warning: 2 records without an answer are "
                        "left out of the scores\n"));
  ASSERT_EQ(Predict(path, output_).code, 0);
  const Result score =
      Run(absl::StrCat("score wikihop --json ", path, " ", output_));
  EXPECT_EQ(score.code, 0) << score.err;
  EXPECT_THAT(score.err,
              HasSubstr(absl::StrCat(
                  "warning: 2 records without an answer are left out of the "
                  "scores, the first: ",
                  path, ": record 1\n")));
  EXPECT_EQ(json::parse(score.out)["accuracy"],
            json::parse(evaluate.out)["accuracy"]);
  EXPECT_EQ(json::parse(score.out)["answered"], 1.0);
  const Result whole = Run("evaluate " + run);
  EXPECT_THAT(whole.err, Not(HasSubstr("without an answer")));
}

}  // namespace
}  // namespace etc
