#include "base/path_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::HasSubstr;

TEST(PathLookupTest, TellsWhatIsThere) {
  TemporaryDirectory directory;
  const std::string file = directory.Write("a", "text");
  EXPECT_TRUE(*PathExists(file));
  EXPECT_FALSE(*IsDirectory(file));
  EXPECT_TRUE(*IsDirectory(directory.path()));
  EXPECT_FALSE(*PathExists(directory.File("b")));
  // Below a file there is nothing.
  EXPECT_FALSE(*PathExists(file + "/b"));
}

TEST(PathLookupTest, TellsOfLinksThatLeadNowhere) {
  TemporaryDirectory directory;
  const std::string link = directory.File("link");
  EXPECT_FALSE(*EntryExists(link));
  std::filesystem::create_symlink("nowhere", link);
  EXPECT_FALSE(*PathExists(link));
  EXPECT_TRUE(*EntryExists(link));
  EXPECT_TRUE(*EntryExists(directory.Write("a", "text")));
  EXPECT_FALSE(EntryExists(directory.File(std::string(300, 'x'))).ok());
}

TEST(PathLookupTest, SaysWhyItCannotTell) {
  TemporaryDirectory directory;
  const std::string too_long = directory.File(std::string(300, 'x'));
  EXPECT_THAT(PathExists(too_long).status().message(),
              HasSubstr("cannot look up " + too_long));
  EXPECT_THAT(PathExists(too_long).status().message(), HasSubstr("too long"));
  EXPECT_FALSE(IsDirectory(too_long).ok());
  const std::string circle = directory.File("circle");
  std::filesystem::create_symlink("circle", circle);
  EXPECT_THAT(PathExists(circle).status().message(), HasSubstr(circle));
}

}  // namespace
}  // namespace etc
