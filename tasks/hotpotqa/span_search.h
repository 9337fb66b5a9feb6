#ifndef ETC_TASKS_HOTPOTQA_SPAN_SEARCH_H_
#define ETC_TASKS_HOTPOTQA_SPAN_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "tasks/hotpotqa/answer_spans.h"
#include "tasks/hotpotqa/example.h"

namespace etc {

// Selects the spans of the long input that may be answers: both ends in one
// sentence or title that is allowed, and of few enough pieces (doc/hotpotqa.md
// 6, step 4).
class SpanFilter {
 public:
  // `allowed` is [G], by the global token of a sentence or title. With
  // `cls_allowed` the span (0, 0), [CLS], is one too.
  SpanFilter(const HotpotqaExample* example, std::vector<bool> allowed,
             bool cls_allowed, int64_t max_answer_length);

  bool Allows(PieceSpan span) const;
  // One past the last place where an allowed span that begins at `first` may
  // end; `first` if there is none.
  int64_t EndLimit(int64_t first) const;

 private:
  bool AllowsToken(int64_t token) const;
  int32_t SentenceOf(int64_t token) const {
    return example_->pattern.sentence[static_cast<size_t>(token)];
  }

  const HotpotqaExample* const example_;
  const std::vector<bool> allowed_;
  const bool cls_allowed_;
  const int64_t max_answer_length_;
};

// Returns the allowed span with the largest begin + end logit; among equals the
// one with the larger begin, then the larger end.
std::optional<PieceSpan> BestSpan(absl::Span<const float> begin,
                                  absl::Span<const float> end,
                                  const SpanFilter& filter);

// The same of the spans between the 50 most probable begins and ends, softmax
// over all of each, by the product of the probabilities in float32: the
// official search.
std::optional<PieceSpan> BestSpanOfTop50(absl::Span<const float> begin,
                                         absl::Span<const float> end,
                                         const SpanFilter& filter);

// Treatment of a span that the end of the input leaves open.
enum class OpenSpan { kCloses, kIsLost };

// The allowed span with the largest mean probability among those that the most
// probable classes of the first `length` tokens mark; `bio` is [3, L].
std::optional<PieceSpan> BestBioSpan(absl::Span<const float> bio,
                                     int64_t length, const SpanFilter& filter,
                                     OpenSpan open_span);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_SPAN_SEARCH_H_
