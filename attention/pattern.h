#ifndef ETC_ATTENTION_PATTERN_H_
#define ETC_ATTENTION_PATTERN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

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
// different streams and segments (AttentionPattern).
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

// The largest radius, far below the overflow of 2 radius + 1, the columns of a
// window. A radius of the length or more sees everything; but residual scores
// have all these columns, whatever the length, and cost time and memory for
// each (ResidualScores).
inline constexpr int64_t kMostLocalRadius = int64_t{1} << 20;

// Throws c10::Error unless the radius is from 1 to kMostLocalRadius.
void CheckLocalRadius(int64_t local_radius);

// The largest distance m of relative ids, far below the overflow of their
// number, 2m + 4.
inline constexpr int64_t kMostRelativeDistance = int64_t{1} << 20;

// Throws c10::Error, with `name` in its message, unless the distance is from 0
// to kMostRelativeDistance.
void CheckMaxDistance(int64_t max_distance, const char* name);

// Visibility and relative ids of all pairs of tokens in one example, in O(L +
// G) memory (doc/model.md 6). Long tokens are i, j in [0, L), global tokens g,
// k in [0, G):
//
//   l2l  i sees j  iff |j - i| <= local_radius
//                      and long_segment[i] == long_segment[j] >= 0
//   g2g  g sees k  iff global_example[g] == global_example[k] >= 0
//   l2g  i sees g  iff long_example[i] == global_example[g] >= 0, and under
//                      hard_l2g: Owns(g, i) or ignore_hard_l2g[i]
//   g2l  g sees i  iff long_example[i] == global_example[g] >= 0, and under
//                      hard_g2l: Owns(g, i) or ignore_hard_g2l[g]
//
// where Owns(g, i) = (sentence[i] == g or paragraph[i] == g). Relative ids,
// with m = relative_pos_max_distance and V0 = 2m + 1 (none at all when m is 0):
//
//   l2l  RelativeId(j - i)
//   l2g, g2l  V0 + 1 if Owns(g, i) or linked[i] == g, else V0
//   g2g  RelativeId(k - g) if global_segment[g] == global_segment[k],
//        else V0 + 2
//
// Negative ids in long_segment, long_example and global_example mark padding,
// which sees nothing and is not seen.
//
// The tokens of an example may be fewer than those of the batch that it is in:
// positions beyond `long_length()` or `global_length()` see nothing and are not
// seen.
struct AttentionPattern {
  int64_t long_length() const {
    return static_cast<int64_t>(long_segment.size());
  }
  int64_t global_length() const {
    return static_cast<int64_t>(global_example.size());
  }

  // Ids of each long token; negative: padding.
  std::vector<int32_t> long_segment = {};
  std::vector<int32_t> long_example = {};
  // Indices of global tokens, -1 for none.
  std::vector<int32_t> sentence = {};
  std::vector<int32_t> paragraph = {};
  std::vector<int32_t> linked = {};
  std::vector<uint8_t> ignore_hard_l2g = {};

  // Properties of each global token; a negative example is padding.
  std::vector<int32_t> global_example = {};
  std::vector<int32_t> global_segment = {};
  std::vector<uint8_t> ignore_hard_g2l = {};

  bool hard_l2g = false;
  bool hard_g2l = false;
  // Tokens a long token sees to each side.
  int64_t local_radius = 84;
  // m, at most kMostRelativeDistance; 0 for no relative ids.
  int64_t relative_pos_max_distance = 12;
};

// A pattern of `long_length` and `global_length` tokens without borders: one
// segment, one example, no sentences, soft masks.
AttentionPattern UnrestrictedPattern(int64_t long_length, int64_t global_length,
                                     int64_t local_radius,
                                     int64_t relative_pos_max_distance);

// Throws c10::Error unless all vectors of one stream have one length, indices
// of global tokens lie in [-1, global_length()), the radius is from 1 to
// kMostLocalRadius and the distance from 0 to kMostRelativeDistance.
void CheckPattern(const AttentionPattern& pattern);

// Throws c10::Error unless all patterns are right, have one radius and one
// distance, and fit `long_length` and `global_length`.
void CheckPatterns(const std::vector<AttentionPattern>& patterns,
                   int64_t long_length, int64_t global_length);

}  // namespace etc

#endif  // ETC_ATTENTION_PATTERN_H_
