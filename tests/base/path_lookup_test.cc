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
