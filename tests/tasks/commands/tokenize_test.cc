// `realetc tokenize` as people meet it: the summary, one clear line for each
// mistake, and a store that is there whole or not at all when the program is
// ended from outside: by SIGKILL in the middle of any of its file operations,
// behind a preloaded shim, and by SIGINT. The contents of a store are tested
// with the library (pretrain/tokenize_corpus_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tests/support/gzip_member.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class TokenizeTest : public RealetcTest {
 protected:
  TokenizeTest() {
    directory_.Write("vocab.txt",
                     "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\n.\n");
    directory_.Write("corpus.txt", "The cat sat.\nThe dog sat.\n\nA cat.\n");
    std::filesystem::create_directory(directory_.File("out"));
  }

  std::string Store() const { return directory_.File("out/corpus.tokens"); }

  // Adds the options that a case does not change.
  std::string Arguments(const std::string& more = "") const {
    return absl::StrCat("tokenize ", directory_.File("corpus.txt"),
                        " --format bert --vocabulary ",
                        directory_.File("vocab.txt"), " --output ", Store(),
                        " --threads 2 ", more);
  }

  // Names in the directory of the store.
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.File("out"))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  // 440 MB of text in a file of less than 1 MB.
  void WriteLongCorpus() {
    std::string text;
    while (text.size() < 4'400'000) {
      text += "The cat sat where the other cat had sat before.\n\n";
    }
    const std::string member = GzipMember(text);
    std::string file;
    for (int i = 0; i < 100; ++i) {
      file += member;
    }
    directory_.Write("corpus.txt", file);
  }
};

// The program, the options --cased and --uncased and the files beside a
// vocabulary.
TEST_F(TokenizeTest, UsesTheVocabularyAsItsFilesSay) {
  directory_.Write("vocab.txt",
                   "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nThe\nA\ncat\ndog\nsat\n"
                   ".\n");
  const Result cased = Run(Arguments());
  EXPECT_EQ(cased.code, 0) << cased.err;
  EXPECT_THAT(cased.out, HasSubstr("0.000 %"));
  EXPECT_THAT(cased.err, HasSubstr("taken for a cased one"));
  EXPECT_THAT(Run(Arguments("--cased")).err, IsEmpty());
  const Result uncased = Run(Arguments("--uncased"));
  EXPECT_EQ(uncased.code, 0) << uncased.err;
  EXPECT_THAT(uncased.out, Not(HasSubstr("0.000 %")));
  EXPECT_THAT(uncased.err, HasSubstr("never used"));
  EXPECT_EQ(Run(Arguments("--cased --uncased")).code, 2);
  directory_.Write("tokenizer_config.json", R"({"do_lower_case": true})");
  const Result folded = Run(Arguments());
  EXPECT_EQ(folded.code, 0) << folded.err;
  EXPECT_THAT(folded.out, Not(HasSubstr("0.000 %")));
  const Result refused = Run(Arguments("--cased"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("--cased"), HasSubstr("do_lower_case is true")));
  directory_.Write("tokenizer_config.json", R"({"do_basic_tokenize": false})");
  EXPECT_THAT(Run(Arguments()).err, HasSubstr("do_basic_tokenize is false"));
}

TEST_F(TokenizeTest, SaysWhatItMade) {
  const Result result = Run(Arguments());
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err,
            "realetc: warning: 18.2 % of tokens are unknown: is this "
            "vocabulary of this language, and of this case?\n");
  EXPECT_THAT(result.out,
              AllOf(StartsWith("documents  2\nsentences  3\ntokens     11; 3.7 "
                               "a sentence, 4 at most\nunknown    18.182 %\n"),
                    ContainsRegex("\ntext       .* MB/s and core\nmemory "),
                    HasSubstr(absl::StrCat("\nstore      ", Store(), ", 4."))));
  const auto store = TokenStore::Open(Store());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->num_tokens(), 11);
}

