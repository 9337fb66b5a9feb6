// `realetc train` and `realetc translate` on a tiny language: lines in and out,
// and one clear message for each mistake.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/cpu_limit.h"
#include "tests/support/realetc_program.h"
#include "tests/tasks/translation/toy_language.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TranslateCommandTest : public RealetcTest {
 protected:
  std::string Train() {
    const std::string config = WriteConfig(config_);
    const Result trained = Run("train " + config);
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_THAT(trained.out, StartsWith("seed 1: loss "));
    return directory_.File("run");
  }

  // Makes pieces.model, the vocabulary of the next training.
  void UseSentencePiece() {
    const std::vector<std::string> files = language_.Files("train");
    const std::string model = directory_.File("pieces.model");
    const Result made = Run(absl::StrCat("vocabulary ", files[0], " ", files[1],
                                         " --size 30 --output ", model));
    ASSERT_EQ(made.code, 0) << made.err;
    config_["tokenizer"] = {{"type", "sentencepiece"}, {"vocabulary", model}};
  }

  ToyLanguage language_{&directory_};
  nlohmann::json config_ = language_.Config();
};

// The vocabulary decides the size of the model here.
TEST_F(TranslateCommandTest, InspectsAPairAndCountsBatches) {
  config_["model"].erase("vocab_size");
  config_["train"]["batch_size"] = 1;
  const std::string config = WriteConfig(config_);
  const std::string inspect = "inspect --config " + config;
  const Result pair = Run(inspect + " --record 0");
  EXPECT_EQ(pair.code, 0) << pair.err;
  EXPECT_THAT(pair.out,
              ContainsRegex("source, [0-9]+ tokens: .*\ntarget, [0-9]+ token"));
  const Result count = Run(inspect + " --count");
  EXPECT_EQ(count.code, 0) << count.err;
  const Result trained = Run("train " + config);
  ASSERT_EQ(trained.code, 0) << trained.err;
  // "40 records, 7 batches", and "; 7 batches of at most".
  const std::vector<std::string> words = absl::StrSplit(count.out, ' ');
  ASSERT_GE(words.size(), 4u) << count.out;
  EXPECT_THAT(trained.err, HasSubstr("; " + words[2] + " batches of at most"));
  const Result one = Run(inspect + " --count --data a");
  EXPECT_EQ(one.code, 1);
  EXPECT_THAT(one.err, HasSubstr("--data names one file, but translation reads "
                                 "two"));
}

TEST_F(TranslateCommandTest, TranslatesFilesAndStandardInput) {
  const std::string run = Train();
  const std::string input = directory_.Write("lines", "a b c\n\nd\nh g f e");
  const std::string translate = "translate " + run + "/seed-1/checkpoints/last";
  const Result of_file = Run(absl::StrCat(translate, " --input ", input));
  EXPECT_EQ(of_file.code, 0) << of_file.err;
  const std::vector<std::string> lines = absl::StrSplit(of_file.out, '\n');
  ASSERT_EQ(lines.size(), 5u) << of_file.out;
  EXPECT_NE(lines[0], "");
  EXPECT_EQ(lines[1], "");
  EXPECT_THAT(of_file.err, HasSubstr("4 lines translated"));
  EXPECT_EQ(Run(absl::StrCat(translate, " < ", input)).out, of_file.out);

  const std::string output = directory_.File("translations");
  const Result written =
      Run(absl::StrCat(translate, " --input ", input, " --output ", output));
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(Contents(output), of_file.out);

  const Result best = Run(absl::StrCat(translate, " --input ", input,
                                       " --beam 3 --n-best 2 --max-length 4"));
  EXPECT_EQ(Lines(best.out), 7) << best.out;
  EXPECT_THAT(best.out, StartsWith("1\t-"));

  ExpectMistake(absl::StrCat(translate, " --input ", input, " --beam 20"),
                "--beam should be from 1 to 19");
  ExpectMistake(
      absl::StrCat(translate, " --input ", input, " --output ", input),
      "--output");
  ExpectMistake(
      absl::StrCat(translate, " --input ", directory_.Write("bad", "a\n\xff\n"),
                   " --output ", output),
      "bad:2: a line should be UTF-8");
  ExpectMistake(
      absl::StrCat(translate, " --input ", directory_.Write("unknown", "y z\n"),
                   " --output ", output),
      "unknown:1: a line should have a token that the vocabulary");
  ExpectMistake(absl::StrCat("predict ", run,
                             "/seed-1/checkpoints/last --data x --output y"),
                "realetc translate");
}

