// The program where numbers or data ask for more memory than there is, or for
// more time than somebody has: `realetc train` in a process that may have 4
// GB of addresses. Whatever is asked of it, it ends with exit code 1 and one
// sentence that names what was too much; and SIGTERM ends it before it is done,
// also while it reads and makes examples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/gzip_member.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Clock = std::chrono::steady_clock;

std::string Contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

// Returns the bytes of addresses that the program's shared libraries take:
// about the sizes of their files. A LibTorch for CUDA has gigabytes of them.
rlim_t LibraryBytes() {
  std::FILE* const listing =
      popen("ldd \"" ETC_PROGRAM "\" | grep -o '/[^ ]*'", "r");
  if (listing == nullptr) {
    return 0;
  }
  rlim_t bytes = 0;
  char line[4096];
  while (std::fgets(line, sizeof(line), listing) != nullptr) {
    std::error_code ignored;
    const std::string path = line;
    const auto size =
        std::filesystem::file_size(path.substr(0, path.find('\n')), ignored);
    bytes += ignored ? 0 : size;
  }
  pclose(listing);
  return bytes;
}

class MemoryLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) {
      GTEST_SKIP() << "a sanitizer reserves more addresses than can be allowed";
    }
    directory_.Write(
        "vocab.txt",
        "[PAD]\n[unused0]\n[unused1]\n[unused2]\n[unused3]\n[unused4]\n[UNK]\n"
        "[CLS]\n[SEP]\noslo\nrome\nlima\ntown\n_\nof\nmira\nlives\nin\n.\n");
  }

  // WikiHop records whose one support is `sentences` long.
  std::string WriteRecords(int records, int sentences) {
    std::string support;
    for (int i = 0; i < sentences; ++i) {
      support += "mira lives in oslo . ";
    }
    const nlohmann::json record = {{"query", "town_of mira"},
                                   {"answer", "oslo"},
                                   {"candidates", {"oslo", "rome", "lima"}},
                                   {"supports", {support}}};
    const std::string fields = record.dump().substr(1);
    std::string lines;
    for (int i = 0; i < records; ++i) {
      absl::StrAppend(&lines, "{\"id\":\"q", i, "\",", fields, "\n");
    }
    return directory_.Write("data.json", lines);
  }

  std::string WriteConfig(const std::string& data) {
    const nlohmann::json config = {
        {"task", "wikihop"},
        {"model",
         {{"vocab_size", 19},
          {"hidden_size", 8},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"local_radius", 4},
          {"intermediate_size", 16}}},
        {"tokenizer", {{"vocabulary", directory_.File("vocab.txt")}}},
        {"data", {{"train", {data}}, {"max_long_length", 64}}},
        {"train",
         {{"batch_size", 3},
          {"micro_batch_size", 2},
          {"steps", 2},
          {"threads", 1}}},
        {"output", directory_.File("run")}};
    return directory_.Write("run.json", config.dump());
  }

  // Begins `realetc train`, or command_, on `data` with `overrides`.
  pid_t Begin(const std::string& data,
              const std::vector<std::string>& overrides) {
    std::vector<std::string> words = {"realetc", command_, WriteConfig(data)};
    for (const std::string& override_text : overrides) {
      words.insert(words.end(), {"--set", override_text});
    }
    const std::string out = directory_.File("stdout");
    const std::string err = directory_.File("stderr");
    const pid_t child = fork();
    if (child == 0) {
      std::vector<char*> arguments;
      for (std::string& word : words) {
        arguments.push_back(word.data());
      }
      arguments.push_back(nullptr);
      const struct rlimit limit = {addresses_, addresses_};
      if (setrlimit(RLIMIT_AS, &limit) == 0 &&
          std::freopen(out.c_str(), "w", stdout) != nullptr &&
          std::freopen(err.c_str(), "w", stderr) != nullptr) {
        execv(ETC_PROGRAM, arguments.data());
      }
      _exit(127);
    }
    return child;
  }

  // Its exit code, or -1 if a signal ended it.
  static int End(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Returns the program's last message; it must fail in an orderly way.
  std::string Failure(const std::string& data,
                      const std::vector<std::string>& overrides) {
    EXPECT_EQ(End(Begin(data, overrides)), 1);
    const std::string err = Contents(directory_.File("stderr"));
    EXPECT_THAT(err, Not(HasSubstr("internal error")));
    const size_t last = err.rfind("realetc: ");
    EXPECT_NE(last, std::string::npos) << err;
    return last == std::string::npos ? err : err.substr(last);
  }

  // Seconds from SIGTERM, half a second after the program said `sign`, to its
  // end.
  double SecondsToStop(const std::string& data,
                       const std::vector<std::string>& overrides,
                       const std::string& sign) {
    const pid_t child = Begin(data, overrides);
    const std::string err = directory_.File("stderr");
    for (int i = 0; i < 1200 && Contents(err).find(sign) == std::string::npos;
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0)
        << "it came to an end before: " << Contents(err);
    const auto begin = Clock::now();
    kill(child, SIGTERM);
    EXPECT_EQ(End(child), 75);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  // Members of gzip, one behind the other.
  std::string WriteBomb(const std::string& first, const std::string& repeated,
                        int times) {
    std::string packed = GzipMember(first);
    const std::string member = GzipMember(repeated);
    for (int i = 0; i < times; ++i) {
      packed += member;
    }
    return directory_.Write("bomb.json", packed);
  }

  TemporaryDirectory directory_;
  std::string command_ = "train";
  // Bytes that the program may have.
  rlim_t addresses_ = 4'000'000'000;
};

TEST_F(MemoryLimitsTest, RefusesABatchLargerThanTheDataAtTheStart) {
  const std::string data = WriteRecords(6, 1);
  for (const char* batch : {"7", "10000000", "1000000000"}) {
    EXPECT_THAT(Failure(data, {absl::StrCat("train.batch_size=", batch)}),
                AllOf(HasSubstr("6 examples"), HasSubstr("train.batch_size")))
        << batch;
  }
  EXPECT_EQ(access(directory_.File("run").c_str(), F_OK), -1)
      << "a refused start should leave nothing";
}

// Numbers within the bounds, which tasks/config/config_test.cc and
// etc/config_test.cc test, but beyond the memory.
TEST_F(MemoryLimitsTest, RefusesNumbersBeyondTheMemory) {
  const std::string data = WriteRecords(6, 1);
  EXPECT_THAT(
      Failure(data, {"model.num_hidden_layers=4096", "model.hidden_size=1024"}),
      HasSubstr("realetc estimate"));
  EXPECT_EQ(access(directory_.File("run").c_str(), F_OK), -1);
}

// One weight, by which the products of a layer are measured, has 4.3 GB.
TEST_F(MemoryLimitsTest, EstimatesAModelThatDoesNotFit) {
  command_ = "estimate";
  EXPECT_EQ(End(Begin(WriteRecords(6, 1), {"model.hidden_size=32768",
                                           "model.intermediate_size=32768",
                                           "wikihop.add_final_layer=false"})),
            0)
      << Contents(directory_.File("stderr"));
  EXPECT_THAT(Contents(directory_.File("stdout")),
              AllOf(HasSubstr("Parameters"), HasSubstr("Memory"),
                    HasSubstr("not measured, out of memory while measuring "
                              "cpu")));
}

// More threads than there is room for in 4 GB, and all of them allowed.
TEST_F(MemoryLimitsTest, SaysWhenThreadsCannotBeStarted) {
  const std::string data = WriteRecords(2000, 1);
  EXPECT_THAT(Failure(data, {"data.workers=1024", "data.bucket_batches=1000"}),
              HasSubstr("data.workers"));
}

TEST_F(MemoryLimitsTest, NeedsNoMoreForAPoolThanTheDataHave) {
  const std::string data = WriteRecords(6, 1);
  EXPECT_EQ(End(Begin(data, {"data.bucket_batches=1000000000"})), 0)
      << Contents(directory_.File("stderr"));
}

TEST_F(MemoryLimitsTest, SaysHowTheLongestExamplesWouldFit) {
  const std::string data = WriteRecords(6, 1);
  const std::string err = directory_.File("stderr");
  const auto message = [&](const std::string& gigabytes,
                           const std::string& output) {
    EXPECT_EQ(End(Begin(data, {absl::StrCat("data.dev=[\"", data, "\"]"),
                               "data.max_long_length=1048576",
                               "train.memory_gigabytes=" + gigabytes,
                               "model.num_hidden_layers=12",
                               "train.micro_batch_size=3",
                               "train.evaluation_batch_size=1000",
                               "output=" + directory_.File(output)})),
              0)
        << Contents(err);
    return Contents(err);
  };
  EXPECT_THAT(message("1.5", "none"),
              AllOf(HasSubstr("an update of 1048576 long and "),
                    HasSubstr("may have 1.5 GB: set train.memory_directory to "
                              "a directory")));
  EXPECT_THAT(message("8", "layers"),
              AllOf(HasSubstr("an update of 1048576 long and "),
                    HasSubstr(" of 8.0 GB by train.memory_plan \"layers\""),
                    HasSubstr("an evaluation of 1048576 long and "),
                    HasSubstr(" may have 8.0 GB: set "
                              "train.evaluation_batch_size=")));
  ASSERT_EQ(End(Begin(data, {"output=" + directory_.File("short")})), 0)
      << Contents(err);
  EXPECT_THAT(Contents(err), AllOf(Not(HasSubstr("an update of ")),
                                   Not(HasSubstr("an evaluation of "))));
}

// 10 GB, in 10 MB.
TEST_F(MemoryLimitsTest, RefusesARecordOfTenGigabytes) {
  const std::string bomb =
      WriteBomb("{\"id\": \"", std::string(100'000'000, '0'), 100);
  EXPECT_THAT(Failure(bomb, {}), AllOf(HasSubstr(bomb + ":1: byte 0"),
                                       HasSubstr("data.max_record_megabytes")));
}

// 100 million records, in 1 MB.
TEST_F(MemoryLimitsTest, RefusesMoreRecordsThanThereIsMemoryFor) {
  std::string lines;
  for (int i = 0; i < 10'000'000; ++i) {
    lines += "{}\n";
  }
  const std::string bomb = WriteBomb("\n", lines, 10);
  EXPECT_THAT(Failure(bomb, {}),
              AllOf(HasSubstr(bomb + ":"), HasSubstr("data.train"),
                    HasSubstr(" bytes, an eighth of this process's memory")));
}

// The record is short enough, and what becomes of it is not.
TEST_F(MemoryLimitsTest, SaysWhatItWasDoingWhenThereIsNoMemoryLeft) {
  const rlim_t libraries = LibraryBytes();
  ASSERT_GT(libraries, 0);
  addresses_ = libraries + 1'000'000'000;
  std::string brackets = "{\"id\": \"q\", \"supports\": [[[]]";
  for (int i = 0; i < 11'000'000; ++i) {
    brackets += ",[[]]";
  }
  const std::string data = directory_.Write("data.json", brackets + "]}\n{}\n");
  EXPECT_THAT(Failure(data, {"train.batch_size=1", "train.micro_batch_size=1"}),
              AllOf(StartsWith(absl::StrCat(
                        "realetc: out of memory while making examples of ",
                        data, ": record 0; realetc estimate comes to ")),
                    HasSubstr(" GB that this process may have; "),
                    HasSubstr("lower train.micro_batch_size (now 1), ")));
}

// From too few addresses to enough: oneDNN's kernels, buffers of products,
// threads and tensors all want some. With fewer than these OpenBLAS does not
// start.
TEST_F(MemoryLimitsTest, IsNeverEndedByASignal) {
  const rlim_t libraries = LibraryBytes();
  ASSERT_GT(libraries, 0);
  const std::string data = WriteRecords(6, 1);
  int ended = 0;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    addresses_ = libraries + 500'000'000 + static_cast<rlim_t>(i) * 80'000'000;
    const std::string output = directory_.File(absl::StrCat("run", i));
    const int code =
        End(Begin(data, {"output=" + output, "train.memory_gigabytes=4",
                         "model.hidden_size=512", "model.num_hidden_layers=4",
                         "model.intermediate_size=2048"}));
    const std::string err = Contents(directory_.File("stderr"));
    EXPECT_TRUE(code == 0 || code == 1) << addresses_ << ": " << err;
    EXPECT_THAT(err, Not(HasSubstr("internal error")));
    ++(code == 0 ? ended : refused);
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(refused, 0);
}

// Asked to stop in the middle of something, it must say so before it comes to
// the end of that. On a machine with much else to do.
constexpr double kSeconds = 120;

TEST_F(MemoryLimitsTest, ObeysSigtermWhileItReads) {
  const std::string bomb = WriteBomb("\n", std::string(100'000'000, ' '), 300);
  EXPECT_LT(SecondsToStop(bomb, {}, "looking through the data"), kSeconds);
  EXPECT_THAT(Contents(directory_.File("stderr")),
              HasSubstr("the reading of the data was stopped"));
}

// The pool takes all records, which is half a minute's work.
TEST_F(MemoryLimitsTest, ObeysSigtermWhileItMakesExamples) {
  const std::string data = WriteRecords(500, 30000);
  EXPECT_LT(SecondsToStop(data, {"data.bucket_batches=1000"}, "random weights"),
            kSeconds);
  EXPECT_THAT(Contents(directory_.File("stderr")),
              HasSubstr("stopped after 0 of 2 updates"));
}

}  // namespace
}  // namespace etc
