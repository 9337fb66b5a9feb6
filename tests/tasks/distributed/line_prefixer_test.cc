// Prefixes of lines that come whole, in pieces, with any end or none.
#include <gtest/gtest.h>

#include <string>

#include "tasks/distributed/process_watch.h"

namespace etc {
namespace {

// Returns all lines of `text` in pieces of `size` bytes.
std::string InPieces(const std::string& text, size_t size) {
  LinePrefixer prefixer("[1] ");
  std::string result;
  for (size_t i = 0; i < text.size(); i += size) {
    result += prefixer.Add(text.substr(i, size));
  }
  return result + prefixer.Finish();
}

TEST(LinePrefixerTest, StandsBeforeEachLineHoweverItsPiecesCome) {
  const std::string text = "one\n\ntwo\r\nthree\rfour\r\n\r\nfive";
  for (size_t size = 1; size <= text.size(); ++size) {
    EXPECT_EQ(InPieces(text, size),
              "[1] one\n[1] \n[1] two\r\n[1] three\r[1] four\r\n[1] \r\n"
              "[1] five\n")
        << "pieces of " << size;
  }
}

TEST(LinePrefixerTest, KeepsALineUntilItEnds) {
  LinePrefixer prefixer("> ");
  EXPECT_EQ(prefixer.Add(""), "");
  EXPECT_EQ(prefixer.Add("10"), "");
  EXPECT_EQ(prefixer.Add("%\r20"), "> 10%\r");
  EXPECT_EQ(prefixer.Add("%\r"), "> 20%\r");
  EXPECT_EQ(prefixer.Finish(), "");
}

TEST(LinePrefixerTest, BreaksALineThatDoesNotEnd) {
  LinePrefixer prefixer("> ");
  const std::string half(700'000, 'x');
  EXPECT_EQ(prefixer.Add(half), "");
  EXPECT_EQ(prefixer.Add(half), "> " + half + half + "\n");
  EXPECT_EQ(prefixer.Add("y\n"), "> y\n");
}

TEST(LinePrefixerTest, ChangesNothingWithoutAPrefix) {
  LinePrefixer prefixer("");
  const std::string part(700'000, 'x');
  for (const std::string& piece :
       {part, part, std::string("\n\r"), part, std::string("end")}) {
    EXPECT_TRUE(prefixer.Add(piece) == piece) << piece.size() << " bytes";
  }
  EXPECT_EQ(prefixer.Finish(), "");
}

}  // namespace
}  // namespace etc