// `... | realetc translate ... --output FILE 2>&1 | head -1`, after `head`.
TEST_F(TranslateCommandTest, WritesTheWholeFileWhereNobodyReadsItsMessages) {
  const std::string translate = "translate " + Train();
  const std::string input = directory_.Write("lines", "a b c\nd\n");
  const std::string output = directory_.File("translations");
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const std::string command = absl::StrCat(
      "cat ", input, " | ", ETC_PROGRAM, " ", translate, " --output ", output);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(1);
  }
  close(ends[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(Contents(output),
            Run(absl::StrCat(translate, " --input ", input)).out);
  EXPECT_EQ(Lines(Contents(output)), 2);
}

// `realetc translate ... | head -1`, after `head`.
TEST_F(TranslateCommandTest, EndsSilentlyWhereItsReaderHasLeft) {
  const std::string run = Train();
  const std::string input = directory_.Write("lines", "a b c\nd\n");
  const std::string err = directory_.File("err");
  const int status =
      std::system(absl::StrCat("{ sleep 0.1; ", ETC_PROGRAM, " translate ", run,
                               " --input ", input, " 2>", err, "; echo $? >",
                               directory_.File("code"), "; } | true")
                      .c_str());
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Contents(directory_.File("code")), "141\n");
  EXPECT_THAT(Contents(err), Not(HasSubstr("realetc: ")));
}

// `... | realetc translate ... --output FILE`, stopped before the input ends.
TEST_F(TranslateCommandTest, WritesAPartOfItsInputToAFileOfAnotherName) {
  const std::string run = Train();
  const std::string output = directory_.File("translations");
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  signal(SIGPIPE, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(ETC_PROGRAM, "realetc", "translate", run.c_str(), "--output",
          output.c_str(), "--batch-size", "1", nullptr);
    _exit(1);
  }
  close(ends[0]);
  // More than a pipe and the first reading hold: once it is written, the
  // program has translated the first line and is reading one whose end does not
  // come.
  const std::string begun =
      "a b c\n" +
      std::string(4 * static_cast<size_t>(fcntl(ends[1], F_GETPIPE_SZ)), 'a');
  EXPECT_EQ(write(ends[1], begun.data(), begun.size()), std::ssize(begun));
  kill(child, SIGTERM);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(ends[1]);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_EQ(Contents(output + ".part"),
            Run(absl::StrCat("translate ", run, " --input ",
                             directory_.Write("line", "a b c\n")))
                .out);
}

