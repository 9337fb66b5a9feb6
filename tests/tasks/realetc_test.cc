// The program as people meet it: exit codes, one clear line for each mistake,
// help with examples, and the way from training to the official score on a
// handful of records. Results of commands are tested with the libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu_limit.h"
#include "nlohmann/json.hpp"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// --- Usage ------------------------------------------------------------------

TEST_F(RealetcTest, PrintsHelpWithoutArguments) {
  const Result result = Run("");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("train"));
  EXPECT_THAT(result.out, HasSubstr("PREFIX/share/realetc"));
  EXPECT_EQ(Run("--help").out, result.out);
}

TEST_F(RealetcTest, SaysWhatItIsMadeOf) {
  const Result result = Run("--version");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Lines(result.out), 8) << result.out;
  EXPECT_THAT(
      result.out,
      testing::ContainsRegex(
          "^realetc [0-9.]+( .commit [-0-9A-Za-z._]+.)?\nLibTorch: [0-9.]+.*\n"
          "linear layers: oneDNN [0-9.]+ for [A-Za-z0-9_]+, /.*libdnnl.*\n"
          "bfloat16: (no products|products by (AMX|oneDNN(, emulated)?))\n"
          "BLAS: (OpenBLAS|MKL: |/).+\nkernels: [A-Z0-9_]+\n"
          "devices: (no CUDA device|cuda:0 .+)\n"
          "threads: [0-9]+ of [0-9]+ cores?\n$"));
}

TEST_F(RealetcTest, EveryCommandHasHelpWithAnExample) {
  for (const std::string command :
       {"tokenize", "train", "evaluate", "predict", "score", "inspect",
        "estimate", "import", "export"}) {
    const Result result = Run(command + " --help");
    EXPECT_EQ(result.code, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("\n  realetc " + command + " "));
    // An option as it is declared: "--no-heads{false}".
    EXPECT_THAT(result.out, Not(ContainsRegex("--[-a-z]+[{]")));
  }
}

TEST_F(RealetcTest, SuggestsTheCommandThatIsMeant) {
  const Result result = Run("trian run.json");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err,
            "realetc: there is no command \"trian\"; did you mean "
            "\"train\"?\n");
}

TEST_F(RealetcTest, ReportsWrongUsageOnOneLine) {
  for (const std::string arguments :
       {"train", "predict somewhere", "inspect", "score wikihop gold.json",
        "evaluate x --residual on", "evaluate x --residual gate=x",
        "predict x --data y --output z --residual decay=1",
        "estimate x --no-such-option", "inspect x --config y",
        "import somewhere", "export x", "import x y --residual on",
        "import x y --residual sum=1", "tokenize a --output b --vocabulary c",
        "tokenize a --output b --vocabulary c --format pdf",
        "--no-such-option"}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_THAT(result.err, StartsWith("realetc: "));
    EXPECT_THAT(result.err, HasSubstr("--help"));
  }
}

// The id of a record is none.
TEST_F(RealetcTest, SaysWhatIsNoWholeNumber) {
  const auto mistake = [&](const std::string& number) {
    return Run("inspect --config x --record " + number).err;
  };
  EXPECT_THAT(mistake("q1"),
              HasSubstr("--record: should be a whole number, but is q1"));
  EXPECT_THAT(mistake("99999999999999999999"),
              HasSubstr("a whole number from -9223372036854775808 to "
                        "9223372036854775807, but is 99999999999999999999"));
}

// --- Failures ---------------------------------------------------------------

TEST_F(RealetcTest, ReportsFailuresOnOneLine) {
  const std::string config = WriteConfig(Config());
  struct Case {
    std::string arguments;
    std::string message_part;
  };
  const std::vector<Case> table = {
      {"estimate /nowhere/run.json", "/nowhere/run.json"},
      {"train " + config + " --set train.learning_rte=3e-5",
       "did you mean \"learning_rate\"?"},
      {"train " + config + " --set task=wikihopp --set wikihop.x=1",
       "there is no task \"wikihopp\"; did you mean \"wikihop\"?"},
      {"train " + config + " --set model.hidden_size=9",
       "set num_attention_heads as well, to 1 for heads of 9"},
      {"train --resume --allow-changes train.step " + config,
       "did you mean \"train.steps\"?"},
      {"train " + config + " --set model.vocab_size=18",
       "model.vocab_size is 18"},
      {"train " + config + " --set model.vocab_size=147",
       "model.vocab_size is 147"},
      {"train " + config + " --set tokenizer.vocabulary=",
       "tokenizer.vocabulary"},
      {"train " + config + " --set data.train='[\"/nowhere/a.json\"]'",
       "/nowhere/a.json"},
      {"train " + config + " --set output=", "output"},
      {"evaluate /nowhere", "/nowhere"},
      {"score wikihopp a.json b.json", "did you mean \"wikihop\"?"},
      {"score wikihop a.json /nowhere/b.json", "/nowhere/b.json"},
      {"score wikihop /nowhere/a.json " + directory_.Write("b.json", "{}"),
       "/nowhere/a.json"},
      {"inspect --config " + config + " --record 6", "record 6"},
      {"inspect /nowhere", "/nowhere"},
      {"import /nowhere --dry-run", "/nowhere"},
      {"export /nowhere out", "/nowhere"},
  };
  for (const Case& failure : table) {
    const Result result = Run(failure.arguments);
    EXPECT_EQ(result.code, 1) << failure.arguments;
    EXPECT_THAT(result.err, AllOf(StartsWith("realetc: "),
                                  HasSubstr(failure.message_part)));
    EXPECT_EQ(Lines(result.err), 1) << result.err;
  }
}

