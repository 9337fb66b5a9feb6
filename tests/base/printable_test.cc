// Tests the printing of texts from files: control characters and broken UTF-8
// are escaped, whole or in pieces; all else stays as it is.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>

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

std::string Written(const std::string& text, bool keeps_returns,
                    bool in_pieces) {
  std::stringbuf result;
  PrintableBuffer buffer(&result, keeps_returns);
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

TEST(PrintableBufferTest, PassesOnLinesAndWholeCharacters) {
  for (const bool in_pieces : {false, true}) {
    EXPECT_EQ(Written("a\n\tb\xe2\x82\xac\x1b\r.", false, in_pieces),
              "a\n\tb\xe2\x82\xac\\x1b\\x0d.");
    EXPECT_EQ(Written("\ra\x1b", true, in_pieces), "\ra\\x1b");
    EXPECT_EQ(Written("\xe2\x82z\xf0\x9f.", false, in_pieces),
              "\\xe2\\x82z\\xf0\\x9f.");
  }
}

// A full disk, say.
class BrokenBuffer : public std::streambuf {};

TEST(PrintableBufferTest, SaysThatItCannotWrite) {
  BrokenBuffer broken;
  PrintableBuffer buffer(&broken, /*keeps_returns=*/false);
  std::ostream stream(&buffer);
  stream << "a" << std::flush;
  EXPECT_FALSE(stream.good());
}

}  // namespace
}  // namespace etc
