#include "tasks/inputs/description.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "tasks/hotpotqa/answer_text.h"
#include "tasks/hotpotqa/task.h"

namespace etc {
namespace {

std::string KindOf(const HotpotqaExample& example, size_t g) {
  if (g == 0) {
    return "[CLS]";
  }
  if (example.global_paragraph_ids[g] < 0) {
    return "question";
  }
  if (example.global_sentence_ids[g] >= 0) {
    return absl::StrCat("sentence ", example.global_sentence_ids[g]);
  }
  const bool begins_paragraph =
      example.global_paragraph_ids[g] != example.global_paragraph_ids[g - 1];
  return begins_paragraph ? "paragraph" : "title";
}

// Long token `i`, answers in brackets.
std::string PieceOf(const HotpotqaExample& example, const Tokenizer& tokenizer,
                    size_t i) {
  const auto at = static_cast<int64_t>(i);
  std::string before;
  std::string behind;
  for (const PieceSpan& span : example.answer_spans) {
    before += span.first == at ? "[ " : "";
    behind += span.last == at ? " ]" : "";
  }
  return absl::StrCat(before, tokenizer.Piece(example.long_token_ids[i]),
                      behind);
}

std::string AnswerLine(const HotpotqaExample& example) {
  std::vector<std::string> places;
  for (const PieceSpan& span : example.answer_spans) {
    // Officially an answer may be in text that did not fit.
    const auto owner = [&example](int64_t token) {
      return example.pattern.sentence[static_cast<size_t>(token)];
    };
    if (span.last < example.long_length() && owner(span.first) >= 0 &&
        owner(span.first) == owner(span.last)) {
      places.push_back(absl::StrCat(span.first, "-", span.last, " \"",
                                    OriginalAnswerText(example, span), "\""));
    }
  }
  const char* const type =
      example.answer_type == HotpotqaAnswerType::kYes  ? "yes"
      : example.answer_type == HotpotqaAnswerType::kNo ? "no"
                                                       : "a span";
  return absl::StrCat(
      *example.record->answer, " (", type, ")",
      places.empty() ? "" : absl::StrCat(" at ", absl::StrJoin(places, ", ")));
}

}  // namespace

std::string Hotpotqa::Describe(const Example& example) const {
  const auto kind = [&example](size_t g) {
    return absl::StrFormat("%-12s%s", KindOf(example, g),
                           example.supporting_facts[g] != 0 ? "*" : " ");
  };
  const auto token = [&](size_t i) { return PieceOf(example, tokenizer(), i); };
  const std::string dropped =
      example.dropped_texts + example.dropped_question_pieces == 0
          ? "nothing left out"
          : absl::StrCat(
                "left out ", example.dropped_texts, " titles and sentences, ",
                Counted(example.dropped_question_pieces, "question token"));
  const Record& record = *example.record;
  return DescribeExample(
      example,
      {.title =
           absl::StrCat("question ", example.record_id, ": ", record.question),
       .answer = example.has_answer ? AnswerLine(example) : "",
       .size = absl::StrCat(
           DescribeLengths(example), "; ",
           Counted(static_cast<int64_t>(record.context.size()), "paragraph"),
           "; ", dropped)},
      {.kind_width = 13, .kind = kind, .token = token});
}

}  // namespace etc
