// Numbers in messages.
#include "base/counted.h"

#include <gtest/gtest.h>

namespace etc {
namespace {

TEST(CountedTest, TakesThePluralOfAllButOne) {
  EXPECT_EQ(Counted(1, "record"), "1 record");
  EXPECT_EQ(Counted(0, "record"), "0 records");
  EXPECT_EQ(Counted(2, "bad record"), "2 bad records");
  EXPECT_EQ(Counted(-1, "record"), "-1 records");
  EXPECT_EQ(Counted(int64_t{1} << 40, "token"), "1099511627776 tokens");
}

}  // namespace
}  // namespace etc
