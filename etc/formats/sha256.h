#ifndef ETC_ETC_FORMATS_SHA256_H_
#define ETC_ETC_FORMATS_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace etc {

// SHA-256 (FIPS 180-4) of bytes that come piece by piece. Chosen to tell files
// apart because no two that differ are known to share one, unlike a CRC's 2^32
// values, and because `sha256sum` says the same. About 0.3 GB/s.
class Sha256 {
 public:
  void Update(absl::string_view bytes);

  // 64 hexadecimal digits, of all bytes so far. Nothing may be added
  // afterwards.
  std::string HexDigest();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer_ = {};
  size_t buffered_ = 0;
  uint64_t length_ = 0;  // bytes
};

}  // namespace etc

#endif  // ETC_ETC_FORMATS_SHA256_H_
