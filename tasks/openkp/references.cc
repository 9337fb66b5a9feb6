#include "tasks/openkp/references.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

absl::string_view WithoutTrailingSpace(absl::string_view text) {
  const absl::string_view stripped = StripWhiteSpace(text);
  return stripped.empty() ? stripped
                          : text.substr(0, static_cast<size_t>(stripped.data() +
                                                               stripped.size() -
                                                               text.data()));
}

}  // namespace

std::vector<std::string> EvaluatorPhrases(
    const std::vector<std::vector<std::string>>& phrases) {
  std::vector<std::string> normalized;
  for (const std::vector<std::string>& words : phrases) {
    if (words.empty() || words.front().empty()) {
      continue;
    }
    std::string joined;
    for (size_t i = 0; i < words.size(); ++i) {
      absl::StrAppend(&joined, i > 0 ? " " : "", LowerCase(words[i]));
    }
    std::string phrase(WithoutTrailingSpace(joined));
    if (std::find(normalized.begin(), normalized.end(), phrase) ==
        normalized.end()) {
      normalized.push_back(std::move(phrase));
    }
  }
  return normalized;
}

OpenkpReferences ReferencesOf(const OpenkpRecord& record, EmptyPhrases empty) {
  OpenkpReferences references;
  if (record.key_phrases.has_value()) {
    references.evaluator = EvaluatorPhrases(*record.key_phrases);
  }
  references.etc = EtcKeyPhrases(record, empty);
  references.num_valid =
      static_cast<int64_t>(ValidKeyPhrases(record, empty).size());
  references.is_removed = FindPhrases(references.etc, ElementTexts(record),
                                      PhraseMatch::kWholeWords)
                              .empty();
  return references;
}

}  // namespace etc
