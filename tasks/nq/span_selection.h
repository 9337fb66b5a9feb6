#ifndef ETC_TASKS_NQ_SPAN_SELECTION_H_
#define ETC_TASKS_NQ_SPAN_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/types/span.h"
#include "tasks/nq/example.h"
#include "tasks/task/benchmark.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct NqLogits {
  // [4, L], by NqChannel; those behind the example's own tokens are of padding.
  // Column 0 is [CLS], which stands for no answer.
  T ends;
  T answer_type;  // [5], by NqAnswerType

  static constexpr auto kMembers =
      std::make_tuple(&NqLogits::ends, &NqLogits::answer_type);
};

// A window with its logits, which must outlive it.
using NqWindow = ExampleLogits<NqExample, NqLogits, LogitRow>;

// The logits of one channel: [L].
inline LogitRow NqChannelOf(const NqWindow& window, NqChannel channel) {
  const LogitRow ends = window.logits.ends;
  const size_t length = ends.size() / kNqNumChannels;
  return ends.subspan(static_cast<size_t>(channel) * length, length);
}

// An answer in tokens of the document, both ends included.
struct NqScoredSpan {
  int64_t first = 0;
  int64_t last = 0;
  double score = 0;
  // The window in which it was found, if in one.
  size_t window = 0;
};

// Empty for no answer.
struct NqSelection {
  std::optional<NqScoredSpan> long_answer;
  std::optional<NqScoredSpan> short_answer;
};

// The answers with the best scores in the windows over a document. The score of
// an answer is how much likelier it is than none, both ends of one window:
//
//   (start logit - that of [CLS]) + (end logit - that of [CLS])
//
// The long answer is a candidate of the record; the short one has at most
// `max_short_length` tokens. Both begin and end with whole words.
//
//   kJoint            the best long answer, and the best short one within it
//   kJointExhaustive  the pair of them with the best sum, the short answer
//                     within the long one
//   kDisjoint         the best long answer, and the best short one anywhere
//
// Takes the first of equals: of windows, then candidates, then starts, then
// ends. A span whose score is not finite is no answer.
NqSelection SelectNqSpans(absl::Span<const NqWindow> windows,
                          NqSpanSelection method, int64_t max_short_length);

}  // namespace etc

#endif  // ETC_TASKS_NQ_SPAN_SELECTION_H_
