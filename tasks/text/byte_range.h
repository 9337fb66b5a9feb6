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

// Returns those of the items `span.first` to `span.last` of a text, in order,
// that have a byte of `bytes`, or all of them if none has. `bytes_of(i)` gives
// the ByteRange of item i.
template <typename Span, typename BytesOf>
Span ItemsWithBytes(Span span, ByteRange bytes, const BytesOf& bytes_of) {
  Span some = span;
  while (some.first <= some.last && bytes_of(some.first).end <= bytes.begin) {
    ++some.first;
  }
  while (some.first <= some.last && bytes_of(some.last).begin >= bytes.end) {
    --some.last;
  }
  return some.first <= some.last ? some : span;
}

}  // namespace etc

#endif  // ETC_TASKS_TEXT_BYTE_RANGE_H_
