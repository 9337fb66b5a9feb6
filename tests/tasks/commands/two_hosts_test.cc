// A run of two processes on two hosts: network namespaces, joined by a pair of
// virtual devices. Needs root and `ip`, and is skipped without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

bool Shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class TwoHostsTest : public RealetcTest {
 protected:
  void SetUp() override {
    std::filesystem::current_path(ETC_SOURCE_DIR);
    if (geteuid() != 0 || !Shell("ip netns add " + Host(0))) {
      GTEST_SKIP() << "network namespaces need root, and `ip` of iproute2";
    }
    const std::string first = Host(0);
    const std::string second = Host(1);
    ASSERT_TRUE(Shell("ip netns add " + second) &&
                Shell("ip link add veth0 netns " + first +
                      " type veth peer name veth1 netns " + second) &&
                Shell("ip -n " + first + " addr add 10.77.0.1/24 dev veth0") &&
                Shell("ip -n " + second + " addr add 10.77.0.2/24 dev veth1") &&
                Shell("ip -n " + first + " link set lo up") &&
                Shell("ip -n " + second + " link set lo up") && SetLink("up") &&
                Shell("ip -n " + second + " link set veth1 up"));
  }
  void TearDown() override {
    Shell("ip netns del " + Host(0));
    Shell("ip netns del " + Host(1));
  }

  static std::string Host(int rank) {
    return absl::StrCat("realetc-", getpid(), "-", rank);
  }
  static bool SetLink(const std::string& state) {
    return Shell("ip -n " + Host(0) + " link set veth0 " + state);
  }

  std::string Err(int rank) const {
    return directory_.File(absl::StrCat("err-", rank));
  }

  // Starts process `rank` of a run into the directory `name`.
  pid_t Start(int rank, const std::string& name, const std::string& more) {
    const std::string command = absl::StrCat(
        "exec ip netns exec ", Host(rank), " env RANK=", rank,
        " WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29517 ", ETC_PROGRAM,
        " train tasks/wikihop/configs/demo.json --output ",
        directory_.File(name),
        " --set train.batch_size=4 --set train.micro_batch_size=2 --set "
        "train.threads=1 --set train.evaluate_every=0 --set "
        "train.timeout_s=30 ",
        more, " >/dev/null 2>", Err(rank));
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }

  // Exit codes of both.
  std::vector<int> RunBoth(
      const std::string& name, const std::string& more,
      const std::function<void()>& meanwhile = [] {}) {
    const std::vector<pid_t> children = {Start(0, name, more),
                                         Start(1, name, more)};
    meanwhile();
    std::vector<int> codes;
    for (const pid_t child : children) {
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    return codes;
  }

  std::string Weights(const std::string& name) const {
    return Contents(
        directory_.File(name + "/seed-1/checkpoints/last/model.safetensors"));
  }
};

TEST_F(TwoHostsTest, GoOnWhereTheirConnectionWasCut) {
  // Updates take some 50 ms, the cut not much more.
  const std::string options =
      "--set train.steps=60 --set train.checkpoint_every=3";
  EXPECT_EQ(RunBoth("straight", options), std::vector<int>({0, 0}))
      << Contents(Err(0)) << Contents(Err(1));

  const std::string link = directory_.File("cut/seed-1/checkpoints/last");
  const auto cut = [&] {
    for (int i = 0; i < 30'000 && !std::filesystem::exists(link); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_TRUE(SetLink("down"));
  };
  EXPECT_EQ(RunBoth("cut", options, cut), std::vector<int>({1, 1}));
  for (const int rank : {0, 1}) {
    EXPECT_THAT(Contents(Err(rank)),
                AnyOf(HasSubstr(absl::StrCat("process ", rank,
                                             " of 2: process ", 1 - rank)),
                      HasSubstr("has ended or cannot be reached")))
        << rank;
  }
  ASSERT_TRUE(SetLink("up"));
  EXPECT_EQ(RunBoth("cut", options + " --resume"), std::vector<int>({0, 0}))
      << Contents(Err(0)) << Contents(Err(1));
  EXPECT_TRUE(Weights("cut") == Weights("straight"));
  EXPECT_FALSE(Weights("cut").empty());
}

}  // namespace
}  // namespace etc
