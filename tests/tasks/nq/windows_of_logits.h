#ifndef ETC_TESTS_TASKS_NQ_WINDOWS_OF_LOGITS_H_
#define ETC_TESTS_TASKS_NQ_WINDOWS_OF_LOGITS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tasks/nq/example.h"
#include "tasks/nq/official_spans.h"
#include "tasks/nq/prediction.h"
#include "tasks/nq/span_selection.h"

namespace etc {

// A window that has logits of its own, and the functions of windows for it.
using OwnedNqWindow = ExampleLogits<NqExample, NqLogits>;

// The result is valid as long as `windows`.
inline std::vector<NqWindow> ViewsOf(
    const std::vector<OwnedNqWindow>& windows) {
  std::vector<NqWindow> views;
  for (const OwnedNqWindow& window : windows) {
    views.push_back({.example = window.example,
                     .logits = MapMembers<LogitRow>(
                         window.logits, [](const std::vector<float>& row) {
                           return LogitRow(row);
                         })});
  }
  return views;
}
inline LogitRow NqChannelOf(const OwnedNqWindow& window, NqChannel channel) {
  return NqChannelOf(
      NqWindow{.example = window.example,
               .logits = {.ends = window.logits.ends,
                          .answer_type = window.logits.answer_type}},
      channel);
}
inline NqSelection SelectNqSpans(const std::vector<OwnedNqWindow>& windows,
                                 NqSpanSelection method,
                                 int64_t max_short_length) {
  return SelectNqSpans(absl::MakeConstSpan(ViewsOf(windows)), method,
                       max_short_length);
}
inline NqSelection SelectNqSpansOfficially(
    const std::vector<OwnedNqWindow>& windows, NqSpanSelection method,
    int64_t max_short_length) {
  return SelectNqSpansOfficially(absl::MakeConstSpan(ViewsOf(windows)), method,
                                 max_short_length);
}
inline auto OfficialScoredTokens(const std::vector<OwnedNqWindow>& windows) {
  return OfficialScoredTokens(absl::MakeConstSpan(ViewsOf(windows)));
}
inline NqPrediction DecodeNqDocument(const std::vector<OwnedNqWindow>& windows,
                                     const NqOptions& options) {
  return DecodeNqDocument(absl::MakeConstSpan(ViewsOf(windows)), options);
}

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
inline float& EndLogit(OwnedNqWindow& window, size_t channel, size_t token) {
  std::vector<float>& ends = window.logits.ends;
  return ends[channel * (ends.size() / kNqNumChannels) + token];
}

// A window over the tokens `first` to `last` of a document, each one piece: a
// token t is the long token 1 + t - first. `cls` is the logit of [CLS] in all
// channels, those not named in `ends` are minus infinity.
inline OwnedNqWindow WindowOfLogits(
    const std::shared_ptr<const NqDocument>& document, int32_t first,
    int32_t last, float cls, const NqEndLogits& ends) {
  auto example = std::make_shared<NqExample>();
  example->document = document;
  example->long_tokens.push_back(-1);
  for (int32_t token = first; token <= last; ++token) {
    example->long_tokens.push_back(token);
  }
  example->long_tokens.push_back(-1);
  OwnedNqWindow window;
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
