// The first host of lists as Slurm writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tasks/distributed/process_place.h"

namespace etc {
namespace {

TEST(FirstSlurmHostTest, ExpandsTheFirstNumberOfEachRange) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"localhost", "localhost"},
      {"a,b", "a"},
      {"node[003-007,9],other", "node003"},
      {"node[9,003-007]", "node9"},
      {"node[5]", "node5"},
      {"rack[1-2]node[04,05]-ib.site,x", "rack1node04-ib.site"},
      {"[1-2]a", "1a"},
      {"gpu-a100-[01-04]", "gpu-a100-01"},
  };
  for (const auto& [list, host] : cases) {
    const auto first = FirstSlurmHost(list);
    ASSERT_TRUE(first.ok()) << list << ": " << first.status();
    EXPECT_EQ(*first, host) << list;
  }
}

TEST(FirstSlurmHostTest, RejectsWhatIsNoList) {
  for (const std::string list :
       {"", ",a", "a[1-2", "a[", "a]", "a[]b", "a[,1]", "a[-1]", "a[[1-2]]"}) {
    EXPECT_THAT(FirstSlurmHost(list).status().message(),
                testing::StrEq("should be a list of hosts, as in "
                               "\"node[01-04],other\", but is \"" +
                               list + "\""))
        << list;
  }
}

}  // namespace
}  // namespace etc
