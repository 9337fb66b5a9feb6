// `realetc predict RUN --data - --output -` as a service holds it open: a line
// for each line, at once, the same as `predict` writes to its file; lines that
// are no records; readers and writers that go away; and `realetc embed` in the
// same loop. The program is a child process behind two pipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

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

// A child process with pipes to its standard input and from its standard
// output.
class Service {
 public:
  // `err` is the file of its standard error.
  Service(const std::string& run, const std::string& err,
          const std::string& data = "-", const std::string& output = "-",
          const std::string& command = "predict") {
    std::array<int, 2> to = {};
    std::array<int, 2> from = {};
    EXPECT_EQ(pipe(to.data()), 0);
    EXPECT_EQ(pipe(from.data()), 0);
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      if (freopen(err.c_str(), "w", stderr) == nullptr) {
        _exit(1);
      }
      for (const int descriptor : {to[0], to[1], from[0], from[1]}) {
        close(descriptor);
      }
      execl(ETC_PROGRAM, "realetc", command.c_str(), run.c_str(), "--data",
            data.c_str(), "--output", output.c_str(), nullptr);
      _exit(1);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~Service() {
    CloseInput();
    CloseOutput();
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void Write(const std::string& text) const {
    EXPECT_EQ(write(to_, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  // The next line without its newline; nothing after a minute, or at the end.
  std::string ReadLine() {
    constexpr int kMinute = 60'000;
    while (read_.find('\n') == std::string::npos) {
      pollfd polled = {.fd = from_, .events = POLLIN, .revents = 0};
      std::array<char, 4096> chunk;
      const ssize_t size = poll(&polled, 1, kMinute) > 0
                               ? read(from_, chunk.data(), chunk.size())
                               : 0;
      if (size <= 0) {
        return "";
      }
      read_.append(chunk.data(), static_cast<size_t>(size));
    }
    const size_t end = read_.find('\n');
    const std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return line;
  }
  json ReadJson() {
    return json::parse(ReadLine(), nullptr, /*allow_exceptions=*/false);
  }
  void CloseInput() { Close(&to_); }
  void CloseOutput() { Close(&from_); }
  void Signal(int number) const { kill(child_, number); }
  // Waits for its end; the exit code, or -1 if a signal ended it.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static void Close(int* descriptor) {
    if (*descriptor >= 0) {
      close(*descriptor);
      *descriptor = -1;
    }
  }

  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string read_;
};

class PredictLinesTest : public RealetcTest {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    json config = Config();
    config["train"]["evaluate_every"] = 0;
    const Result result = Run("train " + WriteConfig(config));
    ASSERT_EQ(result.code, 0) << result.err;
    records_ = json::parse(Contents(directory_.File("data.json")));
  }

  std::string Line(size_t record) const {
    return records_.at(record).dump() + "\n";
  }

  json records_;
  const std::string run_ = directory_.File("run");
  const std::string err_ = directory_.File("err");
};

TEST_F(PredictLinesTest, AnswersEachLineAtOnceAsTheFileDoes) {
  const std::string output = directory_.File("predictions.json");
  ASSERT_EQ(
      Run(absl::StrCat("predict ", run_, " --data ",
                       directory_.File("data.json"), " --output ", output))
          .code,
      0);
  const json file = json::parse(Contents(output));
  Service service(run_, err_);
  // One at a time, then several at a time.
  for (size_t i = 0; i < 2; ++i) {
    service.Write(Line(i));
    const json line = service.ReadJson();
    EXPECT_EQ(line["id"], records_[i]["id"]);
    EXPECT_EQ(line["answer"], file[absl::StrCat("q", i)]);
  }
  service.Write(Line(2) + Line(3) + Line(4).substr(0, 10));
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(service.ReadJson()["answer"], file[absl::StrCat("q", i)]);
  }
  service.Write(Line(4).substr(10));
  EXPECT_EQ(service.ReadJson()["id"], "q4");
  // The last line may lack its end.
  std::string last = Line(5);
  last.pop_back();
  service.Write(last);
  service.CloseInput();
  EXPECT_EQ(service.ReadJson()["id"], "q5");
  EXPECT_EQ(service.ReadLine(), "");
  EXPECT_EQ(service.Wait(), 0);
  EXPECT_THAT(Contents(err_), HasSubstr("6 records\n"));
}

TEST_F(PredictLinesTest, SaysInBothWhatWasTruncated) {
  const std::string lines =
      "{\"text\": \"oslo\", \"label\": \"x\"}\n"
      "{\"text\": \"oslo rome lima mira\", \"label\": \"y\"}\n";
  const std::string data = directory_.Write("docs.jsonl", lines);
  json config = Config();
  config["task"] = "classify";
  config["data"] = {{"train", {data}}, {"dev", {data}}, {"max_long_length", 4}};
  config["train"]["batch_size"] = 2;
  config["output"] = directory_.File("documents");
  const Result result = Run("train " + WriteConfig(config));
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string run = directory_.File("documents");
  const std::string output = directory_.File("p.jsonl");
  ASSERT_EQ(
      Run(absl::StrCat("predict ", run, " --data ", data, " --output ", output))
          .code,
      0);
  Service service(run, err_);
  service.Write(lines);
  service.CloseInput();
  const std::string first = service.ReadLine();
  const std::string second = service.ReadLine();
  EXPECT_EQ(Contents(output), absl::StrCat(first, "\n", second, "\n"));
  EXPECT_THAT(first, Not(HasSubstr("truncated")));
  EXPECT_THAT(second, testing::EndsWith(",\"truncated\":{\"pieces\":2}}"));
  EXPECT_EQ(service.Wait(), 0);
}

// A file is written at the end, unlike the lines of a pipe.
TEST_F(PredictLinesTest, SaysThatAStoppedPredictionWritesNothing) {
  json many = json::array();
  for (int i = 0; i < 20'000; ++i) {
    many.push_back(records_.front());
    many.back()["id"] = absl::StrCat("q", i);
  }
  const std::string data = directory_.Write("many.json", many.dump());
  const std::string output = directory_.File("p.json");
  Service service(run_, err_, data, output);
  for (int i = 0;
       i < 6000 && Contents(err_).find("device: ") == std::string::npos; ++i) {
    usleep(10'000);
  }
  service.Signal(SIGTERM);
  EXPECT_EQ(service.Wait(), 1);
  EXPECT_THAT(Contents(err_), HasSubstr("realetc: the prediction was stopped, "
                                        "and nothing is written; "));
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(PredictLinesTest, GoesOnAfterABadLineAndFailsAtTheEnd) {
  Service service(run_, err_);
  service.Write(Line(0) + "\n7\n{\"id\": \"\xff\"}\n" + Line(1));
  EXPECT_EQ(service.ReadJson()["id"], "q0");
  for (const int line : {3, 4}) {
    const json error = service.ReadJson();
    EXPECT_EQ(error["line"], line);
    EXPECT_THAT(error.value("error", ""),
                StartsWith(absl::StrCat("stdin: line ", line)));
  }
  EXPECT_EQ(service.ReadJson()["id"], "q1");
  service.CloseInput();
  EXPECT_EQ(service.Wait(), 1);
  EXPECT_THAT(Contents(err_),
              HasSubstr("realetc: 2 records have errors, the first: stdin: "
                        "line 3"));
}

TEST_F(PredictLinesTest, EmbedsEachLineAtOnce) {
  Service service(run_, err_, "-", "-", "embed");
  service.Write("{\"text\": \"mira lives in oslo .\"}\n");
  const json first = service.ReadJson();
  EXPECT_EQ(first["id"], "0");
  EXPECT_FALSE(first["vector"].empty());
  service.Write("{}\n{\"id\": \"7\", \"text\": \"mira lives in oslo .\"}\n");
  EXPECT_EQ(service.ReadJson(),
            json({{"error", "stdin: line 2.text is missing"}, {"line", 2}}));
  const json last = service.ReadJson();
  EXPECT_EQ(last["id"], "7");
  EXPECT_EQ(last["vector"], first["vector"]);
  service.CloseInput();
  EXPECT_EQ(service.Wait(), 1);
}

TEST_F(PredictLinesTest, PassesOverBlankLines) {
  Service service(run_, err_);
  service.Write("\n" + Line(0) + " \t\r\n\n" + Line(1) + "\n");
  EXPECT_EQ(service.ReadJson()["id"], "q0");
  EXPECT_EQ(service.ReadJson()["id"], "q1");
  service.CloseInput();
  EXPECT_EQ(service.ReadLine(), "");
  EXPECT_EQ(service.Wait(), 0);
  EXPECT_THAT(Contents(err_), HasSubstr("2 records\n"));
}

TEST_F(PredictLinesTest, EndsWhenNobodyReads) {
  {
    Service idle(run_, err_);
    idle.Write(Line(0));
    EXPECT_EQ(idle.ReadJson()["id"], "q0");
    // Its input stays open.
    idle.CloseOutput();
    EXPECT_EQ(idle.Wait(), 0);
  }
  Service busy(run_, err_);
  busy.CloseOutput();
  busy.Write(Line(0));
  busy.CloseInput();
  // With an answer that nobody takes, if it came to that.
  const int code = busy.Wait();
  EXPECT_THAT(code, testing::AnyOf(0, 1));
  if (code == 1) {
    EXPECT_THAT(Contents(err_), AllOf(HasSubstr("cannot write standard output"),
                                      HasSubstr("Broken pipe")));
  }
}

TEST_F(PredictLinesTest, EndsWhenItsWriterIsKilled) {
  Service service(run_, err_);
  service.Write(Line(0) + Line(1).substr(0, 20));
  EXPECT_EQ(service.ReadJson()["id"], "q0");
  service.CloseInput();
  EXPECT_EQ(service.ReadJson()["line"], 2);
  EXPECT_EQ(service.Wait(), 1);
}

TEST_F(PredictLinesTest, EndsAtASignalAsAtTheEndOfItsInput) {
  Service service(run_, err_);
  service.Write(Line(0));
  EXPECT_EQ(service.ReadJson()["id"], "q0");
  service.Signal(SIGTERM);
  EXPECT_EQ(service.Wait(), 0);
  EXPECT_EQ(service.ReadLine(), "");
}

TEST_F(PredictLinesTest, TakesStandardInputWithStandardOutputAlone) {
  const std::string data = directory_.File("data.json");
  for (const std::string& options :
       {absl::StrCat("--data - --output ", directory_.File("p.json")),
        absl::StrCat("--data - ", data, " --output -")}) {
    const Result result = Run(absl::StrCat("predict ", run_, " ", options));
    EXPECT_EQ(result.code, 1) << options;
    EXPECT_THAT(result.err, HasSubstr("--data - should be given alone and "
                                      "with --output -: "));
    EXPECT_THAT(result.out, testing::IsEmpty());
  }
}

TEST_F(PredictLinesTest, NamesOptionsInMessages) {
  for (const auto& [options, message] :
       {std::pair("--device foo", "--device should be "),
        std::pair("--threads 2000",
                  "--threads should be at most 1024, but is 2000")}) {
    const Result refused =
        Run(absl::StrCat("predict ", run_, " --data - --output - ", options));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr(absl::StrCat("realetc: ", message)));
  }
}

TEST_F(PredictLinesTest, TakesNoCheckpointOfAnything) {
  Service service(directory_.File("nowhere"), err_);
  EXPECT_EQ(service.ReadLine(), "");
  EXPECT_EQ(service.Wait(), 1);
  EXPECT_THAT(Contents(err_),
              AllOf(HasSubstr("nowhere"), Not(HasSubstr("internal"))));
}

}  // namespace
}  // namespace etc