TEST_F(TokenizeTest, WarnsOfWhatMayNotBeMeant) {
  directory_.Write("corpus.txt",
                   "The c\xFF"
                   "at.\nThe cat.\n");
  const Result result = Run(Arguments());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("realetc: warning: 1 sequence of bytes that are "
                              "not UTF-8"),
                    HasSubstr("realetc: warning: the corpus is one document")));

  const std::string second =
      directory_.Write("corpus2.txt", "The \xE9 d\xF6g.\n");
  EXPECT_THAT(
      Run(Arguments(second)).err,
      AllOf(HasSubstr("the end of a file ends a document\n"),
            HasSubstr("realetc: warning: 3 sequences of bytes that"),
            HasSubstr(absl::StrCat("became U+FFFD, 2 of them in ", second))));
}

TEST_F(TokenizeTest, WarnsOfFilesThatAreNoText) {
  const auto tokenize = [this](const std::string& text,
                               const std::string& format) {
    directory_.Write("corpus.txt", text);
    return Run(absl::StrCat(
        "tokenize ", directory_.File("corpus.txt"), " --format ", format,
        " --vocabulary ", directory_.File("vocab.txt"), " --output ", Store()));
  };
  const std::string json = "{\"text\": \"The cat sat.\"}\n";
  EXPECT_THAT(tokenize(json, "text").err,
              HasSubstr("corpus.txt looks like JSON lines, but is read as text "
                        "(--format jsonl --field NAME reads a field of JSON "
                        "lines)"));
  EXPECT_THAT(tokenize(json, "jsonl").err, Not(HasSubstr("looks like")));
  EXPECT_THAT(tokenize("<doc id=\"1\">\nThe cat.\n", "text").err,
              HasSubstr("corpus.txt looks like the output of WikiExtractor"));
  EXPECT_THAT(tokenize("<mediawiki xmlns=\"\">\n", "text").err,
              HasSubstr("corpus.txt looks like a dump of MediaWiki"));
  EXPECT_THAT(tokenize("The cat.\n" + json, "text").err,
              Not(HasSubstr("looks like")));
}

TEST_F(TokenizeTest, LeavesOutBadLinesIfAsked) {
  const std::string arguments =
      absl::StrCat("tokenize ",
                   directory_.Write("a.jsonl",
                                    "{\"text\": \"The cat sat.\"}\nnull\n"
                                    "{\"text\": \"A cat. The cat.\"}\n\"\n"),
                   " --format jsonl --vocabulary ",
                   directory_.File("vocab.txt"), " --output ", Store());
  ExpectMistake(arguments, "a.jsonl:2: the line should be a JSON object");
  EXPECT_THAT(Left(), IsEmpty());
  const Result skipped = Run(arguments + " --bad-lines skip");
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, StartsWith("documents  2\nsentences  3\n"));
  EXPECT_THAT(skipped.err,
              HasSubstr(absl::StrCat("realetc: warning: 2 lines left out; the "
                                     "first: ",
                                     directory_.File("a.jsonl"), ":2: ")));
}

TEST_F(TokenizeTest, ReadsStandardInput) {
  ASSERT_EQ(Run(Arguments()).code, 0);
  const std::string store = Contents(Store());
  const std::string corpus = directory_.File("corpus.txt");
  const std::string piped =
      absl::StrCat("tokenize - --format bert --vocabulary ",
                   directory_.File("vocab.txt"), " --output ", Store());
  std::filesystem::remove(Store());
  const Result result = Run(absl::StrCat(piped, " < ", corpus));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(Contents(Store()) == store);
  directory_.Write("corpus.txt", GzipMember("The cat.\n"));
  const Result packed = Run(absl::StrCat(piped, " < ", corpus));
  EXPECT_EQ(packed.code, 1);
  EXPECT_THAT(packed.err, HasSubstr("stdin should be text, but is packed by "
                                    "gzip: unpack it first"));
}

// Also one to a store that is not there yet.
TEST_F(TokenizeTest, WritesTheFileBehindALink) {
  std::filesystem::create_directory(directory_.File("disk"));
  std::filesystem::create_symlink("../disk/corpus.tokens", Store());
  for (int i = 0; i < 2; ++i) {
    const Result result = Run(Arguments());
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(std::filesystem::is_symlink(Store()));
    EXPECT_TRUE(std::filesystem::is_regular_file(
        directory_.File("disk/corpus.tokens")));
    EXPECT_TRUE(TokenStore::Open(Store()).ok());
  }
}

