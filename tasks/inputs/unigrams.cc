#include "tasks/inputs/unigrams.h"

namespace etc {

bool IsUnigramSpace(CodePoint c) {
  constexpr CodePoint kNarrowNoBreakSpace = 0x202F;
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' ||
         c == kNarrowNoBreakSpace;
}

std::vector<ByteRange> SplitUnigrams(absl::string_view text) {
  std::vector<ByteRange> unigrams;
  bool is_inside = false;
  for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
    const int64_t begin = at;
    const bool was_inside = is_inside;
    is_inside = !IsUnigramSpace(NextCodePoint(text, &at));
    if (is_inside && !was_inside) {
      unigrams.push_back({.begin = begin, .end = at});
    } else if (is_inside) {
      unigrams.back().end = at;
    }
  }
  return unigrams;
}

}  // namespace etc
