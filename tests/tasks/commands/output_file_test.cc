// No command replaces a file that it reads, by whatever name the file is given,
// and none begins what it could not write. For `predict` see evaluate_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "tests/support/realetc_program.h"

namespace etc {
namespace {

using testing::HasSubstr;

class OutputFileTest : public RealetcTest {
 protected:
  // Returns the contents of the regular files in a directory, by name.
  static std::map<std::string, std::string> Files(const std::string& path) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_regular_file()) {
        files[entry.path().filename().string()] =
            Contents(entry.path().string());
      }
    }
    return files;
  }

  void ExpectRefused(const std::string& arguments, const std::string& message) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 1) << arguments;
    EXPECT_THAT(result.err, HasSubstr(message)) << arguments;
  }
};

TEST_F(OutputFileTest, OfWeightsIsNotTheirSource) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string best = directory_.File("run/seed-1/checkpoints/best");
  const std::string exported = directory_.File("exported");
  ASSERT_EQ(Run("export " + best + " " + exported).code, 0);
  const std::string link = directory_.File("link");
  std::filesystem::create_directory_symlink(exported, link);
  const auto before = Files(exported);
  for (const std::string& directory : {exported, link}) {
    ExpectRefused(absl::StrCat("import ", exported, " ", directory),
                  "DIR should not replace what is read, but " + directory);
    ExpectRefused(
        absl::StrCat("export --format safetensors ", exported, " ", directory),
        "DIR should not replace what is read, but " + directory);
  }
  ExpectRefused(absl::StrCat("import ", exported, " ", directory_.path(),
                             " --vocabulary ", directory_.File("vocab.txt")),
                "DIR should not replace what is read");
  EXPECT_EQ(Files(exported), before);
  ExpectRefused(absl::StrCat("import ", exported, " ''"),
                "DIR should name a directory, but is empty");
  ExpectRefused(absl::StrCat("export ", exported, " ",
                             directory_.File("vocab.txt/below")),
                "which cannot be written: ");
}

TEST_F(OutputFileTest, OfTokenizeIsNoTextAndNoVocabulary) {
  static_cast<void>(Config());  // writes vocab.txt
  const std::string text = directory_.Write("text.txt", "mira lives in oslo .");
  const std::string vocabulary = directory_.File("vocab.txt");
  const auto before = Files(directory_.path());
  const std::string hard_link = directory_.File("link.txt");
  std::filesystem::create_hard_link(text, hard_link);
  for (const std::string& output : {text, vocabulary, hard_link}) {
    ExpectRefused(absl::StrCat("tokenize --format text ", text,
                               " --mask-piece [unused0] --vocabulary ",
                               vocabulary, " --output ", output),
                  "--output should not replace what is read");
  }
  // A pipe keeps the name that was given.
  const std::string link = directory_.File("link");
  std::filesystem::create_directory_symlink(directory_.path(), link);
  ExpectRefused(absl::StrCat("tokenize --format text ", text,
                             " --mask-piece [unused0] --vocabulary ",
                             vocabulary, " --output ", link),
                "--output should name a file, but " + link + " is a directory");
  ExpectRefused(
      absl::StrCat("tokenize --format text ", text,
                   " --mask-piece [unused0] --vocabulary ", vocabulary,
                   " --output ", directory_.File("ids.gz")),
      "ids.gz, but nothing is packed here");
  for (const auto& [name, contents] : before) {
    EXPECT_EQ(Contents(directory_.File(name)), contents) << name;
  }
}

TEST_F(OutputFileTest, OfDocumentAndReportIsNothingThatTheyRead) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string run = directory_.File("run");
  const std::string data = directory_.File("data.json");
  for (const std::string& file :
       {data, run + "/seed-1/checkpoints/best/model.safetensors",
        run + "/seed-1/checkpoints/checkpoints.json"}) {
    const std::string before = Contents(file);
    for (const std::string& arguments :
         {absl::StrCat("document ", run, " --data '", directory_.path(),
                       "/da*.json'"),
          absl::StrCat("report ", run, " --data ", data)}) {
      ExpectRefused(absl::StrCat(arguments, " --overwrite --output ", file),
                    "--output should not replace what is read");
      EXPECT_TRUE(Contents(file) == before) << arguments << " " << file;
    }
  }
}

TEST_F(OutputFileTest, IsTriedBeforeTheWork) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  // There is room for this name, but for no temporary one beside it.
  const std::string output = directory_.File(std::string(250, 'a'));
  const Result result =
      Run(absl::StrCat("predict ", directory_.File("run"), " --data ",
                       directory_.File("data.json"), " --output ", output));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              HasSubstr(absl::StrCat("--output names ", output,
                                     ", which cannot be written: ")));
  // Before the model is loaded.
  EXPECT_THAT(result.err, testing::Not(HasSubstr("device: ")));
}

TEST_F(OutputFileTest, TidiesUpBehindKilledProcesses) {
  static_cast<void>(Config());  // writes vocab.txt
  const std::string killed = absl::StrCat("v.npy.realetc-", HostName(), "-",
                                          ProcessScope(), "-999999999-0.tmp");
  directory_.Write(killed, "vectors");
  ExpectRefused(absl::StrCat("embed ", directory_.path(), " --data ",
                             directory_.File("vocab.txt"), " --output ",
                             directory_.File("v.npy")),
                "");  // there is no model
  EXPECT_FALSE(std::filesystem::exists(directory_.File(killed)));
}

TEST_F(OutputFileTest, OfTrainingIsNotEmpty) {
  const std::string config = WriteConfig(Config());
  ExpectRefused("train " + config + " --output ''",
                "--output should name a directory, but is empty");
  EXPECT_FALSE(std::filesystem::exists(directory_.File("run")));
}

TEST_F(OutputFileTest, OfTrainingHoldsNothingThatIsRead) {
  ASSERT_EQ(Run("train " + WriteConfig(Config())).code, 0);
  const std::string best = directory_.File("run/seed-1/checkpoints/best");
  nlohmann::json again = Config();
  again["init"] = best;
  const std::string config = WriteConfig(again);
  const auto before = Files(best);
  ExpectRefused(
      "train " + config,
      absl::StrCat("init names ", std::filesystem::canonical(best).string(),
                   ", which is in "));
  EXPECT_EQ(Files(best), before);
  const Result elsewhere =
      Run("train " + config + " --output " + directory_.File("other"));
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
}

}  // namespace
}  // namespace etc
