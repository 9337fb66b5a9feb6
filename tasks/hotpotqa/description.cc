#include "tasks/hotpotqa/description.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "tasks/data/pattern_text.h"
#include "tasks/hotpotqa/answer_text.h"

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

// The pieces of the title, sentence or question that global token `g` stands
// for, answers in brackets.
std::string PiecesOf(const HotpotqaExample& example, const Tokenizer& tokenizer,
                     int32_t g) {
  std::string text;
  for (size_t i = 0; i < example.long_token_ids.size(); ++i) {
    if (example.pattern.sentence[i] != g) {
      continue;
    }
    const auto at = static_cast<int64_t>(i);
    std::string before;
    std::string behind;
    for (const PieceSpan& span : example.answer_spans) {
      before += span.first == at ? "[ " : "";
      behind += span.last == at ? " ]" : "";
    }
    absl::StrAppend(&text, " ", before,
                    tokenizer.Piece(example.long_token_ids[i]), behind);
  }
  return text;
}

std::string AnswerLine(const HotpotqaExample& example) {
  if (!example.has_answer) {
    return "not given";
  }
  std::vector<std::string> places;
  for (const PieceSpan& span : example.answer_spans) {
    // Officially an answer may be where what did not fit would have been.
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
      places.empty() ? "" : absl::StrCat(" at ", absl::StrJoin(places, ", ")),
      example.left_out.empty()
          ? ""
          : absl::StrCat("; training leaves it out: ", example.left_out));
}

std::string Heading(const HotpotqaExample& example) {
  const std::string dropped =
      example.dropped_texts + example.dropped_question_pieces == 0
          ? "nothing left out"
          : absl::StrCat(
                "left out ", example.dropped_texts, " titles and sentences, ",
                Counted(example.dropped_question_pieces, "question token"));
  return absl::StrCat(
      "question ", example.record_id, ": ", example.record->question,
      "\nanswer: ", AnswerLine(example), "\n",
      Counted(example.long_length(), "long token"), ", ",
      Counted(example.global_length(), "global token"), "; ",
      Counted(static_cast<int64_t>(example.record->context.size()),
              "paragraph"),
      "; ", dropped, "\n", DescribeMasks(example.pattern), "\n");
}

}  // namespace

std::string DescribeHotpotqaExample(const HotpotqaExample& example,
                                    const Tokenizer& tokenizer) {
  const AttentionPattern& pattern = example.pattern;
  std::string text = Heading(example);
  absl::StrAppendFormat(&text, "\n%6s %-13s %-11s  %-11s  %s\n", "global",
                        "kind", "owns", "sees", "tokens");
  for (int32_t g = 0; g < static_cast<int32_t>(pattern.global_length()); ++g) {
    const auto at = static_cast<size_t>(g);
    if (g > 0 && pattern.global_segment[at] != pattern.global_segment[at - 1]) {
      absl::StrAppend(&text, "\n");
    }
    const std::string line = absl::StrFormat(
        "%6d %-12s%s %-11s  %-11s %s", g, KindOf(example, at),
        example.supporting_facts[at] != 0 ? "*" : " ",
        LongTokensOwnedBy(pattern, g), LongTokensSeenBy(pattern, g),
        PiecesOf(example, tokenizer, g));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace etc