// Letters of the other case are not in the vocabulary of one language.
TEST_F(TranslateCommandTest, WarnsOfManyUnknownTokens) {
  std::string dictionary;
  for (char letter = 'a'; letter <= 'h'; ++letter) {
    absl::StrAppend(&dictionary, std::string(1, letter), " 10\n");
  }
  directory_.Write("dict.txt", dictionary);
  config_["train"]["steps"] = 1;
  config_["schedule"]["warmup_steps"] = 1;
  const std::string config = WriteConfig(config_);
  const std::string unknown =
      "tgt: 100.0 % of the tokens are unknown to the "
      "vocabulary";
  for (const std::string train : {"train --dry-run ", "train "}) {
    const Result trained = Run(train + config);
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_THAT(trained.err,
                AllOf(HasSubstr("60 pairs, unknown tokens 0.0 % / 100.0 %"),
                      ContainsRegex("warning: .*/train." + unknown)));
  }
  const std::string run = directory_.File("run");
  EXPECT_THAT(Run("evaluate " + run).err,
              ContainsRegex("warning: .*/dev." + unknown));
  EXPECT_THAT(
      Run(absl::StrCat("evaluate ", run, " --set data.max_long_length=7")).err,
      HasSubstr("data.max_long_length decides nothing for translation"));
  const std::string translate =
      absl::StrCat("translate ", run, " --max-length 4");
  const std::string input = directory_.Write("lines", "a x\nb\n");
  const std::string warning = "33.3 % of the tokens are unknown";
  EXPECT_THAT(Run(absl::StrCat(translate, " --input ", input)).err,
              HasSubstr("/lines: " + warning));
  EXPECT_THAT(Run(absl::StrCat(translate, " < ", input)).err,
              HasSubstr("stdin: " + warning));
  EXPECT_THAT(Run(absl::StrCat(translate, " --input ",
                               directory_.Write("known", "a b\n")))
                  .err,
              Not(HasSubstr("unknown")));
}

// A byte order mark and carriage returns are no text.
TEST_F(TranslateCommandTest, ReadsStandardInputAsItReadsFiles) {
  const std::string translate = "translate " + Train();
  const std::string marked =
      directory_.Write("marked", "\xEF\xBB\xBF\r\na b\r\nc");
  const Result of_pipe = Run(absl::StrCat(translate, " < ", marked));
  EXPECT_EQ(of_pipe.code, 0) << of_pipe.err;
  EXPECT_EQ(of_pipe.out,
            Run(absl::StrCat(translate, " --input ",
                             directory_.Write("plain", "\na b\nc\n")))
                .out);
  directory_.Write("marked",
                   "\xEF\xBB\xBF"
                   "a");
  EXPECT_EQ(Run(absl::StrCat(translate, " < ", marked)).out,
            Run(absl::StrCat(translate, " --input ", marked)).out);
}

TEST_F(TranslateCommandTest, ReplacesNoFileOfTheCheckpoint) {
  const std::string run = Train();
  const std::string input = directory_.Write("lines", "a b c\n");
  for (const char* const file : {"model.safetensors", "dict.txt"}) {
    const std::string path = run + "/seed-1/checkpoints/best/" + file;
    const std::string before = Contents(path);
    ExpectMistake(
        absl::StrCat("translate ", run, "/seed-1/checkpoints/best --input ",
                     input, " --output ", path),
        "--output should not replace what is read");
    EXPECT_TRUE(Contents(path) == before) << file;
  }
}

// A translation that is stopped would replace its input.
TEST_F(TranslateCommandTest, ReadsNoFileThatAPartOfTheOutputWouldReplace) {
  const std::string input = directory_.Write("lines.part", "a b\n");
  ExpectMistake(absl::StrCat("translate ", Train(), " --input ", input,
                             " --output ", directory_.File("lines")),
                "--output should not replace what is read");
  EXPECT_EQ(Contents(input), "a b\n");
}

