#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace etc {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

// tables[k][b]: the remainder of byte b followed by k zero bytes, so that eight
// bytes are looked up at a time.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder =
          (remainder >> 1) ^ ((remainder & 1) != 0 ? kReversedPolynomial : 0);
    }
    tables[0][byte] = remainder;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
// The loop of ExtendCrc32cByTables with the processor's CRC instruction.
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(
    uint32_t crc, absl::string_view bytes) {
  uint64_t state = ~crc;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  for (; end - at >= 8; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    state = __builtin_ia32_crc32di(state, word);
  }
  auto rest = static_cast<uint32_t>(state);
  for (; at != end; ++at) {
    rest = __builtin_ia32_crc32qi(rest, static_cast<uint8_t>(*at));
  }
  return ~rest;
}
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) {
    return ExtendByInstruction(crc, bytes);
  }
#endif
  return ExtendCrc32cByTables(crc, bytes);
}

uint32_t ExtendCrc32cByTables(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  for (; end - at >= 8; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) {
      crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; at != end; ++at) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xff];
  }
  return ~crc;
}

}  // namespace etc