TEST_F(RealetcTest, WarnsOfATableRoundedUp) {
  for (const char* rows : {"20", "146"}) {
    const Result result =
        Run(absl::StrCat("inspect --record 0 --set model.vocab_size=", rows,
                         " --config ", WriteConfig(Config())));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr(absl::StrCat(
                    "has 19 pieces, and model.vocab_size is ", rows)));
  }
}

TEST_F(RealetcTest, TakesTheRowsFromTheVocabulary) {
  nlohmann::json config = Config();
  config["model"].erase("vocab_size");
  const std::string path = WriteConfig(config);
  const Result trained = Run("train " + path);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto model = nlohmann::json::parse(
      Contents(directory_.File("run/seed-1/checkpoints/best/etc_config.json")));
  EXPECT_EQ(model["vocab_size"], 19);
  const Result ended = Run("train --resume " + path);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Run("inspect --record 0 --config " + path).code, 0);
}

TEST_F(RealetcTest, CountsTheExamplesOfTrainingData) {
  const std::string sample = absl::StrCat(ETC_SOURCE_DIR, "/tasks/nq/sample/");
  const Result result = Run(absl::StrCat(
      "inspect --count --config ", ETC_SOURCE_DIR,
      "/tasks/nq/configs/demo.json --set tokenizer.vocabulary=", sample,
      "vocab.txt --set nq.include_unknown_rate=0 --data ", sample,
      "dev.jsonl"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("80 records, "));
  EXPECT_THAT(result.out,
              HasSubstr(" more left out: a window without answer, by "
                        "include_unknown_rate\n"));
}

TEST_F(RealetcTest, WarnsOfAStatedNumberOfExamplesThatItDoesNotCount) {
  const std::string count = "inspect --count --config " +
                            WriteConfig(Config()) +
                            " --set train.num_train_examples=";
  EXPECT_THAT(Run(count + "6").err, Not(HasSubstr("warning")));
  const Result result = Run(count + "44000");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("6 records, 6 examples\n"));
  EXPECT_THAT(result.err, HasSubstr("warning: train.num_train_examples, by "
                                    "which epochs are counted, is 44000, but "
                                    "data.train comes to 6"));
}

// --- Work -------------------------------------------------------------------

TEST_F(RealetcTest, GoesFromTrainingToTheOfficialScore) {
  const std::string config = WriteConfig(Config());
  const std::string data = directory_.File("data.json");
  const std::string best = directory_.File("run/seed-1/checkpoints/best");
  const std::string predictions = directory_.File("predictions.json");

  const Result trained = Run("train " + config);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr(best));

  const Result evaluate = Run("evaluate " + best);
  ASSERT_EQ(evaluate.code, 0) << evaluate.err;
  EXPECT_THAT(evaluate.out, StartsWith("accuracy  "));
  EXPECT_THAT(evaluate.err, HasSubstr("residual attention sum"));
  const std::string accuracy = evaluate.out.substr(0, evaluate.out.find('\n'));
  // The same score, which is said once and by its name.
  EXPECT_EQ(Lines(trained.out), 1) << trained.out;
  EXPECT_THAT(trained.out,
              HasSubstr(absl::StrCat("accuracy ", accuracy.substr(10))));
  EXPECT_THAT(trained.err, AllOf(HasSubstr("; 1 thread\n"),
                                 HasSubstr(": 6 training records, 6 for")));

  const Result predict =
      Run("predict " + best + " --data " + data + " --output " + predictions);
  ASSERT_EQ(predict.code, 0) << predict.err;
  EXPECT_EQ(nlohmann::json::parse(Contents(predictions)).size(), 6u);
  const Result score = Run("score wikihop " + data + " " + predictions);
  ASSERT_EQ(score.code, 0) << score.err;
  EXPECT_THAT(score.out, StartsWith(accuracy));

  // The same weights the other way.
  const Result off = Run("evaluate " + best +
                         " --residual off --threads 1 "
                         "--batch-size 2 --data " +
                         data);
  EXPECT_EQ(off.code, 0) << off.err;
  EXPECT_THAT(off.err, HasSubstr("residual attention off"));

  const Result inspect = Run("inspect " + best);
  EXPECT_EQ(inspect.code, 0) << inspect.err;
  EXPECT_THAT(inspect.out, AllOf(HasSubstr("encoder.embedding.token.weight"),
                                 HasSubstr("[19, 8]"),
                                 HasSubstr("Residual attention: sum")));

  EXPECT_EQ(Run("train " + config).code, 1) << "must not be overwritten";
  EXPECT_EQ(Run("train --resume " + config).code, 0);
}