TEST_F(TranslateCommandTest, LosesNoTranslationAtABadLine) {
  const std::string translate = "translate " + Train();
  const std::string bad = directory_.Write("bad", "a b\nc\ny z\nd\n");
  // A file is refused before its first translation.
  const Result of_file =
      Run(absl::StrCat(translate, " --batch-size 1 --input ", bad));
  EXPECT_EQ(of_file.code, 1);
  EXPECT_EQ(of_file.out, "");
  EXPECT_THAT(of_file.err, HasSubstr("bad:3: a line should have a token"));
  const std::string output = directory_.File("translations");
  EXPECT_EQ(
      Run(absl::StrCat(translate, " --input ", bad, " --output ", output)).code,
      1);
  EXPECT_FALSE(std::filesystem::exists(output));
  // Translations before a bad line of standard input are kept.
  const Result of_pipe = Run(absl::StrCat(translate, " < ", bad));
  EXPECT_EQ(of_pipe.code, 1);
  EXPECT_EQ(Lines(of_pipe.out), 2) << of_pipe.out;
  EXPECT_THAT(of_pipe.err, HasSubstr("stdin:3: a line should have a token"));
  const Result to_file =
      Run(absl::StrCat(translate, " --output ", output, " < ", bad));
  EXPECT_EQ(to_file.code, 1);
  EXPECT_THAT(to_file.err, HasSubstr(output + ".part: the first 2 lines"));
  EXPECT_EQ(Contents(output + ".part"), of_pipe.out);
  EXPECT_FALSE(std::filesystem::exists(output));
  // Lines of the input, each of which has two of the output.
  EXPECT_THAT(Run(absl::StrCat(translate, " --beam 2 --n-best 2 --output ",
                               output, " < ", bad))
                  .err,
              HasSubstr(output + ".part: the first 2 lines"));
  // The whole takes the place of a part.
  const std::string good = directory_.Write("good", "a b\nc\n");
  const Result whole =
      Run(absl::StrCat(translate, " --output ", output, " < ", good));
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.err,
              HasSubstr(output +
                        ".part, a part of an earlier translation, is removed"));
  EXPECT_EQ(Contents(output), of_pipe.out);
  EXPECT_FALSE(std::filesystem::exists(output + ".part"));
}

TEST_F(TranslateCommandTest, InspectsItsModel) {
  const Result shown = Run("inspect " + Train());
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("encoder-decoder: 2 and 2 layers (admin, admin)"),
            HasSubstr("residual attention: encoder mean, decoder mean, cross "
                      "mean"),
            HasSubstr("encoder_decoder.json: {"),
            testing::Not(HasSubstr("There is no configuration"))));
}

TEST_F(TranslateCommandTest, EvaluatesAndTriesRuns) {
  const std::string run = Train();
  const Result scores = Run("evaluate --bleu " + run);
  EXPECT_EQ(scores.code, 0) << scores.err;
  EXPECT_THAT(scores.out,
              AllOf(HasSubstr("loss"), HasSubstr("perplexity"),
                    HasSubstr("bleu"), HasSubstr("\nsignature: nrefs:1|")));
  EXPECT_THAT(scores.err, HasSubstr("residual attention mean, mean, mean"));
  // The signature that `realetc score translation --tokenized --json` prints.
  const Result as_json = Run("evaluate --bleu --json " + run);
  EXPECT_EQ(as_json.code, 0) << as_json.err;
  EXPECT_EQ(nlohmann::json::parse(as_json.out)["signature"],
            "nrefs:1|case:mixed|eff:no|tok:none|smooth:none");
  EXPECT_THAT(Run("evaluate --json " + run).out, Not(HasSubstr("signature")));
  // Both scores are of one checkpoint: it is looked for once.
  const std::vector<std::string> around =
      absl::StrSplit(scores.err, "checkpoint: ");
  EXPECT_EQ(around.size(), 2u) << scores.err;

  const std::string config = WriteConfig(language_.Config());
  const Result tried = Run("train --dry-run --overwrite " + config);
  EXPECT_EQ(tried.code, 0) << tried.err;
  EXPECT_THAT(tried.out,
              AllOf(HasSubstr("nothing was written"),
                    ContainsRegex("[0-9]+ updates on [0-9]+ batches, ")));
  const Result estimated = Run("estimate " + config);
  EXPECT_EQ(estimated.code, 0) << estimated.err;
  EXPECT_THAT(estimated.out,
              AllOf(HasSubstr("peak, about"), Not(HasSubstr("trained"))));
  // A parameter that is frozen has neither gradient nor moments.
  const Result frozen =
      Run("estimate " + config + " --set 'train.frozen=[\"*\"]'");
  EXPECT_EQ(frozen.code, 0) << frozen.err;
  EXPECT_THAT(frozen.out, ContainsRegex("trained +0\n"));
  EXPECT_THAT(frozen.out, ContainsRegex("optimizer +0 "));
  const Result grid = Run("estimate " + config +
                          " --set grid.train.learning_rate='[0.5, 0.25]'");
  EXPECT_EQ(grid.code, 0) << grid.err;
  EXPECT_THAT(
      grid.out,
      ContainsRegex("\nGrid of 2 settings, [0-9]+ runs; all above is of "
                    "the first one,\ntrain.learning_rate=0.5\n"));
}

