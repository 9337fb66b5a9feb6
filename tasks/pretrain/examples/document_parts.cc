#include "tasks/pretrain/examples/document_parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace etc {
namespace {

int64_t CeilOfQuotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<int64_t> SplitSentence(
    int64_t num_tokens, absl::FunctionRef<bool(int64_t)> continues_word,
    const SentenceSplitOptions& options) {
  std::vector<int64_t> ends;
  for (int64_t begin = 0; begin < num_tokens;) {
    const int64_t hard_end = std::min(begin + options.max_tokens, num_tokens);
    int64_t end = hard_end;
    while (end - 1 > begin && end < num_tokens && continues_word(end)) {
      --end;
    }
    if (end - begin < options.min_graceful) {
      end = hard_end;
    }
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

std::vector<int64_t> SplitDocument(const std::vector<int64_t>& lengths,
                                   int64_t max_tokens, int64_t max_sentences) {
  int64_t remaining =
      std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  std::vector<int64_t> parts;
  for (size_t begin = 0; begin < lengths.size();) {
    const int64_t splits =
        std::max<int64_t>(CeilOfQuotient(remaining, max_tokens), 1);
    const int64_t goal = CeilOfQuotient(remaining, splits);
    int64_t part = 0;
    size_t end = begin;
    do {
      part += lengths[end++];
    } while (end < lengths.size() && part < goal &&
             part + lengths[end] <= max_tokens &&
             static_cast<int64_t>(end - begin) < max_sentences);
    parts.push_back(static_cast<int64_t>(end - begin));
    remaining -= part;
    begin = end;
  }
  return parts;
}

}  // namespace etc