TEST_F(TokenizeTest, WarnsOfDocumentsOfOneSentence) {
  std::string spaced;
  std::string joined;
  for (int i = 0; i < 40; ++i) {
    spaced += "The cat sat.\n\n";
    joined += i % 8 == 7 ? "The cat sat.\n\n" : "The cat sat.\n";
  }
  directory_.Write("corpus.txt", spaced);
  EXPECT_THAT(Run(Arguments()).err,
              AllOf(HasSubstr("realetc: warning: 40 documents have 40 "
                              "sentences"),
                    HasSubstr("a blank line ends a document")));
  directory_.Write("corpus.txt", joined);
  EXPECT_THAT(Run(Arguments()).err, Not(HasSubstr("warning")));
}

TEST_F(TokenizeTest, ReplacesAStoreButNoOtherFile) {
  ASSERT_EQ(Run(Arguments()).code, 0);
  EXPECT_EQ(Run(Arguments()).code, 0);
  directory_.Write("out/corpus.tokens", "a diary");
  const Result result = Run(Arguments());
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err,
            absl::StrCat("realetc: --output names ", Store(),
                         ", which is there already and is no token store\n"));
  EXPECT_EQ(Contents(Store()), "a diary");
}

// The vocabulary is named by its directory, as that of a checkpoint.
TEST_F(TokenizeTest, ReplacesAStoreBesideTheVocabularyButNotTheVocabulary) {
  const std::string folder = directory_.File("model");
  std::filesystem::create_directory(folder);
  std::filesystem::copy(directory_.File("vocab.txt"), folder);
  const auto tokenize = [&](const std::string& name) {
    return Run(absl::StrCat("tokenize ", directory_.File("corpus.txt"),
                            " --format bert --vocabulary ", folder,
                            " --output ", folder, "/", name));
  };
  EXPECT_EQ(tokenize("corpus.tokens").code, 0);
  const Result again = tokenize("corpus.tokens");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(tokenize("vocab.txt").err,
              HasSubstr("--output should not replace what is read"));
}

