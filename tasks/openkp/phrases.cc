#include "tasks/openkp/phrases.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// Key phrases of a document that count (doc/openkp.md 2).
constexpr int64_t kMaxKeyPhrases = 3;

// Puts blanks around a text, so that whole words are found by a plain search.
std::string Wrapped(absl::string_view text) {
  return absl::StrCat(" ", text, " ");
}

// Returns true if the official program finds a phrase without words in a text:
// not by a blank at its beginning.
bool HasEmptyPhrase(absl::string_view text) {
  return text.empty() || text.back() == ' ' ||
         text.find("  ") != absl::string_view::npos;
}

int64_t CountBlanks(absl::string_view text) {
  return std::count(text.begin(), text.end(), ' ');
}

absl::string_view WithoutTrailingSpace(absl::string_view text) {
  const absl::string_view stripped = StripWhiteSpace(text);
  return stripped.empty() ? stripped
                          : text.substr(0, static_cast<size_t>(stripped.data() +
                                                               stripped.size() -
                                                               text.data()));
}

}  // namespace

std::vector<std::string> ValidKeyPhrases(const OpenkpRecord& record,
                                         ScoringRules rules) {
  std::vector<std::string> phrases;
  if (!record.key_phrases.has_value()) {
    return phrases;
  }
  const std::string text = Wrapped(LowerCase(record.text));
  for (const std::vector<std::string>& words : *record.key_phrases) {
    std::vector<absl::string_view> kept;
    for (const std::string& word : words) {
      if (const absl::string_view stripped = StripWhiteSpace(word);
          !stripped.empty()) {
        kept.push_back(stripped);
      }
    }
    std::string phrase = absl::StrJoin(kept, " ");
    const bool is_valid =
        phrase.empty()
            ? rules == ScoringRules::kOfficial && HasEmptyPhrase(record.text)
            : text.find(Wrapped(LowerCase(phrase))) != std::string::npos;
    if (is_valid) {
      phrases.push_back(std::move(phrase));
    }
  }
  return phrases;
}

std::vector<std::string> EtcKeyPhrases(const OpenkpRecord& record,
                                       ScoringRules rules) {
  std::set<std::string> different;
  int64_t count = 0;
  for (const std::string& phrase : ValidKeyPhrases(record, rules)) {
    if (count++ < kMaxKeyPhrases) {
      different.insert(LowerCase(phrase));
    }
  }
  return {different.begin(), different.end()};
}

std::vector<PhrasePosition> FindPhrases(const std::vector<std::string>& phrases,
                                        const std::vector<PhraseText>& texts,
                                        PhraseMatch match) {
  const bool whole_words = match == PhraseMatch::kWholeWords;
  std::vector<PhrasePosition> positions;
  std::vector<bool> is_found(phrases.size(), false);
  for (const PhraseText& part : texts) {
    const std::string lower = LowerCase(part.text);
    const std::string text = whole_words ? Wrapped(lower) : lower;
    for (size_t i = 0; i < phrases.size(); ++i) {
      const size_t at =
          is_found[i]
              ? std::string::npos
              : text.find(whole_words ? Wrapped(phrases[i]) : phrases[i]);
      if (at == std::string::npos) {
        continue;
      }
      is_found[i] = true;
      positions.push_back(
          {.start = part.first_word +
                    CountBlanks(absl::string_view(text).substr(0, at)),
           .length = CountBlanks(phrases[i]) + 1});
    }
  }
  return positions;
}

std::vector<PhraseText> ElementTexts(const OpenkpRecord& record) {
  const std::vector<absl::string_view> words = OpenkpWords(record.text);
  std::vector<PhraseText> texts;
  for (const auto& element : record.elements) {
    PhraseText& part = texts.emplace_back();
    part.first_word = element.first_word;
    if (element.first_word < element.end_word) {
      const absl::string_view first =
          words[static_cast<size_t>(element.first_word)];
      const absl::string_view last =
          words[static_cast<size_t>(element.end_word) - 1];
      part.text = absl::string_view(
          first.data(),
          static_cast<size_t>(last.data() + last.size() - first.data()));
    }
  }
  return texts;
}

std::vector<std::string> JoinedPhrases(
    const std::vector<std::vector<std::string>>& phrases) {
  std::vector<std::string> joined;
  for (const std::vector<std::string>& words : phrases) {
    if (words.empty() || words.front().empty()) {
      continue;
    }
    std::string phrase;
    for (size_t i = 0; i < words.size(); ++i) {
      absl::StrAppend(&phrase, i > 0 ? " " : "", LowerCase(words[i]));
    }
    if (std::find(joined.begin(), joined.end(), phrase) == joined.end()) {
      joined.push_back(std::move(phrase));
    }
  }
  return joined;
}

std::vector<std::string> EvaluatorPhrases(
    const std::vector<std::vector<std::string>>& phrases) {
  return EvaluatorForms(JoinedPhrases(phrases));
}

std::vector<std::string> EvaluatorForms(
    const std::vector<std::string>& phrases) {
  std::vector<std::string> forms;
  for (const std::string& phrase : phrases) {
    std::string form(WithoutTrailingSpace(phrase));
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

OpenkpReferences ReferencesOf(const OpenkpRecord& record, ScoringRules rules) {
  OpenkpReferences references = {.text_hash =
                                     std::hash<std::string>()(record.text)};
  if (record.key_phrases.has_value()) {
    references.evaluator = EvaluatorPhrases(*record.key_phrases);
  }
  references.etc = EtcKeyPhrases(record, rules);
  references.num_valid =
      static_cast<int64_t>(ValidKeyPhrases(record, rules).size());
  references.is_removed = FindPhrases(references.etc, ElementTexts(record),
                                      PhraseMatch::kWholeWords)
                              .empty();
  return references;
}

}  // namespace etc