TEST_F(TranslateCommandTest, TriesAnotherModeOnAllPaths) {
  const std::string run = Train();
  const std::string evaluate = "evaluate --json " + run;
  const Result trained = Run(evaluate);
  const Result same = Run(evaluate + " --residual mean");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.out, trained.out);
  EXPECT_THAT(same.err, Not(HasSubstr("trained with")));
  const Result off = Run(evaluate + " --bleu --residual off");
  EXPECT_EQ(off.code, 0) << off.err;
  EXPECT_NE(nlohmann::json::parse(off.out)["loss"],
            nlohmann::json::parse(trained.out)["loss"]);
  const std::string warning =
      "trained with mean, mean, mean, now off, off, off";
  EXPECT_THAT(off.err, AllOf(HasSubstr(warning),
                             HasSubstr("residual attention off, off, off")));
  const std::vector<std::string> around = absl::StrSplit(off.err, warning);
  EXPECT_EQ(around.size(), 2u) << off.err;
  EXPECT_THAT(Run(absl::StrCat("translate ", run, " --input ",
                               directory_.Write("line", "a\n"), " --threads ",
                               CpusOfProcess() + 1))
                  .err,
              HasSubstr("warning: --threads is "));

  const std::string translate =
      absl::StrCat("translate ", run, " --scores --input ",
                   directory_.Write("lines", "a b c\nd\n"));
  const Result translated = Run(translate);
  const Result otherwise = Run(translate + " --residual decay=0.5");
  EXPECT_EQ(otherwise.code, 0) << otherwise.err;
  EXPECT_THAT(otherwise.err, HasSubstr("now decay=0.5, decay=0.5, decay=0.5"));
  EXPECT_NE(otherwise.out, translated.out);
}

// Bad pairs, and those that are longer than the model's positions, are left out
// of the loss and of BLEU, and counted once. "y z" is nothing that the
// vocabulary knows.
TEST_F(TranslateCommandTest, ScoresThePairsOfTheLoss) {
  config_["model"]["max_source_positions"] = 8;
  config_["data"]["on_bad_record"] = "skip";
  const std::string evaluate = absl::StrCat(
      "evaluate ", Train(), " --data ",
      directory_.Write("odd.src", "a b c\n\ny z\na a a a a a a a a\nd\n"), " ",
      directory_.Write("odd.tgt", "C B A\nA\nB A\nA\nD\n"));
  for (const std::string bleu : {"", " --bleu"}) {
    const Result scores = Run(evaluate + bleu);
    EXPECT_EQ(scores.code, 0) << scores.err;
    EXPECT_THAT(scores.out, HasSubstr("loss"));
    EXPECT_EQ(absl::StrContains(scores.out, "bleu"), !bleu.empty());
    EXPECT_THAT(scores.err,
                ContainsRegex("warning: .*odd.tgt: 3 pairs, skipped 1, .*, "
                              "left out 1 of more than 8"));
    const std::vector<std::string> around =
        absl::StrSplit(scores.err, ", left out 1");
    EXPECT_EQ(around.size(), 2u) << scores.err;
  }
}

