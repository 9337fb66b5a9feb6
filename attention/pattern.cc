#include "attention/pattern.h"

#include <c10/util/Exception.h>

namespace etc {
namespace {

template <typename T>
void CheckLength(const char* name, const std::vector<T>& values,
                 int64_t length) {
  TORCH_CHECK(static_cast<int64_t>(values.size()) == length, name,
              " should have ", length, " elements, but has ", values.size());
}

void CheckGlobalIndices(const char* name, const std::vector<int32_t>& indices,
                        int64_t global_length) {
  for (size_t i = 0; i < indices.size(); ++i) {
    TORCH_CHECK(indices[i] >= -1 && indices[i] < global_length, name, "[", i,
                "] should be -1 or a global token below ", global_length,
                ", but is ", indices[i]);
  }
}

}  // namespace

AttentionPattern UnrestrictedPattern(int64_t long_length, int64_t global_length,
                                     int64_t local_radius,
                                     int64_t relative_pos_max_distance) {
  AttentionPattern pattern;
  pattern.long_segment.assign(long_length, 0);
  pattern.long_example.assign(long_length, 0);
  pattern.sentence.assign(long_length, -1);
  pattern.paragraph.assign(long_length, -1);
  pattern.linked.assign(long_length, -1);
  pattern.ignore_hard_l2g.assign(long_length, 0);
  pattern.global_example.assign(global_length, 0);
  pattern.global_segment.assign(global_length, 0);
  pattern.ignore_hard_g2l.assign(global_length, 0);
  pattern.local_radius = local_radius;
  pattern.relative_pos_max_distance = relative_pos_max_distance;
  return pattern;
}

void CheckLocalRadius(int64_t local_radius) {
  TORCH_CHECK(local_radius >= 1 && local_radius <= kMostLocalRadius,
              "local_radius should be from 1 to ", kMostLocalRadius,
              ", but is ", local_radius);
}

void CheckMaxDistance(int64_t max_distance, const char* name) {
  TORCH_CHECK(max_distance >= 0 && max_distance <= kMostRelativeDistance, name,
              " should be from 0 to ", kMostRelativeDistance, ", but is ",
              max_distance);
}

void CheckPattern(const AttentionPattern& pattern) {
  const int64_t long_length = pattern.long_length();
  const int64_t global_length = pattern.global_length();
  CheckLength("long_example", pattern.long_example, long_length);
  CheckLength("sentence", pattern.sentence, long_length);
  CheckLength("paragraph", pattern.paragraph, long_length);
  CheckLength("linked", pattern.linked, long_length);
  CheckLength("ignore_hard_l2g", pattern.ignore_hard_l2g, long_length);
  CheckLength("global_segment", pattern.global_segment, global_length);
  CheckLength("ignore_hard_g2l", pattern.ignore_hard_g2l, global_length);
  CheckGlobalIndices("sentence", pattern.sentence, global_length);
  CheckGlobalIndices("paragraph", pattern.paragraph, global_length);
  CheckGlobalIndices("linked", pattern.linked, global_length);
  CheckLocalRadius(pattern.local_radius);
  CheckMaxDistance(pattern.relative_pos_max_distance,
                   "relative_pos_max_distance");
}

void CheckPatterns(const std::vector<AttentionPattern>& patterns,
                   int64_t long_length, int64_t global_length) {
  for (const AttentionPattern& pattern : patterns) {
    CheckPattern(pattern);
    TORCH_CHECK(pattern.local_radius == patterns[0].local_radius,
                "patterns of a batch should have one local_radius, but have ",
                patterns[0].local_radius, " and ", pattern.local_radius);
    TORCH_CHECK(pattern.relative_pos_max_distance ==
                    patterns[0].relative_pos_max_distance,
                "patterns of a batch should have one "
                "relative_pos_max_distance, but have ",
                patterns[0].relative_pos_max_distance, " and ",
                pattern.relative_pos_max_distance);
    TORCH_CHECK(pattern.long_length() <= long_length &&
                    pattern.global_length() <= global_length,
                "a pattern of ", pattern.long_length(), " long and ",
                pattern.global_length(), " global tokens does not fit ",
                long_length, " and ", global_length);
  }
}

}  // namespace etc
