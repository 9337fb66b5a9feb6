#include "tasks/inputs/description.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "tasks/nq/task.h"

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

// The text of `piece`, long token `i`, answers marked.
std::string WithAnswers(const NqExample& example, size_t i,
                        const std::string& piece) {
  const NqTarget& long_answer = example.long_answer;
  const NqTarget& short_answer = example.short_answer;
  const auto at = static_cast<int32_t>(i);
  if (at == 0) {
    return piece;
  }
  return absl::StrCat(at == long_answer.start ? "{ " : "",
                      at == short_answer.start ? "[ " : "", piece,
                      at == short_answer.end ? " ]" : "",
                      at == long_answer.end ? " }" : "");
}

}  // namespace

std::string Nq::Describe(const Example& example) const {
  const auto kind = [&example](size_t g) { return KindOf(example, g); };
  const auto token = [&](size_t i) {
    return WithAnswers(
        example, i,
        PieceOf(example.long_token_ids[i], tokenizer(), options().tokens));
  };
  const NqDocument& document = *example.document;
  return DescribeExample(
      example,
      {.title = absl::StrCat("document ", example.record_id, ", window ",
                             example.window, " of ", document.num_windows, ": ",
                             document.question),
       .answer =
           absl::StrCat(NameOf(example.answer_type), "; long answer ",
                        Show(example.long_answer, example), ", short answer ",
                        Show(example.short_answer, example)),
       .size = absl::StrCat(Counted(document.num_pieces, "piece"),
                            " in the document; ", DescribeLengths(example))},
      {.kind_width = 13, .kind = kind, .token = token});
}

}  // namespace etc
