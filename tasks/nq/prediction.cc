#include "tasks/nq/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "tasks/nq/official_spans.h"

namespace etc {
namespace {

NqSpan ToSpan(const NqScoredSpan& span) {
  return {.start_token = span.first, .end_token = span.last + 1};
}

// Lets the answer type of a window change the short answer.
void ApplyAnswerType(const NqWindow& window, bool official_compatibility,
                     NqPrediction* prediction) {
  const auto& logits = window.answer_type;
  const auto best = std::max_element(logits.begin(), logits.end());
  const auto type = static_cast<NqAnswerType>(best - logits.begin());
  if (type == NqAnswerType::kLong && !official_compatibility) {
    prediction->short_answers.clear();
  }
  if (type != NqAnswerType::kYes && type != NqAnswerType::kNo) {
    return;
  }
  prediction->short_answers.clear();
  prediction->yes_no =
      type == NqAnswerType::kYes ? NqYesNo::kYes : NqYesNo::kNo;
  const double score =
      2 * (static_cast<double>(*best) - static_cast<double>(logits[0]));
  if (std::isfinite(score) && !official_compatibility) {
    prediction->short_answers_score = score;
  }
}

}  // namespace

NqPrediction DecodeNqDocument(absl::Span<const NqWindow> windows,
                              const NqDecodingOptions& options) {
  const bool official = options.official_compatibility;
  const NqSelection selection =
      official ? SelectNqSpansOfficially(windows, options.span_selection,
                                         options.max_short_answer_length)
               : SelectNqSpans(windows, options.span_selection,
                               options.max_short_answer_length);
  NqPrediction prediction = {.example_id =
                                 windows.front().example->document->example_id};
  if (selection.long_answer.has_value()) {
    prediction.long_answer = ToSpan(*selection.long_answer);
    prediction.long_answer_score = selection.long_answer->score;
  }
  if (selection.short_answer.has_value()) {
    prediction.short_answers = {ToSpan(*selection.short_answer)};
    prediction.short_answers_score = selection.short_answer->score;
  }
  if (!options.consider_answer_type) {
    return prediction;
  }
  if (official) {
    ApplyAnswerType(windows.back(), official, &prediction);
  } else if (selection.long_answer.has_value()) {
    ApplyAnswerType(windows[selection.long_answer->window], official,
                    &prediction);
  }
  return prediction;
}

}  // namespace etc