// A page with one annotator has an answer, officially it has none.
// Found by a pattern: a configuration cannot spell it.
TEST_F(RealetcTest, TrainsOnFilesWhoseNamesAreNoText) {
  nlohmann::json config = Config();
  std::filesystem::create_directory(directory_.File("data"));
  std::filesystem::copy_file(directory_.File("data.json"),
                             directory_.File("data/caf\xE9.json"));
  config["data"]["train"] = {directory_.File("data/*.json")};
  config["data"]["dev"] = config["data"]["train"];
  const std::string train = "train " + WriteConfig(config);
  const Result result = Run(train);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Run(train + " --resume").code, 0);
  EXPECT_EQ(Run("evaluate " + directory_.File("run")).code, 0);
}

TEST_F(RealetcTest, ScoresAsTheOfficialProgramOnDemand) {
  const std::string answer =
      R"("long_answer":{"start_token":3,"end_token":12},"short_answers":[],)"
      R"("yes_no_answer":"NONE")";
  const std::string files = absl::StrCat(
      directory_.Write("gold.jsonl",
                       absl::StrCat(R"({"example_id":1,)",
                                    R"("annotations":[{)", answer, "}]}")),
      " ",
      directory_.Write(
          "predictions.json",
          absl::StrCat(
              R"({"predictions":[{"example_id":1,)", answer,
              R"(,"long_answer_score":1,"short_answers_score":0}]})")));
  const Result score = Run("score nq " + files);
  EXPECT_EQ(score.code, 0) << score.err;
  EXPECT_THAT(score.out, testing::ContainsRegex("long_f1[^0-9]+1"));
  const Result official = Run("score nq --as-official " + files);
  EXPECT_EQ(official.code, 0) << official.err;
  EXPECT_THAT(official.out,
              testing::Not(testing::ContainsRegex("long_f1[^0-9]+1")));
}

// Takes a run's checkpoint to the TensorFlow world, back, and into another run,
// which computes the same as the first one.
TEST_F(RealetcTest, ExportsImportsAndStartsFromEither) {
  nlohmann::json config = Config();
  const std::string path = WriteConfig(config);
  ASSERT_EQ(Run("train " + path).code, 0);
  const std::string best = directory_.File("run/seed-1/checkpoints/best");
  const std::string there = directory_.File("exported");
  const std::string back = directory_.File("imported");
  const Result exported = Run("export " + best + " " + there);
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr(there + "/model.ckpt"));

  const Result dry = Run("import " + there + " --dry-run --verbose");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("official ETC"), HasSubstr("transposed"),
                             HasSubstr("0 freshly initialised")));
  EXPECT_FALSE(std::filesystem::exists(back));
  ASSERT_EQ(Run("import " + there + " " + back).code, 0);
  EXPECT_EQ(Contents(back + "/vocab.txt"), Contents(best + "/vocab.txt"));
  const Result again = Run("import " + there + " " + back);
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("is there already"));

  const Result compare = Run("inspect " + back + " --compare " + there);
  EXPECT_EQ(compare.code, 0) << compare.err;
  EXPECT_THAT(compare.out, StartsWith("0 tensors differ"));
  EXPECT_THAT(Run("inspect " + best + " --compare " + back).out,
              HasSubstr("only in " + best));

  config["init"] = there;
  config.erase("model");
  config["tokenizer"] = nlohmann::json::object();
  config["residual_attention"] = "off";
  config["output"] = directory_.File("second");
  const Result second = Run("train " + WriteConfig(config));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err,
              HasSubstr("residual attention: pre-trained with sum, fine-tuning "
                        "with off"));
}

TEST_F(RealetcTest, DescribesARecord) {
  const Result result =
      Run(absl::StrCat("inspect --record 1 --config ", WriteConfig(Config())));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("q1"), HasSubstr("rome"), Not(HasSubstr("q2"))));
}

// The number is that of doc/model.md 1.2.
TEST_F(RealetcTest, EstimatesWithoutVocabularyAndData) {
  const Result result = Run(absl::StrCat(
      "estimate --set model='{\"preset\": \"base\"}' --set "
      "tokenizer.vocabulary=/nowhere/vocab.txt --set train.batch_size=32 ",
      WriteConfig(Config())));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("165 825 024"),
                                HasSubstr("residual scores (sum)"),
                                HasSubstr("GFLOP"), Not(HasSubstr("gates"))));
}

