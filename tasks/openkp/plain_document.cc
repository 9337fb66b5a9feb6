#include "tasks/openkp/plain_document.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// Appends the words of a run without white space.
void AppendRun(absl::string_view run, std::vector<std::string>* words) {
  const auto size = static_cast<int64_t>(run.size());
  int64_t begin = 0;
  int64_t end = size;
  while (begin < size) {
    int64_t at = begin;
    if (!IsBertPunctuation(NextCodePoint(run, &at))) {
      break;
    }
    words->emplace_back(run.substr(static_cast<size_t>(begin),
                                   static_cast<size_t>(at - begin)));
    begin = at;
  }
  std::vector<std::string> behind;
  while (end > begin) {
    int64_t at = end;
    if (!IsBertPunctuation(PreviousCodePoint(run, &at))) {
      break;
    }
    behind.emplace_back(
        run.substr(static_cast<size_t>(at), static_cast<size_t>(end - at)));
    end = at;
  }
  if (end > begin) {
    words->emplace_back(run.substr(static_cast<size_t>(begin),
                                   static_cast<size_t>(end - begin)));
  }
  words->insert(words->end(), behind.rbegin(), behind.rend());
}

// A key phrase as a text: a string, or a list of words.
bool IsPhrase(const nlohmann::json& phrase) {
  return phrase.is_string() ||
         (phrase.is_array() && std::all_of(phrase.begin(), phrase.end(),
                                           [](const nlohmann::json& word) {
                                             return word.is_string();
                                           }));
}

void ReadPlainPhrases(JsonObjectReader& reader, OpenkpRecord* record) {
  constexpr char kField[] = "KeyPhrases";
  const nlohmann::json* phrases = reader.Given(kField);
  if (phrases == nullptr) {
    return;
  }
  if (!phrases->is_array()) {
    reader.Fail(kField, "should be a list of phrases");
    return;
  }
  record->key_phrases.emplace();
  for (const nlohmann::json& phrase : *phrases) {
    if (!IsPhrase(phrase)) {
      reader.Fail(absl::StrCat(kField, "[", record->key_phrases->size(), "]"),
                  "should be a text or a list of words");
      return;
    }
    record->key_phrases->push_back(PlainOpenkpWords(
        phrase.is_string()
            ? phrase.get<std::string>()
            : absl::StrJoin(phrase.get<std::vector<std::string>>(), " ")));
  }
}

void ReadPlainId(JsonObjectReader& reader, OpenkpRecord* record) {
  if (reader.Has("id")) {
    reader.NameOrNumber("id", &record->id);
  } else {
    reader.Required("url", &record->id);
  }
}

}  // namespace

std::vector<std::string> PlainOpenkpWords(absl::string_view text) {
  std::vector<std::string> words;
  for (const absl::string_view run : SplitWhiteSpace(text)) {
    AppendRun(run, &words);
  }
  return words;
}

void ReadPlainOpenkpRecord(JsonObjectReader& reader,
                           const SentenceSplitter& split_sentences,
                           OpenkpRecord* record) {
  ReadPlainId(reader, record);
  std::string text;
  reader.Required("text", &text);
  ReadPlainPhrases(reader, record);
  if (!reader.ok()) {
    return;
  }
  std::vector<std::string> words;
  for (const auto& [begin, end] : split_sentences(text)) {
    std::vector<std::string> sentence =
        PlainOpenkpWords(absl::string_view(text).substr(
            static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    if (sentence.empty()) {
      continue;
    }
    const auto first = static_cast<int64_t>(words.size());
    words.insert(words.end(), std::make_move_iterator(sentence.begin()),
                 std::make_move_iterator(sentence.end()));
    record->elements.push_back(
        {.first_word = first, .end_word = static_cast<int64_t>(words.size())});
  }
  record->text = absl::StrJoin(words, " ");
  if (words.empty()) {
    reader.Fail("text", "should have a word, but has none");
  }
}

}  // namespace etc
