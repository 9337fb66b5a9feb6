// UTF-8 against an independent definition: a code point, encoded by arithmetic,
// is well-formed unless it is a surrogate or beyond U+10FFFF; of all sequences
// of one, two and three bytes exactly the encodings are.

#include "base/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace etc {
namespace {

std::string Encoded(uint32_t code, int bytes) {
  if (bytes == 1) {
    return std::string(1, static_cast<char>(code));
  }
  std::string text(bytes, '\0');
  for (int i = bytes - 1; i > 0; --i, code >>= 6) {
    text[i] = static_cast<char>(0x80 | (code & 0x3F));
  }
  text[0] = static_cast<char>((0xF00 >> bytes & 0xFF) | code);
  return text;
}

int ShortestForm(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(ShortenedTest, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc ...");
  for (const size_t bytes : {2, 3, 4}) {
    EXPECT_EQ(Shortened("ab\u20ACcd", bytes), "ab ...") << bytes;
  }
  EXPECT_EQ(Shortened("ab\u20ACcd", 5), "ab\u20AC ...");
  EXPECT_EQ(Shortened("\u20ACd", 1), " ...");
}

TEST(IsUtf8Test, AcceptsEveryCodePointInItsShortestFormOnly) {
  for (uint32_t code = 0; code < 0x200000; ++code) {
    const bool exists = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    const int shortest = ShortestForm(code);
    ASSERT_EQ(IsUtf8(Encoded(code, shortest)), exists) << std::hex << code;
    if (shortest < 4 && code < 0x1000) {
      for (int bytes = std::max(shortest, 1) + 1; bytes <= 4; ++bytes) {
        ASSERT_FALSE(IsUtf8(Encoded(code, bytes))) << std::hex << code;
      }
    }
  }
}

TEST(IsUtf8Test, RefusesEveryOtherSequenceOfUpToThreeBytes) {
  int accepted = 0;
  for (int a = 0x80; a < 0x100; ++a) {
    EXPECT_FALSE(IsUtf8(std::string(1, static_cast<char>(a)))) << a;
    for (int b = 0; b < 0x100; ++b) {
      const std::string two = {static_cast<char>(a), static_cast<char>(b)};
      accepted += IsUtf8(two) ? 1 : 0;
      for (int c = 0x80; c < 0x100; ++c) {
        accepted += IsUtf8(two + static_cast<char>(c)) ? 1 : 0;
      }
    }
  }
  // 1920 of two bytes; 61 440 of three. No other ends in a byte of 0x80 or
  // more: two and one would need an ASCII third, one and two a lead last.
  EXPECT_EQ(accepted, 1920 + 61440);
}

TEST(IsUtf8Test, ReadsOn) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\u00e9\u20ac\U0001F600z"));
  EXPECT_FALSE(IsUtf8("a\xe2\x82"));
  EXPECT_FALSE(IsUtf8("\xe2\x82z"));
  EXPECT_FALSE(IsUtf8("fine\x80"));
}

TEST(QuotedNameTest, IsPrintableAndShort) {
  EXPECT_EQ(QuotedName("a.b"), "\"a.b\"");
  EXPECT_EQ(QuotedName("ü\n\""), "\"ü\\n\\\"\"");
  EXPECT_EQ(QuotedName("\xff"), "\"\\xff\"");
  EXPECT_LT(QuotedName(std::string(5000, 'x')).size(), 250u);
}

}  // namespace
}  // namespace etc