TEST_F(TokenizeTest, ReportsMistakesOnOneLine) {
  directory_.Write("unmasked.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
  directory_.Write("doubled.txt",
                   "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nthe\n");
  directory_.Write("empty.txt", "\n \n");
  directory_.Write("broken.gz", GzipMember("the cat\n").substr(0, 20));
  directory_.Write("a.model", "x");
  const std::string json =
      directory_.Write("a.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n");
  // All but the vocabulary, the files and the format.
  const auto with = [this](const std::string& vocabulary,
                           const std::string& rest) {
    return absl::StrCat("tokenize --output ", Store(), " --vocabulary ",
                        directory_.File(vocabulary), " ", rest);
  };
  struct Case {
    std::string arguments;
    std::string message_part;
  };
  const std::string corpus = directory_.File("corpus.txt");
  const std::vector<Case> table = {
      {with("unmasked.txt", corpus + " --format bert"),
       "unmasked.txt: the vocabulary (5 pieces) should have \"[MASK]\""},
      {with("doubled.txt", corpus + " --format bert"),
       "doubled.txt:7: \"the\" is in line 6 already"},
      {with("nowhere.txt", corpus + " --format bert"), "nowhere.txt"},
      {with("out", corpus + " --format bert"), "out should have a vocabulary"},
      {with("vocab.txt", "/nowhere/a.txt --format bert"), "/nowhere/a.txt"},
      {with("vocab.txt", absl::StrCat(corpus, " '", directory_.File("c*.txt"),
                                      "' --format bert")),
       "corpus.txt is named twice: a file should be named once"},
      {with("vocab.txt", "'/nowhere/*.txt' --format bert"),
       "no file that matches /nowhere/*.txt"},
      {with("vocab.txt", directory_.File("empty.txt") + " --format bert"),
       "the corpus is empty: 1 file with 3 bytes"},
      {with("vocab.txt", directory_.File("broken.gz") + " --format bert"),
       "broken.gz"},
      {with("vocab.txt", json + " --format jsonl"),
       "a.jsonl:2: the line should be a JSON object with a string in the field "
       "\"text\", but its fields are: \"txt\""},
      {with("vocab.txt", corpus + " --format text --documents 0"),
       "--documents should be"},
      {with("vocab.txt", corpus + " --format bert --documents 3"),
       "--documents is for --format text"},
      {with("vocab.txt", corpus + " --format text --glue-files"),
       "--glue-files is for --format bert"},
      {with("vocab.txt", corpus + " --format text --sentences /nowhere"),
       "--sentences: "},
      {with("vocab.txt", corpus + " --format bert --field text"),
       "--field is for --format jsonl"},
      {with("vocab.txt", corpus + " --format bert --bad-lines skip"),
       "--bad-lines is for --format jsonl"},
      {with("vocab.txt", corpus + " --format bert --sentences icu"),
       "--sentences is for --format text and jsonl"},
      {with("vocab.txt", corpus + " --format bert --split-punctuation"),
       "--split-punctuation is for a vocabulary of sentencepiece, but "},
      {with("a.model", corpus + " --format bert --cased"),
       "--cased is for a vocabulary of wordpiece, but "},
      {with("a.model", corpus + " --format bert --uncased"),
       "--uncased is for a vocabulary of wordpiece, but "},
      {absl::StrCat("tokenize ", corpus, " --format bert --vocabulary ",
                    directory_.File("vocab.txt"),
                    " --output /nowhere/corpus.tokens"),
       "/nowhere/corpus.tokens"},
  };
  for (const Case& mistake : table) {
    const Result result = Run(mistake.arguments);
    EXPECT_EQ(result.code, 1) << mistake.arguments;
    EXPECT_THAT(result.err, AllOf(StartsWith("realetc: "),
                                  HasSubstr(mistake.message_part)));
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_THAT(Left(), IsEmpty()) << mistake.arguments;
  }
}

// Four files are created, filled, joined, renamed and removed: some thirty
// operations, each of which is the last one of a start.
TEST_F(TokenizeTest, LeavesNoStoreWhenItIsKilled) {
  if (ETC_SANITIZED) {
    GTEST_SKIP() << "a sanitizer's runtime must be loaded before all else";
  }
  ASSERT_EQ(Run(Arguments()).code, 0);
  const std::string whole = Contents(Store());
  std::filesystem::remove(Store());
  int kills = 0;
  int kills_before_the_store = 0;
  for (int kill_at = 1; kill_at < 100; kill_at += 3) {
    const int status = std::system(
        absl::StrCat("exec env ETC_SHIM_DIRECTORY=", directory_.File("out"),
                     " ETC_SHIM_KILL_AT=", kill_at, " LD_PRELOAD=", ETC_SHIM,
                     " ", ETC_PROGRAM, " ", Arguments(), " >/dev/null 2>&1")
            .c_str());
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ++kills;
    if (std::filesystem::exists(Store())) {
      // After the renaming: it is whole.
      ASSERT_TRUE(Contents(Store()) == whole) << kill_at;
      std::filesystem::remove(Store());
    } else {
      ++kills_before_the_store;
    }
    for (const std::string& name : Left()) {
      ASSERT_TRUE(absl::EndsWith(name, ".tmp")) << name;
    }
  }
  EXPECT_GE(kills_before_the_store, 8);
  EXPECT_GT(kills, kills_before_the_store);
  // The next one that is left alone removes what they have left.
  ASSERT_EQ(Run(Arguments()).code, 0);
  EXPECT_THAT(Left(), testing::ElementsAre("corpus.tokens"));
  EXPECT_TRUE(Contents(Store()) == whole);
}

TEST_F(TokenizeTest, StopsAtInterruptAndLeavesNothing) {
  WriteLongCorpus();
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string err = directory_.File("err");
    const pid_t child = fork();
    if (child == 0) {
      const char* program = ETC_PROGRAM;
      std::freopen(err.c_str(), "w", stderr);
      execl("/bin/sh", "sh", "-c",
            absl::StrCat("exec ", program, " ", Arguments()).c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 30'000 && Left().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_THAT(Contents(err),
                HasSubstr(absl::StrCat("realetc: stopped; ", Store(),
                                       " was not written\n")));
    EXPECT_THAT(Left(), IsEmpty());
  }
}

}  // namespace
}  // namespace etc
