#ifndef ETC_TESTS_TASKS_NQ_WINDOWS_OF_LOGITS_H_
#define ETC_TESTS_TASKS_NQ_WINDOWS_OF_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tasks/nq/example.h"
#include "tasks/nq/span_selection.h"

namespace etc {

// A window's logits of some tokens: logit and token.
using NqTokenLogits = std::vector<std::pair<float, int32_t>>;

// Ends of each channel, in the order of NqChannel.
struct NqEndLogits {
  NqTokenLogits short_starts;
  NqTokenLogits short_ends;
  NqTokenLogits long_starts;
  NqTokenLogits long_ends;
};

// A document with these candidates, given as pairs of tokens [start, end).
inline std::shared_ptr<const NqDocument> NqDocumentOf(
    const std::vector<std::pair<int64_t, int64_t>>& candidates) {
  NqDocument document{.example_id = -42};
  for (const auto& [start, end] : candidates) {
    document.candidates.push_back(
        {.span = {.start_token = start, .end_token = end}});
  }
  return std::make_shared<const NqDocument>(document);
}

// The logit of a long token in one channel.
inline float& EndLogit(NqWindow& window, size_t channel, size_t token) {
  std::vector<float>& ends = window.logits.ends;
  return ends[channel * (ends.size() / kNqNumChannels) + token];
}

// A window over the tokens `first` to `last` of a document, each one piece: a
// token t is the long token 1 + t - first. `cls` is the logit of [CLS] in all
// channels, those not named in `ends` are minus infinity.
inline NqWindow WindowOfLogits(
    const std::shared_ptr<const NqDocument>& document, int32_t first,
    int32_t last, float cls, const NqEndLogits& ends) {
  auto example = std::make_shared<NqExample>();
  example->document = document;
  example->long_tokens.push_back(-1);
  for (int32_t token = first; token <= last; ++token) {
    example->long_tokens.push_back(token);
  }
  example->long_tokens.push_back(-1);
  NqWindow window;
  window.logits.ends.assign(kNqNumChannels * example->long_tokens.size(),
                            -std::numeric_limits<float>::infinity());
  window.logits.answer_type.assign(kNqNumAnswerTypes, 0.0F);
  window.example = std::move(example);
  const NqTokenLogits* const named[] = {&ends.short_starts, &ends.short_ends,
                                        &ends.long_starts, &ends.long_ends};
  for (size_t c = 0; c < kNqNumChannels; ++c) {
    EndLogit(window, c, 0) = cls;
    for (const auto& [logit, token] : *named[c]) {
      EndLogit(window, c, static_cast<size_t>(1 + token - first)) = logit;
    }
  }
  return window;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_NQ_WINDOWS_OF_LOGITS_H_
