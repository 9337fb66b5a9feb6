// Commands of a run as two processes, as people start them on one machine:
// pre-training and fine-tuning with the losses of one process, predictions with
// its bytes, the output of the first process alone; and what is said of a
// mistake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kLaunch[] = "launch --processes 2 ";
constexpr char kShort[] =
    " --set train.steps=4 --set train.evaluate_every=2 --set "
    "train.batch_size=6 --set train.micro_batch_size=2 --set train.threads=1";

class LaunchTest : public RealetcTest {
 protected:
  LaunchTest() { std::filesystem::current_path(ETC_SOURCE_DIR); }

  // Runs `command` into the directory `name`.
  Result Train(const std::string& command, const std::string& name) {
    Result result =
        Run(command + kShort + " --output " + directory_.File(name));
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }

  void ExpectSameNumbers(const std::string& name, const std::string& expected) {
    const auto lines = [&](const std::string& run) {
      return std::vector<std::string>(absl::StrSplit(
          Contents(directory_.File(run + "/seed-1/metrics.jsonl")), '\n',
          absl::SkipEmpty()));
    };
    const std::vector<std::string> some = lines(name);
    const std::vector<std::string> others = lines(expected);
    ASSERT_EQ(some.size(), others.size());
    for (size_t i = 0; i < some.size(); ++i) {
      const auto line = nlohmann::json::parse(some[i]);
      const auto other = nlohmann::json::parse(others[i]);
      for (const char* number : {"loss", "gradient_norm", "update_norm"}) {
        ASSERT_EQ(line.contains(number), other.contains(number)) << i;
        if (other.contains(number)) {
          EXPECT_NEAR(line[number].get<double>(), other[number].get<double>(),
                      1e-4 * other[number].get<double>())
              << number << " of line " << i;
        }
      }
      EXPECT_EQ(line.contains("evaluation"), other.contains("evaluation"));
      if (other.contains("evaluation")) {
        for (const auto& [metric, value] : other["evaluation"].items()) {
          // One or two of a few hundred answers may be nearly a tie.
          const bool is_share = absl::StrContains(metric, "accuracy");
          EXPECT_NEAR(line["evaluation"][metric].get<double>(),
                      value.get<double>(), is_share ? 1e-2 : 1e-3)
              << metric << " of line " << i;
        }
      }
    }
  }
};

// Hidden sentences are one another's negatives across processes.
TEST_F(LaunchTest, PretrainsAsOneProcessDoes) {
  const std::string store = directory_.File("corpus.tokens");
  ASSERT_EQ(Run("tokenize tasks/pretrain/sample/corpus.txt.gz --format bert "
                "--vocabulary tasks/wikihop/sample/vocab.txt --output " +
                store)
                .code,
            0);
  const std::string command =
      "train tasks/pretrain/configs/demo.json --set data.train='[\"" + store +
      "\"]' --set model.hidden_dropout_prob=0.1";
  Train(command, "one");
  const Result two = Train(kLaunch + command, "two");
  EXPECT_THAT(two.err, AllOf(HasSubstr("[0] seed 1\n"), Not(HasSubstr("[1]"))));
  EXPECT_THAT(two.out,
              AllOf(HasSubstr("[0] masked_lm_accuracy"),
                    HasSubstr("[0] cpc_accuracy"), Not(HasSubstr("[1]"))));
  ExpectSameNumbers("two", "one");
}

TEST_F(LaunchTest, FineTunesAndPredictsAsOneProcessDoes) {
  const std::string command = "train tasks/wikihop/configs/demo.json";
  Train(command, "one");
  Train(kLaunch + command, "two");
  ExpectSameNumbers("two", "one");

  const std::string checkpoint = directory_.File("one/seed-1/checkpoints/last");
  const std::string predict =
      "predict " + checkpoint +
      " --data tasks/wikihop/sample/dev.json --batch-size 7 --output ";
  const std::string expected = directory_.File("expected.json");
  ASSERT_EQ(Run(predict + expected).code, 0);
  const std::string file = directory_.File("predictions.json");
  const Result result = Run("launch --processes 3 " + predict + file);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(Contents(file) == Contents(expected));
  EXPECT_TRUE(Run(kLaunch + predict + "-").out == Contents(expected));
  const Result one = Run("evaluate --json " + checkpoint);
  const Result two = Run(kLaunch + ("evaluate --json " + checkpoint));
  EXPECT_EQ(two.out, one.out);
  EXPECT_TRUE(nlohmann::json::accept(two.out)) << two.out;
}

