#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_LAYOUT_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace etc {

// What the reader and the writer of sorted tables agree upon (formats spec
// 2.2), in bytes.
inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
inline constexpr size_t kTableFooterBytes = 48;
inline constexpr size_t kTableHandlesBytes = 40;  // of the footer
inline constexpr size_t kTableTrailerBytes = 5;  // type and checksum of a block
inline constexpr size_t kTableRestartBytes = 4;
inline constexpr uint8_t kTableRawBlock = 0;
inline constexpr uint8_t kTableSnappyBlock = 1;

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_LAYOUT_H_
