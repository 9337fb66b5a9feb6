#include "tasks/data/pattern_text.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace etc {
namespace {

// "0-3 7" for the indices in [0, size) that satisfy the predicate.
template <typename Predicate>
std::string Ranges(int64_t size, Predicate contains) {
  std::vector<std::string> ranges;
  for (int64_t begin = 0; begin < size; ++begin) {
    if (!contains(static_cast<size_t>(begin))) {
      continue;
    }
    int64_t last = begin;
    while (last + 1 < size && contains(static_cast<size_t>(last) + 1)) {
      ++last;
    }
    ranges.push_back(last == begin ? absl::StrCat(begin)
                                   : absl::StrCat(begin, "-", last));
    begin = last;
  }
  return ranges.empty() ? "none" : absl::StrJoin(ranges, " ");
}

}  // namespace

std::string LongTokensSeenBy(const AttentionPattern& pattern, int32_t global) {
  const auto at = static_cast<size_t>(global);
  const bool own_only = pattern.hard_g2l && pattern.ignore_hard_g2l[at] == 0;
  return Ranges(pattern.long_length(), [&](size_t i) {
    return pattern.long_example[i] == pattern.global_example[at] &&
           (!own_only || pattern.sentence[i] == global ||
            pattern.paragraph[i] == global);
  });
}

std::string LongTokensOwnedBy(const AttentionPattern& pattern, int32_t global) {
  return Ranges(pattern.long_length(), [&](size_t i) {
    return pattern.sentence[i] == global || pattern.paragraph[i] == global;
  });
}

std::string DescribeMasks(const AttentionPattern& pattern) {
  return absl::StrCat("local radius ", pattern.local_radius, ", ",
                      pattern.hard_g2l ? "hard" : "soft", " g2l mask, ",
                      pattern.hard_l2g ? "hard" : "soft", " l2g mask");
}

}  // namespace etc