TEST_F(TranslateCommandTest, SaysWhyNoPairIsLeft) {
  config_["model"]["max_source_positions"] = 8;
  const std::string run = Train();
  const std::vector<std::string> files = {
      directory_.Write("long.src", "a a a a a a a a a\n"),
      directory_.Write("long.tgt", "A\n")};
  const std::string left_out =
      "long.tgt: 0 pairs, left out 1 of more than 8 source or 1024 target "
      "tokens";
  const Result scores =
      Run(absl::StrCat("evaluate ", run, " --data ", files[0], " ", files[1]));
  EXPECT_EQ(scores.code, 1);
  EXPECT_THAT(scores.err,
              ContainsRegex("there is nothing to evaluate: .*" + left_out));
  config_["data"]["train"] = files;
  const Result trained = Run("train --overwrite " + WriteConfig(config_));
  EXPECT_EQ(trained.code, 1);
  EXPECT_THAT(trained.err, ContainsRegex("data.train: there are no records in "
                                         ".*" +
                                         left_out));
}

TEST_F(TranslateCommandTest, RefusesAModelWithoutADecoder) {
  const std::string config = WriteConfig(Config());
  ASSERT_EQ(Run("train " + config).code, 0);
  // Before the evaluation, which may take hours.
  ExpectMistake(
      "evaluate --bleu " + directory_.File("run/seed-1/checkpoints/last"),
      "/seed-1/checkpoints/last is of wikihop, but --bleu is for translation");
  ExpectMistake(absl::StrCat("translate ", directory_.File("run"),
                             "/seed-1/checkpoints/last --input ",
                             directory_.Write("lines", "mira lives\n")),
                "is of wikihop, whose model has no decoder");
}

// The lines are those of the checkpoint before it went to fairseq and back.
TEST_F(TranslateCommandTest, TranslatesWhatItImportsFromFairseq) {
  const std::string input = directory_.Write("lines", "a b c\n\nd\nh g f e\n");
  const std::string exported = directory_.File("exported");
  const std::string imported = directory_.File("imported");
  for (const std::string type : {"dictionary", "sentencepiece"}) {
    if (type == "sentencepiece") {
      UseSentencePiece();
    }
    const std::string run = Train();
    const std::string translate =
        absl::StrCat(" --input ", input, " --scores --beam 3");
    const Result before = Run("translate " + run + translate);
    ASSERT_EQ(before.code, 0) << before.err;
    EXPECT_EQ(Lines(before.out), 4);
    ASSERT_EQ(Run("export " + run + " " + exported).code, 0);
    const Result taken = Run(absl::StrCat("import ", exported, " ", imported));
    ASSERT_EQ(taken.code, 0) << taken.err;
    EXPECT_EQ(taken.err, "");
    const Result after = Run("translate " + imported + translate);
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_EQ(after.out, before.out);
    // fairseq's beam of 5, length penalty of 1 and 200 tokens at most.
    EXPECT_EQ(Run(absl::StrCat("translate ", imported, " --input ", input)).out,
              Run(absl::StrCat("translate ", run, " --input ", input,
                               " --beam 5 --length-penalty 1 --max-length 200"))
                  .out);
    EXPECT_EQ(nlohmann::json::parse(
                  Contents(imported + "/run_config.json"))["tokenizer"]["type"],
              type);
    for (const std::string& directory : {run, exported, imported}) {
      std::filesystem::remove_all(directory);
    }
  }
}

TEST_F(TranslateCommandTest, ExportsAFileOfFairseq) {
  const std::string exported = directory_.File("exported");
  const std::string again = directory_.File("again");
  ASSERT_EQ(Run("export " + Train() + " " + exported).code, 0);
  const Result second =
      Run(absl::StrCat("export ", exported, "/model.pt ", again));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(Contents(again + "/model.pt") ==
              Contents(exported + "/model.pt"));
  EXPECT_EQ(Contents(again + "/dict.txt"), Contents(exported + "/dict.txt"));
}

TEST_F(TranslateCommandTest, NamesTranslationWhereAnEncoderIsExpected) {
  const Result refused = Run(absl::StrCat(
      "embed ", Train(), " --data ", directory_.Write("text", "a b c"),
      " --output ", directory_.File("vectors.npy")));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a translation model, which has a "
                                     "decoder"));
}

