// Tables from files: every line is taken, each way in which one can be wrong is
// an error by file and line, and a folder that is none says what one holds.
#include "tasks/text/punkt_tables.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/text/sentence_splitter.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;
using testing::UnorderedElementsAre;

PunktFiles SmallFiles() {
  return {.abbreviations = ". . \nu.s\ndr",  // the last line ends nowhere
          .collocations = "##number##\tmile\n",
          .sentence_starters = "the\r\nin\r\n",
          .orthography = "the\t126\né\t32\n"};
}

std::string MistakeIn(const PunktFiles& files) {
  const auto tables = ParsePunktTables(files, "t/english");
  EXPECT_EQ(tables.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tables.status().message());
}

TEST(PunktTablesTest, HoldWhatTheFilesSay) {
  const auto tables = ParsePunktTables(SmallFiles(), "t");
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_THAT(tables->abbreviations, UnorderedElementsAre(". . ", "u.s", "dr"));
  EXPECT_THAT(tables->collocations, UnorderedElementsAre("##number##\tmile"));
  EXPECT_THAT(tables->sentence_starters, UnorderedElementsAre("the", "in"));
  EXPECT_THAT(tables->orthography,
              UnorderedElementsAre(Pair("the", 126), Pair("é", 32)));
}

TEST(PunktTablesTest, NameFileAndLineOfAMistake) {
  PunktFiles files = SmallFiles();
  files.abbreviations = "dr\n\nmr\n";
  EXPECT_EQ(MistakeIn(files),
            "t/english/abbrev_types.txt:2: the line should be one word, but is "
            "\"\"");
  files = SmallFiles();
  files.abbreviations = "dr\nversion https://git-lfs.github.com/spec/v1\n";
  EXPECT_THAT(MistakeIn(files), StartsWith("t/english/abbrev_types.txt:2: "));
  files = SmallFiles();
  files.sentence_starters = "the\n\xFF\n";
  EXPECT_EQ(MistakeIn(files),
            "t/english/sent_starters.txt:2: the line should be UTF-8, but is "
            "not");
  for (const std::string line : {"a", "a\tb\tc", "a\t", "\tb", "a b"}) {
    files = SmallFiles();
    files.collocations = "a\tb\n" + line + "\n";
    EXPECT_THAT(MistakeIn(files),
                AllOf(StartsWith("t/english/collocations.tab:2: the line "
                                 "should be two words with a tab"),
                      HasSubstr("\"" + line + "\"")));
  }
  for (const std::string line : {"a", "a\t", "a\tx", "a\t-2", "a\t1", "a\t128",
                                 "a\t2\t4", "\t2", "a\t99999999999999999999"}) {
    files = SmallFiles();
    files.orthography = "a\t2\n" + line + "\n";
    EXPECT_THAT(MistakeIn(files),
                StartsWith("t/english/ortho_context.tab:2: the line should be "
                           "a word, a tab and a sum of"))
        << line;
  }
  files = SmallFiles();
  files.orthography = "a\t2\nb\t2\na\t4\n";
  EXPECT_THAT(MistakeIn(files),
              StartsWith("t/english/ortho_context.tab:3: the line should not "
                         "differ from an earlier one of \"a\""));
}

TEST(PunktTablesTest, AreNotEmpty) {
  PunktFiles files = SmallFiles();
  files.collocations = files.sentence_starters = "";
  EXPECT_TRUE(ParsePunktTables(files, "t").ok());
  files.orthography = "";
  EXPECT_EQ(MistakeIn(files),
            "t/english/ortho_context.tab should hold a word a line, but is "
            "empty");
  files = SmallFiles();
  files.abbreviations = "";
  EXPECT_THAT(MistakeIn(files), StartsWith("t/english/abbrev_types.txt "));
}

TEST(PunktFilesTest, AreReadAsTheyWereWritten) {
  TemporaryDirectory directory;
  const std::string folder = directory.File("checkpoint/punkt");
  const absl::Status written = WritePunktFiles(SmallFiles(), folder);
  ASSERT_TRUE(written.ok()) << written;
  for (const std::string& path : {folder, folder + "/"}) {
    const auto files = ReadPunktFiles(path);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(*files, SmallFiles());
  }
}

TEST(PunktFilesTest, SayWhatAFolderOfTablesHolds) {
  TemporaryDirectory directory;
  const auto mistake = [](const std::string& folder) {
    const auto files = ReadPunktFiles(folder);
    EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
    return std::string(files.status().message());
  };
  EXPECT_THAT(
      mistake(directory.File("no")),
      AllOf(StartsWith(directory.File("no") + " should be a folder of Punkt's"),
            HasSubstr("abbrev_types.txt, collocations.tab"),
            HasSubstr("but there is no such folder")));
  const std::string file = directory.Write("file", "x");
  EXPECT_THAT(mistake(file), HasSubstr("but is a file"));

  ASSERT_TRUE(
      WritePunktFiles(SmallFiles(), directory.File("punkt_tab/english")).ok());
  const std::string parent = directory.File("punkt_tab");
  EXPECT_THAT(mistake(parent),
              HasSubstr("has no abbrev_types.txt; did you mean " + parent +
                        "/english?"));
  std::filesystem::remove(parent + "/english/sent_starters.txt");
  EXPECT_THAT(mistake(parent + "/english"),
              HasSubstr("but has no sent_starters.txt"));
  // The system's own error, where it cannot tell: a link to itself.
  std::filesystem::create_symlink("sent_starters.txt",
                                  parent + "/english/sent_starters.txt");
  EXPECT_THAT(ReadPunktFiles(parent + "/english").status().message(),
              HasSubstr("cannot look up " + parent));
}

TEST(LoadSentenceSplitterTest, ChoosesByName) {
  const std::string text = "words. i am";  // where Punkt and ICU disagree
  const auto icu = LoadSentenceSplitter("icu");
  ASSERT_TRUE(icu.ok()) << icu.status();
  EXPECT_THAT((*icu)(text), ElementsAre(ByteRange{0, 11}));
  TemporaryDirectory directory;
  ASSERT_TRUE(WritePunktFiles(SmallFiles(), directory.File("t")).ok());
  const auto punkt = LoadSentenceSplitter(directory.File("t"));
  ASSERT_TRUE(punkt.ok()) << punkt.status();
  EXPECT_THAT((*punkt)(text), ElementsAre(ByteRange{0, 6}, ByteRange{7, 11}));
  EXPECT_EQ(LoadSentenceSplitter("nltk").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadSentenceSplitter("").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PunktTablesTest, TakeThePublishedOnes) {
  ETC_SHARED_DATA_OR_SKIP(const std::string folder, "data/punkt");
  const auto files = ReadPunktFiles(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto tables = ParsePunktTables(*files, folder);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->abbreviations.size(), 156);
  EXPECT_EQ(tables->collocations.size(), 37);
  EXPECT_EQ(tables->sentence_starters.size(), 39);
  EXPECT_EQ(tables->orthography.size(), 20366);
}

}  // namespace
}  // namespace etc
