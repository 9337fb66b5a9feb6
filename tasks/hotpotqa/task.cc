#include "tasks/hotpotqa/task.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {

std::vector<std::string> Hotpotqa::Warnings() const {
  const double threshold = options().supporting_fact_threshold;
  if (!options().search_threshold ||
      threshold != Options().supporting_fact_threshold) {
    return {};
  }
  return {absl::StrCat(
      "hotpotqa.search_threshold chooses by the answers, which predict does "
      "not look at: it takes supporting_fact_threshold, ",
      threshold, ", until that is set to the threshold of an evaluation")};
}

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
