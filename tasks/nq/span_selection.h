#ifndef ETC_TASKS_NQ_SPAN_SELECTION_H_
#define ETC_TASKS_NQ_SPAN_SELECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "tasks/nq/example.h"

namespace etc {

// What the head says of one window.
struct NqWindow {
  std::shared_ptr<const NqExample> example;
  // Of each channel the logits of all long tokens, L of them; those behind the
  // example's own are of padding. Index 0 is [CLS], which stands for no answer.
  std::array<std::vector<float>, kNqNumChannels> ends;
  std::array<float, kNqNumAnswerTypes> answer_type = {};

  const std::vector<float>& channel(NqChannel channel) const {
    return ends[static_cast<size_t>(channel)];
  }
};

// An answer in tokens of the document, both ends included.
struct NqScoredSpan {
  int64_t first = 0;
  int64_t last = 0;
  double score = 0;
  // Where it was found, if in one window.
  size_t window = 0;
};

// Nothing for no answer.
struct NqSelection {
  std::optional<NqScoredSpan> long_answer;
  std::optional<NqScoredSpan> short_answer;
};

enum class NqSpanSelection { kJoint, kDisjoint, kJointExhaustive };

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
// The first of equals is taken: of windows, then candidates, then starts, then
// ends. What has a score that is not finite is no answer.
NqSelection SelectNqSpans(absl::Span<const NqWindow> windows,
                          NqSpanSelection method, int64_t max_short_length);

}  // namespace etc

#endif  // ETC_TASKS_NQ_SPAN_SELECTION_H_
