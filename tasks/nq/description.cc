#include "tasks/nq/description.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "tasks/data/pattern_text.h"

namespace etc {
namespace {

const char* NameOf(NqAnswerType type) {
  switch (type) {
    case NqAnswerType::kNull:
      return "none";
    case NqAnswerType::kYes:
      return "yes";
    case NqAnswerType::kNo:
      return "no";
    case NqAnswerType::kLong:
      return "long";
    case NqAnswerType::kShort:
      return "short";
  }
  return "";
}

// "none", or "5-14 (document 3-11)".
std::string Show(const NqTarget& target, const NqExample& example) {
  if (target.is_null()) {
    return "none";
  }
  return absl::StrCat(target.start, "-", target.end, " (document ",
                      example.long_tokens[static_cast<size_t>(target.start)],
                      "-", example.long_tokens[static_cast<size_t>(target.end)],
                      ")");
}

std::string Heading(const NqExample& example) {
  const NqDocument& document = *example.document;
  const std::string answers =
      example.has_answer
          ? absl::StrCat(NameOf(example.answer_type), "; long answer ",
                         Show(example.long_answer, example), ", short answer ",
                         Show(example.short_answer, example))
          : "not given";
  return absl::StrCat(
      "document ", example.record_id, ", window ", example.window, " of ",
      document.num_windows, ": ", document.question, "\nanswer: ", answers,
      example.left_out.empty()
          ? ""
          : absl::StrCat("; training leaves it out: ", example.left_out),
      "\n", Counted(document.num_pieces, "piece"), " in the document; ",
      Counted(example.long_length(), "long token"), ", ",
      Counted(example.global_length(), "global token"), "\n",
      DescribeMasks(example.pattern), "\n");
}

std::string KindOf(const NqExample& example, size_t g) {
  const auto preamble = static_cast<size_t>(example.question_length) + 2;
  if (example.global_token_ids.size() < preamble ||
      example.global_token_ids[0] == kNqGlobalCandidateToken) {
    return "block";
  }
  if (example.global_candidates[g] >= 0) {
    return absl::StrCat("candidate ", example.global_candidates[g]);
  }
  return g == 0 ? "[CLS]" : g < preamble ? "question" : "end";
}

std::string PieceOf(int32_t id, const Tokenizer& tokenizer,
                    const NqTokens& tokens) {
  return id == tokens.opening_tag   ? "<>"
         : id == tokens.closing_tag ? "</>"
                                    : tokenizer.Piece(id);
}

// The long tokens of global token `g`, answers marked.
std::string PiecesOf(const NqExample& example, const Tokenizer& tokenizer,
                     const NqTokens& tokens, int32_t g) {
  const NqTarget& long_answer = example.long_answer;
  const NqTarget& short_answer = example.short_answer;
  std::string text;
  for (size_t i = 0; i < example.long_token_ids.size(); ++i) {
    if (example.pattern.sentence[i] != g) {
      continue;
    }
    const auto at = static_cast<int32_t>(i);
    absl::StrAppend(&text, at > 0 && at == long_answer.start ? " {" : "",
                    at > 0 && at == short_answer.start ? " [" : "", " ",
                    PieceOf(example.long_token_ids[i], tokenizer, tokens),
                    at > 0 && at == short_answer.end ? " ]" : "",
                    at > 0 && at == long_answer.end ? " }" : "");
  }
  return text;
}

}  // namespace

std::string DescribeNqExample(const NqExample& example,
                              const Tokenizer& tokenizer,
                              const NqTokens& tokens) {
  std::string text = Heading(example);
  absl::StrAppendFormat(&text, "\n%6s %-13s %-11s  %-11s  %s\n", "global",
                        "kind", "owns", "sees", "tokens");
  for (int32_t g = 0; g < static_cast<int32_t>(example.global_length()); ++g) {
    const std::string line = absl::StrFormat(
        "%6d %-13s %-11s  %-11s %s", g, KindOf(example, static_cast<size_t>(g)),
        LongTokensOwnedBy(example.pattern, g),
        LongTokensSeenBy(example.pattern, g),
        PiecesOf(example, tokenizer, tokens, g));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace etc
