// `realetc completion`: bash's function on command lines as bash splits them,
// with "=" as a word of its own; zsh's script by zsh itself, where it is
// installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class CompletionTest : public RealetcTest {
 protected:
  // The proposals for the last of `words`, in a directory with run.json.
  std::vector<std::string> Complete(const std::vector<std::string>& words) {
    const Result script = Run("completion bash");
    EXPECT_EQ(script.code, 0) << script.err;
    const std::string path = directory_.Write("realetc.bash", script.out);
    directory_.Write("run.json", "{}");
    std::string line = "COMP_WORDS=(realetc";
    for (const std::string& word : words) {
      absl::StrAppend(&line, " '", word, "'");
    }
    const std::string test = directory_.Write(
        "test.bash", absl::StrCat("set -u\nsource '", path, "'\n", line,
                                  ")\nCOMP_CWORD=", words.size(),
                                  "\n_realetc\n"
                                  "((${#COMPREPLY[@]})) && printf '%s\\n' "
                                  "\"${COMPREPLY[@]}\"\ntrue\n"));
    const std::string out = directory_.File("proposals");
    const std::string command =
        absl::StrCat("cd '", directory_.File(""), "' && bash --norc '", test,
                     "' >'", out, "' 2>'", out, ".err'");
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(Contents(out + ".err"), "") << absl::StrJoin(words, " ");
    return absl::StrSplit(Contents(out), '\n', absl::SkipEmpty());
  }
};

TEST_F(CompletionTest, ProposesCommandsAndOptions) {
  EXPECT_THAT(Complete({"tr"}), ElementsAre("train", "translate"));
  EXPECT_THAT(Complete({""}), AllOf(Contains("score"), Contains("completion"),
                                    Contains("--version")));
  EXPECT_THAT(Complete({"train", "--re"}),
              ElementsAre("--resume", "--resume-or-begin"));
  EXPECT_THAT(Complete({"train", "run.json", "--"}),
              AllOf(Contains("--set"), Contains("--output"), Contains("--help"),
                    Not(Contains("--data"))));
  EXPECT_THAT(Complete({"nonsense", "--"}), IsEmpty());
}

TEST_F(CompletionTest, ProposesFilesAndWordsOfArguments) {
  EXPECT_THAT(Complete({"train", "ru"}), ElementsAre("run.json"));
  EXPECT_THAT(Complete({"train", "run.json", "--output", "run"}),
              ElementsAre("run.json"));
  EXPECT_THAT(Complete({"score", "wi"}), ElementsAre("wikihop"));
  EXPECT_THAT(Complete({"score", "wikihop", "run"}), ElementsAre("run.json"));
  EXPECT_THAT(Complete({"completion", ""}), ElementsAre("bash", "zsh"));
  EXPECT_THAT(Complete({"fields", "--format", "m"}), ElementsAre("markdown"));
  EXPECT_THAT(
      Complete({"export", "run", "out", "--format", ""}),
      ElementsAre("tensorflow", "safetensors", "huggingface", "fairseq"));
  EXPECT_THAT(Complete({"embed", "run", "--pooling", ""}),
              ElementsAre("first", "mean"));
  EXPECT_THAT(Complete({"tokenize", "--invalid-utf8", "r"}),
              ElementsAre("replace"));
}

// Words behind COMMAND are those of the command itself.
TEST_F(CompletionTest, ProposesTheWordsOfALaunchedCommand) {
  EXPECT_THAT(Complete({"launch", "--p"}), ElementsAre("--processes"));
  EXPECT_THAT(Complete({"launch", "--processes", "2", "p"}),
              ElementsAre("predict"));
  EXPECT_THAT(Complete({"launch", "--processes", "=", "2", "tok"}), IsEmpty());
  for (std::vector<std::string> words :
       {std::vector<std::string>{"launch", "--processes", "2", "train"},
        {"launch", "--processes", "=", "2", "train"},
        {"launch", "--grace-seconds", "9", "--processes", "2", "train"}}) {
    const auto complete = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = words;
      all.insert(all.end(), more.begin(), more.end());
      return Complete(all);
    };
    EXPECT_THAT(complete({"--re"}),
                ElementsAre("--resume", "--resume-or-begin"));
    EXPECT_THAT(complete({"ru"}), ElementsAre("run.json"));
    EXPECT_THAT(complete({"run.json", "--set", "train.precision", "=", ""}),
                ElementsAre("fp32", "bf16"));
  }
}

TEST_F(CompletionTest, ProposesFieldsAndTheirValues) {
  EXPECT_THAT(Complete({"train", "run.json", "--set", "train.tens"}),
              ElementsAre("train.tensorboard="));
  EXPECT_THAT(Complete({"train", "run.json", "--set", "train.precision", "="}),
              ElementsAre("fp32", "bf16"));
  EXPECT_THAT(
      Complete({"train", "run.json", "--set", "train.precision", "=", "b"}),
      ElementsAre("bf16"));
  // One word, if COMP_WORDBREAKS has no "=".
  EXPECT_THAT(Complete({"train", "run.json", "--set", "train.tensorboard=t"}),
              ElementsAre("train.tensorboard=true"));
  // A path as a value, and the option behind a setting.
  EXPECT_THAT(Complete({"train", "run.json", "--set", "init", "=", "ru"}),
              ElementsAre("run.json"));
  EXPECT_THAT(
      Complete({"train", "run.json", "--set", "init", "=", "x", "--resume",
                "--allow-changes", "data.train", "optimizer.bet"}),
      ElementsAre("optimizer.beta1", "optimizer.beta2"));
  EXPECT_THAT(Complete({"train", "--set", "init", "=", "x", "run"}),
              ElementsAre("run.json"));
  // Words of a list, and a word that may stand for another kind of value; none
  // that only the description of the values has.
  const auto values = [&](const char* field, const char* word) {
    return Complete({"train", "run.json", "--set", field, "=", word});
  };
  EXPECT_THAT(values("task", "t"), ElementsAre("tokens", "translation"));
  EXPECT_THAT(values("openkp.indicators_to_cross", "parent_"),
              ElementsAre("parent_heading", "parent_leaf", "parent_bold"));
  EXPECT_THAT(values("classify.class_weights", ""), ElementsAre("balanced"));
  EXPECT_THAT(values("classify.labels", "sev"), IsEmpty());
  EXPECT_THAT(Complete({"fields", "nq.fixed"}),
              UnorderedElementsAre("nq.fixed_blocks", "nq.fixed_block_size"));
}

TEST_F(CompletionTest, RefusesOtherShells) {
  EXPECT_EQ(Run("completion fish").code, 2);
  EXPECT_EQ(Run("completion").code, 2);
}

// Its script is one that zsh reads, and its functions are there.
TEST_F(CompletionTest, IsAScriptOfZsh) {
  const Result script = Run("completion zsh");
  ASSERT_EQ(script.code, 0) << script.err;
  EXPECT_EQ(script.out.rfind("#compdef realetc\n", 0), 0u);
  if (std::system("command -v zsh >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "zsh is not installed";
  }
  const std::string path = directory_.Write("_realetc", script.out);
  EXPECT_EQ(std::system(absl::StrCat("zsh -n '", path, "'").c_str()), 0);
  // A field with values, and the functions of the completion system.
  const std::string out = directory_.File("proposals");
  const std::string command = absl::StrCat(
      "zsh -fc 'autoload -Uz compinit && compinit -D -u; source ", path,
      "; print $_comps[realetc]; _realetc_field_values train.precision' >'",
      out, "'");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(Contents(out), "_realetc\nfp32 bf16\n");
}

}  // namespace
}  // namespace etc