TEST_F(TranslateCommandTest, StartsFromADirectoryThatItExported) {
  config_["train"]["steps"] = 1;
  config_["schedule"]["warmup_steps"] = 1;
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + Train() + " " + exported).code, 0);
  EXPECT_THAT(Run("inspect " + exported).out,
              HasSubstr("encoder.embed_tokens.weight"));
  config_["init"] = exported;
  config_["output"] = directory_.File("second");
  const Result trained = Run("train " + WriteConfig(config_));
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err,
              HasSubstr("encoder-decoder: from " + exported));
}

TEST_F(TranslateCommandTest, ExportsNothingOfAModelThatFairseqLacks) {
  config_["model"]["encoder_residual_attention"] = "gate";
  config_["train"]["steps"] = 1;
  config_["schedule"]["warmup_steps"] = 1;
  const std::string exported = directory_.File("exported");
  const Result refused = Run("export " + Train() + " " + exported);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("fairseq has no gates"));
  EXPECT_THAT(refused.out, Not(HasSubstr("written")));
  EXPECT_FALSE(std::filesystem::exists(exported));
}

TEST_F(TranslateCommandTest, ExportsAWordForEachRow) {
  config_["model"]["vocab_size"] = 24;
  const std::string dictionary =
      Contents(directory_.File("dict.txt")) + "madeupword0001 0";
  directory_.Write("dict.txt", dictionary);
  config_["train"]["steps"] = 1;
  config_["schedule"]["warmup_steps"] = 1;
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + Train() + " " + exported).code, 0);
  EXPECT_EQ(
      Contents(exported + "/dict.txt"),
      dictionary + "\nmadeupword0000 0\nmadeupword0002 0\nmadeupword0003 0\n");
  EXPECT_EQ(Run("import --dry-run " + exported + "/model.pt").code, 0);
}

TEST_F(TranslateCommandTest, FindsTheVocabularyBesideAFairseqFile) {
  const std::string run = Train();
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + run + " " + exported).code, 0);
  EXPECT_THAT(Run("export " + run + " " + exported).err,
              HasSubstr("dict.txt is there already"));
  const std::string import = absl::StrCat("import ", exported, "/model.pt ");
  const std::string dictionary = Contents(exported + "/dict.txt");

  // Dictionaries as fairseq leaves them beside its data.
  for (const char* const name :
       {"exported/dict.en.txt", "exported/dict.de.txt"}) {
    directory_.Write(name, dictionary);
  }
  std::filesystem::remove(exported + "/dict.txt");
  const Result found = Run(import + "--dry-run");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("dict.de.txt, 20 ids"));
  directory_.Write("exported/dict.en.txt", dictionary + "z 1\n");
  ExpectMistake(import + "--dry-run", "dict.en.txt should be equal");
  directory_.Write("exported/dict.txt", dictionary + "z 1\n");
  ExpectMistake(import + "--dry-run",
                "dict.txt: should have 20 ids, the rows of the model, but has "
                "21");
  directory_.Write("exported/dict.txt", "a 1\nb 1\n");
  ExpectMistake(import + "--dry-run",
                "should have 20 ids, the rows of the "
                "model, but has 6");
  directory_.Write("exported/dict.txt", "a 1\nb\n");
  ExpectMistake(import + "--dry-run", "dict.txt:2: a line of fairseq's");
  directory_.Write("exported/dict.txt", dictionary);
  UseSentencePiece();
  std::filesystem::copy(directory_.File("pieces.model"),
                        exported + "/tokenizer.model");
  ExpectMistake(import + "--dry-run", "tokenizer.model: piece 4 should be");
  EXPECT_EQ(Run(absl::StrCat(import, "--dry-run --vocabulary ", exported,
                             "/dict.txt"))
                .code,
            0);
}

