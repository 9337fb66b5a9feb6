#include "tasks/hotpotqa/task.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {

absl::Span<const OptionField> Hotpotqa::OptionFields() const {
  static constexpr OptionField kFields[] = {
      {"answer_encoding", "text", "`\"span\"`", "\"span\" or \"bio\"",
       "the answer as its first and last piece, or by a mark of each piece"},
      {"supporting_fact_threshold", "number", "`0.5`", "in [0, 1]",
       "least probability of a supporting fact"},
      {"search_threshold", "true or false", "`false`", "",
       "try 0, 0.1, ..., 1 on the data that are scored and keep the best joint "
       "F1: tunes on them; `predict` looks at no answers, and takes the one "
       "above"},
      {"max_answer_length", "whole number", "`30`", "at least 1",
       "pieces of the longest answer"},
      {"flat_sequence", "true or false", "`false`", "",
       "ablation: one sequence without paragraphs"},
      {"official_compatibility", "true or false", "`false`", "",
       "reproduce the official program, its mistakes included (the task's page "
       "lists them)"}};
  return kFields;
}

absl::Status Hotpotqa::UseVocabulary(const Tokenizer& tokenizer,
                                     Options* options) const {
  return HotpotqaTokensOf(options->input.tokenizer_kind, tokenizer).cls >= 0
             ? absl::OkStatus()
             : InvalidArgument(
                   "the vocabulary should have the piece \"[CLS]\", or name "
                   "another one for the beginning of a text, but does not");
}

void Hotpotqa::ReadOptions(JsonObjectReader& reader, Options* options) const {
  reader.Optional("official_compatibility", &options->official_compatibility);
  ReadChoice(reader, "answer_encoding",
             {{"span", HotpotqaAnswerEncoding::kSpan},
              {"bio", HotpotqaAnswerEncoding::kBio}},
             &options->answer_encoding);
  reader.Optional("supporting_fact_threshold",
                  &options->supporting_fact_threshold);
  reader.Optional("search_threshold", &options->search_threshold);
  reader.Optional("max_answer_length", &options->max_answer_length);
  reader.Optional("flat_sequence", &options->flat_sequence);
  if (options->supporting_fact_threshold < 0 ||
      options->supporting_fact_threshold > 1) {
    reader.Fail("supporting_fact_threshold",
                absl::StrCat("should be in [0, 1], but is ",
                             options->supporting_fact_threshold));
  }
  CheckAtLeast(reader, "max_answer_length", options->max_answer_length, 1);
}

std::optional<HotpotqaGold> Hotpotqa::GoldOf(const Record& record) const {
  if (!record.answer.has_value()) {
    return std::nullopt;
  }
  return Gold{.answer = *record.answer, .facts = record.supporting_facts};
}

}  // namespace etc
