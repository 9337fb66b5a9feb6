// Tests the printing of texts from files: control characters, those that change
// the order of others, and broken UTF-8 are escaped, whole or in pieces; all
// else stays as it is.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>

namespace etc {
namespace {

TEST(PrintableTest, EscapesControlsAndWhatIsNotUtf8) {
  EXPECT_EQ(Printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(Printable(std::string("\0\x7f\n\r\t", 5)),
            "\\x00\\x7f\\x0a\\x0d\\x09");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b"
            "31m")
      << "CSI";
  EXPECT_EQ(Printable("\xff"
                      "a\xe2\x82"),
            "\\xffa\\xe2\\x82");
  const std::string fine = "a \u00a0\u00e9\u20ac\U0001F600 \\x1b";
  EXPECT_EQ(Printable(fine), fine);
}

TEST(PrintableTest, EscapesSeparatorsAndDirections) {
  EXPECT_EQ(Printable("a\u202Eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(Printable("\u200E\u2028\u2069"),
            "\\xe2\\x80\\x8e\\xe2\\x80\\xa8\\xe2\\x81\\xa9");
  // Neighbours, of which joiners and narrow spaces belong to words.
  const std::string fine = "\u200C\u200D\u2010\u2027\u202F\u2065\u206A";
  EXPECT_EQ(Printable(fine), fine);
}

std::string Written(const std::string& text, const std::string& kept,
                    bool in_pieces) {
  std::stringbuf result;
  PrintableBuffer buffer(&result, kept);
  std::ostream stream(&buffer);
  if (in_pieces) {
    for (const char c : text) {
      stream << c << std::flush;
    }
  } else {
    stream << text << std::flush;
  }
  EXPECT_TRUE(stream.good());
  return result.str();
}

// std::cerr has warnings of threads beside the lines of progress.
TEST(PrintableBufferTest, TakesPiecesOfSeveralThreads) {
  std::stringbuf result;
  PrintableBuffer buffer(&result, "\n");
  const std::string line = "a\u20ac\x1b and more than a string has room for\n";
  const auto write = [&] {
    for (int i = 0; i < 10'000; ++i) {
      buffer.sputn(line.data(), std::ssize(line));
    }
  };
  std::thread other(write);
  write();
  other.join();
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    expected += "a\u20ac\\x1b and more than a string has room for\n";
  }
  EXPECT_TRUE(result.str() == expected);
}

TEST(PrintableBufferTest, PassesOnLinesAndWholeCharacters) {
  for (const bool in_pieces : {false, true}) {
    EXPECT_EQ(Written("a\n\tb\xe2\x82\xac\x1b\r.", "\n\t", in_pieces),
              "a\n\tb\xe2\x82\xac\\x1b\\x0d.");
    EXPECT_EQ(Written("\ra\x1b", "\r", in_pieces), "\ra\\x1b");
    EXPECT_EQ(Written("\u202Ea\u2028", "\n\u2028", in_pieces),
              "\\xe2\\x80\\xaea\u2028");
    EXPECT_EQ(Written("\xe2\x82z\xf0\x9f.", "\n\t", in_pieces),
              "\\xe2\\x82z\\xf0\\x9f.");
  }
}

// A full disk, say.
class BrokenBuffer : public std::streambuf {};

TEST(PrintableBufferTest, SaysThatItCannotWrite) {
  BrokenBuffer broken;
  PrintableBuffer buffer(&broken, /*kept=*/"");
  std::ostream stream(&buffer);
  stream << "a" << std::flush;
  EXPECT_FALSE(stream.good());
}

}  // namespace
}  // namespace etc
