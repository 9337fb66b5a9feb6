#include "tasks/hotpotqa/task.h"

#include "base/status_macros.h"

namespace etc {

absl::Status Hotpotqa::UseVocabulary(const Tokenizer& tokenizer,
                                     Options* options) const {
  return HotpotqaTokensOf(options->input.tokenizer_kind, tokenizer).cls >= 0
             ? absl::OkStatus()
             : InvalidArgument(
                   "the vocabulary should have the piece \"[CLS]\", or name "
                   "another one for the beginning of a text, but does not");
}

std::optional<HotpotqaGold> Hotpotqa::GoldOf(const Record& record) const {
  if (!record.answer.has_value()) {
    return std::nullopt;
  }
  return Gold{.answer = *record.answer, .facts = record.supporting_facts};
}

}  // namespace etc