// A model to begin from, which cannot translate.
TEST_F(TranslateCommandTest, ImportsAFairseqFileWithoutAVocabulary) {
  const std::string run = Train();
  const std::string exported = directory_.File("exported");
  const std::string imported = directory_.File("imported");
  ASSERT_EQ(Run("export " + run + " " + exported).code, 0);
  std::filesystem::remove(exported + "/dict.txt");
  const Result taken =
      Run(absl::StrCat("import ", exported, "/model.pt ", imported));
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("without which nothing can be translated"));
  ExpectMistake(
      "translate " + imported + " --input " + language_.Files("dev")[0],
      "should be a checkpoint");
  nlohmann::json config = language_.Config();
  config["init"] = imported;
  config["output"] = directory_.File("second");
  const Result trained = Run("train " + WriteConfig(config));
  EXPECT_EQ(trained.code, 0) << trained.err;
}

// Configurations of the repository, whose data are elsewhere.
TEST_F(TranslateCommandTest, ReadsShippedConfigurations) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           ETC_SOURCE_DIR "/tasks/translation/configs")) {
    const std::string path = entry.path().string();
    const Result estimated = Run("estimate " + path);
    EXPECT_EQ(estimated.code, 0) << path << estimated.err;
    EXPECT_EQ(estimated.err, "") << path;
    EXPECT_THAT(estimated.out, HasSubstr("peak, about"));
    ExpectMistake(
        absl::StrCat("train ", path, " --output ", directory_.File("shipped")),
        nlohmann::json::parse(Contents(path))["tokenizer"]["vocabulary"]);
    ++count;
  }
  EXPECT_EQ(count, 5);
}

// The rows of the README's table: parameters are those of doc/translation.md
// 1.7, where it has the vocabulary.
TEST_F(TranslateCommandTest, EstimatesTheSizesOfThePaper) {
  const std::string folder = ETC_SOURCE_DIR "/tasks/translation/";
  int rows = 0;
  for (const absl::string_view line :
       absl::StrSplit(Contents(folder + "README.md"), '\n')) {
    if (!absl::StartsWith(line, "| En-")) {
      continue;
    }
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    ASSERT_EQ(cells.size(), 6u) << line;
    std::string arguments = "estimate " + folder + "configs/";
    absl::StrAppend(&arguments,
                    absl::StrReplaceAll(cells[2], {{"`", ""}, {" ", ""}}));
    for (const absl::string_view field :
         absl::StrSplit(cells[3], absl::ByAnyChar("` "), absl::SkipEmpty())) {
      absl::StrAppend(&arguments, " --set ", field);
    }
    const Result estimated = Run(arguments);
    EXPECT_EQ(estimated.code, 0) << arguments << estimated.err;
    EXPECT_THAT(estimated.out,
                ContainsRegex(absl::StrCat(
                    "total +", absl::StripAsciiWhitespace(cells[4]), "\n")));
    ++rows;
  }
  EXPECT_EQ(rows, 5);
}

TEST_F(TranslateCommandTest, RefusesMistakesInConfigurations) {
  nlohmann::json config = language_.Config();
  const auto expect = [&](const std::string& part) {
    ExpectMistake("train " + WriteConfig(config), part);
    config = language_.Config();
  };
  config["model"]["hidden"] = 3;
  expect("model");
  config["translation"]["beam"] = 3;
  expect("beam_size");
  config["train"]["micro_batch_size"] = 2;
  expect("train.micro_batch_size should be 1 for translation");
  config["data"]["train"] = {language_.Files("train")[0]};
  expect("in turns, but there are 1 names");
  config["data"]["train"] = {language_.Files("train")[0],
                             language_.Files("dev")[1]};
  expect("should have the same number of lines, but have 60 and 7");
  config["tokenizer"]["type"] = "wordpiece";
  expect("tokenizer.type should be \"sentencepiece\" or \"dictionary\"");
  config["translation"]["max_tokens"] = 3;
  expect("at most 3 tokens (translation.max_tokens)");
}

}  // namespace
}  // namespace etc
