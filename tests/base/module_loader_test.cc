// Modules are opened, and what is none is refused with the name of its file and
// the reason; by default they are looked for in the build. oneDNN's stands for
// all of them: it is there with its own library.
#include "base/module_loader.h"

#include <string>

#include "base/onednn_loader.h"
#include "base/onednn_module.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModuleFile TestModule() {
  return {.user = "This test",
          .name = "realetc_onednn.so",
          .function = kOnednnModuleFunction,
          .version = kOnednnModuleVersion,
          .clashing_symbol = "no_such_symbol",
          .library = "libnone.so"};
}

std::string MistakeOf(const ModuleFile& module, const std::string& path = "") {
  const auto opened = OpenModuleFile(module, path);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(opened.status().message());
}

TEST(ModuleLoaderTest, OpensAModuleOnce) {
  const auto first = OpenModule<OnednnModule>(TestModule());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->version, kOnednnModuleVersion);
  EXPECT_EQ(*OpenModule<OnednnModule>(TestModule()), *first);
}

TEST(ModuleLoaderTest, SaysWhereItLookedForWhatIsAbsent) {
  ModuleFile module = TestModule();
  module.name = "realetc_absent.so";
  EXPECT_THAT(MistakeOf(module),
              AllOf(HasSubstr("This test needs realetc_absent.so"),
                    HasSubstr("/lib/realetc_absent.so"),
                    HasSubstr("/realetc/realetc_absent.so")));
}

TEST(ModuleLoaderTest, RefusesWhatIsNoModule) {
  TemporaryDirectory directory;
  const std::string absent = directory.File("absent.so");
  EXPECT_THAT(MistakeOf(TestModule(), absent), HasSubstr(absent));
  const std::string text = directory.Write("text.so", "not a library");
  EXPECT_THAT(MistakeOf(TestModule(), text), HasSubstr(text));
  EXPECT_THAT(MistakeOf(TestModule(), "libm.so.6"),
              HasSubstr("libm.so.6: is no module of RealETC"));
}

TEST(ModuleLoaderTest, RefusesAnotherVersion) {
  ModuleFile module = TestModule();
  module.version = 1000;
  EXPECT_THAT(MistakeOf(module), HasSubstr("should be of version 1000"));
}

TEST(OnednnModuleTest, SaysWhichLibraryItHas) {
  const auto& onednn = LoadedOnednn();
  ASSERT_TRUE(onednn.ok()) << onednn.status();
  EXPECT_THAT((*onednn)->library_version(),
              testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT((*onednn)->library_file(), HasSubstr("libdnnl.so"));
}

// A product that cannot be, of no rows, is a message and no exception.
TEST(OnednnModuleTest, ReportsWhatItCannotDo) {
  const auto& onednn = LoadedOnednn();
  ASSERT_TRUE(onednn.ok()) << onednn.status();
  float value = 0.0f;
  const OnednnMatrix matrix = {
      .data = &value, .row_stride = 1, .column_stride = 1};
  std::string message;
  EXPECT_FALSE((*onednn)->multiply({.rows = -1,
                                    .depth = 1,
                                    .columns = 1,
                                    .is_bfloat16 = false,
                                    .a = matrix,
                                    .b = matrix,
                                    .bias = nullptr,
                                    .result = matrix},
                                   &message,
                                   [](void* context, const char* text) {
                                     *static_cast<std::string*>(context) = text;
                                   }));
  EXPECT_NE(message, "");
}

}  // namespace
}  // namespace etc
