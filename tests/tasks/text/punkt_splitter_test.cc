// PunktSentences with small tables against NLTK 3.10.3 with the same, on texts
// for each rule of doc/wikihop.md 2.3 and for each class of characters that it
// looks at; with the published tables against the borders that NLTK made of
// books, Wikipedia and odd texts (all of them, byte for byte); and promises on
// random bytes: order, no empty sentence, no white space lost, linear time.
#include "tasks/text/punkt_splitter.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/text/punkt_tables.h"
#include "tests/support/shared_data.h"

namespace etc {
namespace {

using Json = nlohmann::json;

const PunktTables& SmallTables() {
  static const PunktTables* const tables = new PunktTables{
      .abbreviations = {"mr", "dr", "u.s", "p.m", "e.g", "no", "inc", ". . "},
      .collocations = {"##number##\tmile", "j\tsmith"},
      .sentence_starters = {"the", "in"},
      .orthography = {{"the", 126},
                      {"smith", 12},
                      {"he", 82},
                      {"mile", 32},
                      {"end", 36},
                      {"yes", 2},
                      {"i", 14},
                      {"army", 4},
                      {"left", 34},
                      {"then", 50},
                      {"car", 112},
                      {"é", 32},
                      {"είς", 32}}};
  return *tables;
}

// `text` with "<" and ">" around each sentence.
std::string Marked(const std::string& text, const PunktTables& tables) {
  std::string marked;
  int64_t at = 0;
  const auto add_text_to = [&](int64_t end) {
    marked +=
        text.substr(static_cast<size_t>(at), static_cast<size_t>(end - at));
    at = end;
  };
  for (const ByteRange& range : PunktSentences(text, tables)) {
    add_text_to(range.begin);
    marked += '<';
    add_text_to(range.end);
    marked += '>';
  }
  add_text_to(static_cast<int64_t>(text.size()));
  return marked;
}

std::string Unmarked(std::string text) {
  std::erase_if(text, [](char byte) { return byte == '<' || byte == '>'; });
  return text;
}

// The output of NLTK's span_tokenize.
const std::vector<std::string> kMarkedByNltk = {
    // Abbreviations, initials, numbers
    "<He met Mr. Smith.> <Then left.>",
    "<In the U.S. Army men left.> <The U.S.> <The end.>",
    "<At 5 p.m.> <He left.> <At 5 p.m. Smith left.>",
    "<J. Smith and J. Yes and A.> <Mile.> <B.> <car>",
    "<It was No. 5. Mile by mile.>",
    "<It was 5. Mile or 5. left or 5.> <The.>",
    "<A pre-Dr.> <Left.> <Acme-Inc. Yes>",
    "<x. i am.> <i.> <Left>",
    "<MR. SMITH.> <MR. ARMY.>",
    // Marks and what follows
    "<Really?!> <Yes.> <No!!!> <End>",
    "<One.Two.> <Three.>",
    "<Go.)> <Left.> <\"Go.\"> <He (left.)> <[Yes!]> <{No?}> <End.>",
    "<He left.><\"Yes\" no.'Then>",
    "<End.><[1] Yes.><(2) No>",
    "<Wait... What?> <Wait.> <.> <.> <Yes.> <Wait .> <.> <.> <.> <Left>",
    "<Mr .> <Smith .> <He ?> <!>",
    "<?><!> <a ?><!> <b>",
    "<Yes.-- Left.> <\"Go.\"><-- Then \"go.\"><--left>",
    "<Yes.)> <-- Left>",
    "<a.,b.> <c., d.>",
    "<End.;Left.><: No.* @.><@ y>",
    // White space
    "<  One.> <Two.>  \n ",
    "<One.>\n\n<Two.>\r\n<Three.>\t<Four.>",
    "\n\n",
    "<Mr.\n\nSmith.> \n\n<Mr.>\n",
    "<One.> \u00A0 <Two.\u3000Three.>\u2029<Four.>",
    "<One.\034Two.> \037 <Three.>\302\205<Four.>",
    "<One.\u200BTwo.\u200B Three.>",
    "<.> \u00A0<.> <.>\u00A0<.> <Yes>",
    // Letters beyond ASCII
    "<“No.”> <She left.> <‘Yes.’> <«Go.»> <End.”>",
    "<É.> <Left.> <é.> <Left.> <İ.> <Left.> <x.> <É. Yes>",
    "<mr.> <ΕΊΣ.> <ΕΊΣ>",
    "<٣. mile.> <３.٥. Mile.> <½.> <Mile.> <². left>",
    "<_.> <Mile.> <ⅷ.> <Left.> <ª.> <Left.> <ǅ.> <Left>",
    "<dr. ǅx.> <dr. ⅷ. dr. Ⓐ.> <dr. ẞ. dr. ß>",
    "<日本。 日.> <本. Yes>",
    "<e\u0301.> <Left.> <\u0301.> <Left>",
    "<😀.> <𝐀.> <Left.> <𐐀. left>",
};

TEST(PunktSplitterTest, DividesAsNltkDoes) {
  for (const std::string& expected : kMarkedByNltk) {
    EXPECT_EQ(Marked(Unmarked(expected), SmallTables()), expected);
  }
}

TEST(PunktSplitterTest, HasNoSentenceWithoutText) {
  EXPECT_EQ(Marked("", SmallTables()), "");
  EXPECT_EQ(Marked(" \n\u00A0\u3000 ", SmallTables()), " \n\u00A0\u3000 ");
}

TEST(PunktSplitterTest, DecidesByEachTable) {
  const std::string text = "At 5 p.m. Smith left Mr. The. Dr. Then 3. Mile.";
  EXPECT_EQ(Marked(text, SmallTables()),
            "<At 5 p.m. Smith left Mr.> <The.> <Dr.> <Then 3. Mile.>");
  PunktTables tables = SmallTables();
  tables.abbreviations.erase("p.m");
  tables.collocations.clear();
  EXPECT_EQ(Marked(text, tables),
            "<At 5 p.m.> <Smith left Mr.> <The.> <Dr.> <Then 3.> <Mile.>");
  tables = SmallTables();
  tables.sentence_starters.clear();
  tables.orthography["the"] = kPunktLower | kPunktUpperInMiddle;
  tables.orthography["then"] = kPunktUpper;
  EXPECT_EQ(Marked(text, tables),
            "<At 5 p.m. Smith left Mr. The.> <Dr. Then 3. Mile.>");
}

TEST(PunktSplitterTest, KeepsItsPromisesOnAnyBytes) {
  const std::vector<std::string> parts = {
      "Mr.",      "end.",   "[",   "(",    ")",      "\"",
      ".",        "!",      "? ",  " ",    "\n",     "\u2029",
      "A",        "the",    "The", "日。", "\xFF",   "\xE2",
      "\xE2\x80", "\u00A0", "5",   "U.S.", "--",     "e\u0301",
      "😀",        "-",      "“",   "”",    "\u001C", std::string(1, '\0')};
  std::mt19937 random(17);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (size_t i = random() % 16; i > 0; --i) {
      text += parts[random() % parts.size()];
    }
    std::string between;
    int64_t at = 0;
    for (const ByteRange& range : PunktSentences(text, SmallTables())) {
      ASSERT_LT(range.begin, range.end) << text;
      ASSERT_GE(range.begin, at) << text;
      between += text.substr(static_cast<size_t>(at),
                             static_cast<size_t>(range.begin - at));
      at = range.end;
    }
    ASSERT_LE(at, static_cast<int64_t>(text.size())) << text;
    between += text.substr(static_cast<size_t>(at));
    for (const char* space : {" ", "\n", "\u2029", "\u00A0", "\u001C"}) {
      for (size_t found = between.find(space); found != std::string::npos;
           found = between.find(space)) {
        between.erase(found, std::string(space).size());
      }
    }
    ASSERT_EQ(between, "") << text;
  }
}

TEST(PunktSplitterTest, SplitsALongTextInTimeLinearInItsLength) {
  std::string text;
  std::string one_word;
  for (int i = 0; i < 100000; ++i) {
    text += "He left. ";
    one_word += "Go.)";
  }
  EXPECT_EQ(PunktSentences(text, SmallTables()).size(), 100000);
  EXPECT_EQ(PunktSentences(one_word, SmallTables()).size(), 1);
  for (const char* part : {"(", ".", ". ", "? ", "?", "\xFF", " ", "-", "a."}) {
    std::string repeated;
    for (int i = 0; i < 300000; ++i) {
      repeated += part;
    }
    PunktSentences(repeated, SmallTables());
  }
}

// --- The published tables ----------------------------------------------------

PunktTables PublishedTables(const std::string& folder) {
  const auto files = ReadPunktFiles(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  auto tables = ParsePunktTables(*files, folder);
  EXPECT_TRUE(tables.ok()) << tables.status();
  return *std::move(tables);
}

// The texts of all files in a folder that hold arrays of {"text": "...",
// "sentences": [[begin, end], ...]}.
std::vector<Json> GoldenTexts(const std::string& folder) {
  std::vector<Json> texts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    std::ifstream stream(entry.path());
    const Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
    for (const Json& text : json.is_array() ? json : Json::array()) {
      if (text.is_object() && text.contains("text") &&
          text.contains("sentences")) {
        texts.push_back(text);
      }
    }
  }
  return texts;
}

// Golden texts of ETC_GOLDEN_DIR or its folder "punkt", or else the shared
// ones.
std::vector<Json> GoldenTexts() {
  const char* const chosen = std::getenv("ETC_GOLDEN_DIR");
  for (const std::string name : {"", "/punkt"}) {
    if (chosen != nullptr) {
      std::vector<Json> texts = GoldenTexts(chosen + name);
      if (!texts.empty()) {
        return texts;
      }
    }
  }
  return GoldenTexts(SharedDataPath("golden/punkt"));
}

// Borders as people compare them: where the first difference is.
testing::AssertionResult HasBorders(const std::string& text,
                                    const std::vector<ByteRange>& expected,
                                    const PunktTables& tables) {
  const std::vector<ByteRange> found = PunktSentences(text, tables);
  for (size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    if (i < found.size() && i < expected.size() && found[i] == expected[i]) {
      continue;
    }
    const auto show = [&](const std::vector<ByteRange>& ranges) {
      if (i >= ranges.size()) {
        return std::string("absent");
      }
      return absl::StrCat(
          "\"",
          text.substr(static_cast<size_t>(ranges[i].begin),
                      static_cast<size_t>(ranges[i].end - ranges[i].begin)),
          "\"");
    };
    return testing::AssertionFailure()
           << "sentence " << i << " is " << show(found) << ", but should be "
           << show(expected);
  }
  return testing::AssertionSuccess();
}

TEST(PunktGoldenTest, HasTheBordersOfEveryText) {
  ETC_SHARED_DATA_OR_SKIP(const std::string folder, "data/punkt");
  const PunktTables tables = PublishedTables(folder);
  const std::vector<Json> texts = GoldenTexts();
  if (texts.empty()) {
    GTEST_SKIP() << "needs texts in golden/punkt in the folder of shared data "
                    "(see ETC_SHARED_DIR in CONTRIBUTING.md)";
  }
  for (const Json& text : texts) {
    std::vector<ByteRange> expected;
    for (const Json& range : text["sentences"]) {
      expected.push_back({range[0], range[1]});
    }
    EXPECT_TRUE(HasBorders(text["text"], expected, tables)) << text["text"];
  }
  RecordProperty("texts", static_cast<int>(texts.size()));
}

TEST(PunktSplitterTest, IsSharedByThreads) {
  const std::string text = "One. Two by Mr. X. Three!";
  const std::vector<ByteRange> expected = PunktSentences(text, SmallTables());
  std::vector<std::vector<ByteRange>> split(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : split) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        of_thread = PunktSentences(text, SmallTables());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(split, testing::Each(expected));
}

}  // namespace
}  // namespace etc
