#ifndef ETC_ATTENTION_RELATIVE_POSITION_H_
#define ETC_ATTENTION_RELATIVE_POSITION_H_

#include <algorithm>
#include <cstdint>

namespace etc {

// Relative ids of ETC (doc/model.md 5.2). With m = `max_distance` and
// delta = key position - query position:
//
//   delta >= 0   min(delta, m)          0 is the token itself
//   delta <  0   m + min(-delta, m)     m + 1 is the left neighbour
constexpr int64_t RelativeId(int64_t delta, int64_t max_distance) {
  return delta >= 0 ? std::min(delta, max_distance)
                    : max_distance + std::min(-delta, max_distance);
}

// Number of ids of RelativeId: 2m + 1. The ids from here on mark pairs of
// different streams and segments (pattern.h).
constexpr int64_t RelativeDistanceCount(int64_t max_distance) {
  return 2 * max_distance + 1;
}
constexpr int64_t NotLinkedId(int64_t max_distance) {
  return RelativeDistanceCount(max_distance);
}
constexpr int64_t LinkedId(int64_t max_distance) {
  return RelativeDistanceCount(max_distance) + 1;
}
constexpr int64_t OtherSegmentId(int64_t max_distance) {
  return RelativeDistanceCount(max_distance) + 2;
}
// Rows a relative table must have at least (doc/model.md 1.1).
constexpr int64_t RelativeVocabSize(int64_t max_distance) {
  return RelativeDistanceCount(max_distance) + 3;
}

}  // namespace etc

#endif  // ETC_ATTENTION_RELATIVE_POSITION_H_
