#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_CRC32C_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace etc {

// CRC-32C (Castagnoli) of A followed by `bytes`, where `crc` is that of A; 0 is
// that of nothing (formats spec 0.4). Debian 12 has no package with it.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

// What TensorFlow stores in its place.
inline uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_CRC32C_H_