// The example is a command that works.
TEST_F(LaunchTest, RunsTheExampleOfItsHelp) {
  const Result help = Run("launch --help");
  const size_t begin = help.out.find("Example:\n  realetc ");
  ASSERT_NE(begin, std::string::npos) << help.out;
  std::string example =
      help.out.substr(begin + std::string("Example:\n  realetc ").size());
  while (absl::EndsWith(example, "\n")) {
    example.pop_back();
  }
  const Result result =
      Run(absl::StrCat(example, " --set train.steps=2 --set train.threads=1",
                       " --output ", directory_.File("run")));
  EXPECT_EQ(result.code, 0) << example << "\n" << result.err;
  EXPECT_TRUE(std::filesystem::exists(directory_.File("run/summary.json")));
}

TEST_F(LaunchTest, EndsAllAtAMistake) {
  const std::string output = " --output " + directory_.File("run");
  const Result result =
      Run(kLaunch + ("train tasks/wikihop/configs/demo.json --set "
                     "train.batch_size=1 --set train.micro_batch_size=1" +
                     output));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("fewer micro-batches (1) than there are processes (2): "
                        "train.batch_size should be at least 2"));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run/seed-1/lock")));
  const Result nccl =
      Run(kLaunch + ("train tasks/wikihop/configs/demo.json --set "
                     "train.backend=nccl --set train.device=cpu" +
                     output));
  EXPECT_EQ(nccl.code, 1);
  EXPECT_THAT(nccl.err,
              HasSubstr("train.backend is \"nccl\", but that sums on CUDA "
                        "devices, and device: cpu (train.device is \"cpu\")"));

  // A run that is there is not overwritten, and says so once.
  Train("train tasks/wikihop/configs/demo.json", "run");
  const Result again = Run(kLaunch + ("train tasks/wikihop/configs/demo.json" +
                                      std::string(kShort) + output));
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("has a run already"));
}

TEST_F(LaunchTest, RefusesCommandsThatShareNoWork) {
  for (const char* command : {"tokenize", "launch", "metrics", "fine-tune"}) {
    const Result result = Run(absl::StrCat(kLaunch, command));
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr(absl::StrCat(
                                "should be one of train, "
                                "evaluate, predict, whose processes share the "
                                "work, but is ",
                                command)));
  }
  const Result option = Run(absl::StrCat(kLaunch, "--foo 2 train config.json"));
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("realetc: --foo: launch has no such "
                                    "option; see realetc launch --help"));
}

// Also the names of the processes, as top, ps and pkill have them.
TEST_F(LaunchTest, SaysOnceThatAllHaveStopped) {
  const std::string output = directory_.File("run");
  const std::string names = directory_.File("names");
  const std::string err = directory_.File("err");
  const int status = std::system(
      absl::StrCat(
          ETC_PROGRAM, " ", kLaunch,
          "train tasks/wikihop/configs/demo.json --set train.seeds=[1]"
          " --set train.micro_batch_size=16 --output ",
          output, " >/dev/null 2>", err, " & launch=$!; until [ -s ", output,
          "/seed-1/metrics.jsonl ]; do kill -0 $launch || exit 1; sleep 0.05;"
          " done; for child in $(cat /proc/$launch/task/$launch/children); do"
          " cat /proc/$child/comm; done >",
          names, "; kill $launch; wait $launch")
          .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 75);
  EXPECT_EQ(Contents(names), "realetc\nrealetc\n");
  EXPECT_THAT(Contents(err),
              AllOf(HasSubstr("[0] realetc: stopped; everything is saved: the "
                              "same command with --resume goes on\n"),
                    HasSubstr("has stopped and saved (exit code 75)"),
                    Not(HasSubstr("[1] realetc"))));
}

}  // namespace
}  // namespace etc