TEST_F(RealetcTest, WarnsOfMoreThreadsThanCores) {
  const int64_t threads = CpusOfProcess() + 1;
  const std::string config = WriteConfig(Config());
  const std::string is =
      absl::StrCat(" is ", threads, ", but this process may use ");
  EXPECT_THAT(Run("estimate " + config).err, Not(HasSubstr("may use")));
  for (const std::string command : {"estimate ", "train "}) {
    const Result result =
        Run(absl::StrCat(command, config, " --set train.threads=", threads));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("warning: train.threads" + is));
  }
  const Result evaluated = Run(absl::StrCat("evaluate ", directory_.File("run"),
                                            " --threads ", threads));
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.err, HasSubstr("warning: --threads" + is));
}

TEST_F(RealetcTest, EstimatesThePlanOfARunAndWhetherItFits) {
  const std::string command = absl::StrCat(
      "estimate ", WriteConfig(Config()),
      " --set model='{\"preset\": \"base\"}' --set train.memory_gigabytes=");
  EXPECT_THAT(Run(command + "1000").out,
              AllOf(ContainsRegex("\n    by memory_plan auto +kept\n"),
                    ContainsRegex("\n  a run may have +1.0 TB\n"),
                    Not(HasSubstr("evaluations fit"))));
  EXPECT_THAT(
      Run(command + "1").out,
      AllOf(ContainsRegex("\n    by memory_plan auto +(layers|slices)\n"),
            ContainsRegex("\n  a run may have +1.0 GB: too little\n"),
            Not(HasSubstr("evaluations fit"))));
  EXPECT_THAT(Run(command + "1 --set train.memory_plan=kept").out,
              AllOf(HasSubstr("1.0 GB: too little\n"),
                    Not(HasSubstr("by memory_plan"))));
}

// A batch so large that evaluations take more than updates.
TEST_F(RealetcTest, EstimatesEvaluationsAndHowManyExamplesFit) {
  const std::string command =
      absl::StrCat("estimate ", WriteConfig(Config()),
                   " --set train.memory_gigabytes=4 --set "
                   "data.max_long_length=4096 --set "
                   "train.evaluation_batch_size=");
  EXPECT_THAT(
      Run(command + "100000").out,
      AllOf(ContainsRegex("\n  evaluation, 100000 at a time +([0-9.]+ TB)\n"
                          "  peak +[0-9.]+ TB\n"),
            ContainsRegex("\n  a run may have +4.0 GB: too little\n"
                          "evaluations fit with "
                          "train.evaluation_batch_size=[0-9]+\n")));
  EXPECT_THAT(Run(command + "1").out,
              AllOf(ContainsRegex("\n  a run may have +4.0 GB\n"),
                    Not(HasSubstr("evaluations fit"))));
}

// Three numbers of four bytes for each parameter, of the head too.
TEST_F(RealetcTest, EstimatesTheDiskSpaceOfCheckpoints) {
  const std::string command = absl::StrCat(
      "estimate ", WriteConfig(Config()),
      " --set model='{\"preset\": \"base\", \"vocab_size\": 30522}' --set "
      "train.keep_last=4 --set train.steps=100 --set train.seeds=");
  const std::string of_seed =
      "\n  one checkpoint +2.0 GB\n  of a seed, at most +12 GB\n";
  EXPECT_THAT(Run(command + "[1]").out,
              AllOf(ContainsRegex(of_seed), Not(HasSubstr("seeds, at most"))));
  EXPECT_THAT(Run(command + "[1,2,3]").out,
              ContainsRegex(of_seed + "  of 3 seeds, at most +33 GB\n"));
}

// A gate for each of four blocks, 12 heads and 11 layers.
TEST_F(RealetcTest, EstimatesGatesAndDecay) {
  const std::string command = absl::StrCat(
      "estimate ", WriteConfig(Config()),
      " --set model='{\"preset\": \"base\", \"vocab_size\": 30522}' --set "
      "residual_attention=");
  const Result gate = Run(command + "gate");
  EXPECT_EQ(gate.code, 0) << gate.err;
  EXPECT_THAT(gate.out,
              AllOf(ContainsRegex("gates +528\n"), HasSubstr("165 825 552"),
                    HasSubstr("residual scores (gate)")));
  const Result decay = Run(command + "decay");
  EXPECT_EQ(decay.code, 0) << decay.err;
  EXPECT_THAT(decay.out, AllOf(HasSubstr("165 825 024"),
                               HasSubstr("residual scores (decay=0.9)")));
}

}  // namespace
}  // namespace etc
