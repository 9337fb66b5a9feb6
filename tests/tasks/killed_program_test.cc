// The program when it is ended from outside: killed by SIGKILL in the middle of
// file operations, behind a preloaded shim, and resumed to the weights of a run
// that was left alone; and out of room for a file. A hundred kills of the
// library in forked children are in train/killed_run_test.cc; these two are of
// the program as people start it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class KilledProgramTest : public testing::Test {
 protected:
  std::string Output(const std::string& name) const {
    return directory_.File(name);
  }

  // `realetc train` on the WikiHop sample, four updates, with what a shell
  // does before. Returns what std::system returns.
  int Train(const std::string& before, const std::string& name) const {
    return std::system(
        absl::StrCat("cd ", ETC_SOURCE_DIR, " && ", before, " ", ETC_PROGRAM,
                     " train tasks/wikihop/configs/demo.json",
                     fs::exists(Output(name + "/seed-1")) ? " --resume" : "",
                     " --set train.steps=4 --set train.checkpoint_every=1",
                     " --set train.batch_size=4 --set train.micro_batch_size=2",
                     " --output ", Output(name), " >/dev/null 2>",
                     directory_.File("stderr"))
            .c_str());
  }

  std::string Weights(const std::string& name) const {
    const auto weights =
        ReadFile(Output(name + "/seed-1/checkpoints/last/model.safetensors"));
    EXPECT_TRUE(weights.ok()) << weights.status();
    return weights.ok() ? *weights : "";
  }

  TemporaryDirectory directory_;
};

TEST_F(KilledProgramTest, GoesOnBitForBitBehindAPreloadedShim) {
  if (ETC_SANITIZED) {
    GTEST_SKIP() << "a sanitizer's runtime must be loaded before all else";
  }
  ASSERT_EQ(Train("", "straight"), 0) << *ReadFile(Output("stderr"));
  // A run has some 250 operations; the second start goes on where the first one
  // was killed.
  for (const int kill_at : {97, 38}) {
    const int status = Train(
        absl::StrCat("exec env ETC_SHIM_DIRECTORY=", Output("killed"),
                     " ETC_SHIM_KILL_AT=", kill_at, " LD_PRELOAD=", ETC_SHIM),
        "killed");
    ASSERT_TRUE(WIFSIGNALED(status)) << *ReadFile(Output("stderr"));
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
  }
  ASSERT_EQ(Train("", "killed"), 0) << *ReadFile(Output("stderr"));
  EXPECT_TRUE(Weights("killed") == Weights("straight"));
}

// `ulimit -f` counts blocks of 512 or 1024 bytes; the weights have more.
TEST_F(KilledProgramTest, SaysThatAFileWouldBeTooLarge) {
  const int status = Train("ulimit -f 40 &&", "limited");
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const std::string text = *ReadFile(Output("stderr"));
  EXPECT_THAT(text, AllOf(HasSubstr("realetc: cannot write " +
                                    Output("limited/seed-1/checkpoints")),
                          HasSubstr("File too large")));
  for (const auto& entry : std::filesystem::directory_iterator(
           Output("limited/seed-1/checkpoints"))) {
    EXPECT_EQ(entry.path().filename(), "owner.json") << "half a checkpoint";
  }
}

}  // namespace
}  // namespace etc
