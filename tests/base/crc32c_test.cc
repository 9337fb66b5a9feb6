// CRC-32C against the values of doc/formats.md 0.4 and against the polynomial
// bit by bit, at lengths and splits around the eight bytes taken at a time.

#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace etc {
namespace {

uint32_t BitwiseCrc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
    }
  }
  return ~crc;
}

TEST(Crc32cTest, HasTheValuesOfTheSpec) {
  const struct {
    std::string bytes;
    uint32_t crc;
    uint32_t masked;
  } cases[] = {{"", 0x00000000, 0xa282ead8},
               {"123456789", 0xe3069283, 0xc78ab0e5},
               {std::string(32, '\0'), 0x8a9136aa, 0x0fd7fffa}};
  for (const auto& each : cases) {
    EXPECT_EQ(ExtendCrc32c(0, each.bytes), each.crc);
    EXPECT_EQ(MaskCrc32c(each.crc), each.masked);
  }
}

TEST(Crc32cTest, IsThatOfThePolynomialHoweverTheBytesCome) {
  std::mt19937 random(1);
  std::string bytes;
  for (int length = 0; length < 40; ++length) {
    const uint32_t expected = BitwiseCrc32c(bytes);
    for (int split = 0; split <= length; ++split) {
      const uint32_t first = ExtendCrc32c(0, bytes.substr(0, split));
      EXPECT_EQ(ExtendCrc32c(first, bytes.substr(split)), expected)
          << length << " bytes split at " << split;
      EXPECT_EQ(ExtendCrc32cByTables(first, bytes.substr(split)), expected)
          << length << " bytes split at " << split;
    }
    bytes.push_back(static_cast<char>(random()));
  }
}

}  // namespace
}  // namespace etc
