#ifndef ETC_TASKS_TEXT_BYTE_RANGE_H_
#define ETC_TASKS_TEXT_BYTE_RANGE_H_

#include <cstdint>

namespace etc {

// Bytes [begin, end) of a text.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

}  // namespace etc

#endif  // ETC_TASKS_TEXT_BYTE_RANGE_H_
