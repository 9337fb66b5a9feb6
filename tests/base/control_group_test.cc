// Limits of control groups, of trees of files as systems have them: the least
// on the way from the process's group up to what is mounted, in version 1 and
// 2, inside and outside of a container; and no limit where nothing says one.
#include "base/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/memory_limit.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

constexpr int64_t kGigabyte = int64_t{1} << 30;

// A directory that stands for "/".
class ControlGroupTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.File(path);
    std::filesystem::create_directories(file.parent_path());
    root_.Write(path, text);
  }
  // Writes the files in /proc that say the process's groups, and where they are
  // mounted.
  void WriteGroups(const std::string& cgroup, const std::string& mountinfo) {
    Write("proc/self/cgroup", cgroup);
    Write(
        "proc/self/mountinfo",
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" + mountinfo);
  }
  void WriteVersion2(const std::string& group) {
    WriteGroups("0::" + group + "\n",
                "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
                "cgroup2 rw,nsdelegate\n");
  }
  ControlGroupLimits Limits() const {
    return ReadControlGroupLimits(root_.path());
  }

  TemporaryDirectory root_;
};

TEST_F(ControlGroupTest, TakesTheLeastOfTheGroupsAboveTheProcess) {
  WriteVersion2("/system.slice/slurmd.service/job_7/step_0");
  const std::string service = "sys/fs/cgroup/system.slice/slurmd.service/";
  Write(service + "memory.max", "max\n");
  Write(service + "cpu.max", "max 100000\n");
  Write(service + "job_7/memory.max", "8589934592\n");
  Write(service + "job_7/cpu.max", "250000 100000\n");
  Write(service + "job_7/step_0/memory.max", "max\n");
  Write(service + "job_7/step_0/cpu.max", "400000 100000\n");
  // The limit of another job does not count.
  Write(service + "job_8/memory.max", "1000\n");
  EXPECT_EQ(Limits().memory, 8 * kGigabyte);
  EXPECT_EQ(Limits().cpus, 2.5);

  Write("sys/fs/cgroup/system.slice/memory.max", "4294967296\n");
  Write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(Limits().memory, 4 * kGigabyte);
  EXPECT_EQ(Limits().cpus, 1.5);
  Write(service + "job_7/step_0/memory.max", "1073741824\n");
  Write(service + "job_7/step_0/cpu.max", "50000 100000\n");
  EXPECT_EQ(Limits().memory, kGigabyte);
  EXPECT_EQ(Limits().cpus, 0.5);
}

TEST_F(ControlGroupTest, ReadsVersionOne) {
  WriteGroups(
      "9:memory:/slurm/uid_5/job_7\n4:cpu,cpuacct:/slurm/uid_5/job_7\n"
      "1:name=systemd:/system.slice\n0::/system.slice/slurmd.service\n",
      "31 22 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "32 22 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "33 22 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
      "rw,cpu,cpuacct\n");
  const std::string memory = "sys/fs/cgroup/memory/";
  const std::string cpu = "sys/fs/cgroup/cpu,cpuacct/";
  Write(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  Write(memory + "slurm/uid_5/memory.limit_in_bytes", "2147483648\n");
  Write(memory + "slurm/uid_5/job_7/memory.limit_in_bytes", "4294967296\n");
  Write(cpu + "cpu.cfs_quota_us", "-1\n");
  Write(cpu + "cpu.cfs_period_us", "100000\n");
  Write(cpu + "slurm/uid_5/job_7/cpu.cfs_quota_us", "300000\n");
  Write(cpu + "slurm/uid_5/job_7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Limits().memory, 2 * kGigabyte);
  EXPECT_EQ(Limits().cpus, 3.0);
}

// Without a name space of groups, the mounted one is not the topmost.
TEST_F(ControlGroupTest, ReadsWhatAContainerSeesOfItsGroups) {
  WriteGroups("0::/docker/1f/job\n",
              "30 22 0:26 /docker/1f /sys/fs/my\\040groups rw - cgroup2 "
              "cgroup rw\n");
  Write("sys/fs/my groups/memory.max", "4294967296\n");
  Write("sys/fs/my groups/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(Limits().memory, 4 * kGigabyte);
  EXPECT_EQ(Limits().cpus, 2.0);
  // Not the container's own name.
  for (const char* group : {"0::/docker/1fa/job\n", "0::/../../job\n"}) {
    Write("proc/self/cgroup", group);
    EXPECT_EQ(Limits().memory, 4 * kGigabyte) << group;
    EXPECT_EQ(Limits().cpus, std::nullopt) << group;
  }
}

TEST_F(ControlGroupTest, LooksWhereGroupsUsuallyAreIfNothingSaysWhere) {
  EXPECT_EQ(Limits().memory, std::nullopt);
  EXPECT_EQ(Limits().cpus, std::nullopt);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(Limits().memory, 2 * kGigabyte);
  Write("sys/fs/cgroup/memory.max", "1073741824\n");
  Write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(Limits().memory, kGigabyte);
  EXPECT_EQ(Limits().cpus, 1.0);
}

TEST_F(ControlGroupTest, TakesNothingForALimitThatIsNone) {
  WriteVersion2("/a");
  for (const char* text : {"", "\n", "max\n", "-1\n", "0\n", "much\n"}) {
    Write("sys/fs/cgroup/a/memory.max", text);
    Write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(Limits().memory, std::nullopt) << text;
    EXPECT_EQ(Limits().cpus, std::nullopt) << text;
  }
}

TEST_F(ControlGroupTest, BoundsTheMemoryOfTheProcess) {
  WriteVersion2("/a/b");
  Write("sys/fs/cgroup/a/memory.max", "100000000\n");
  Write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(MemoryOfProcess(root_.path()), 100'000'000);
}

}  // namespace
}  // namespace etc
