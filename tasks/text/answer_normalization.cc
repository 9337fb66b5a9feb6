#include "tasks/text/answer_normalization.h"

#include <unicode/uchar.h>

#include <cstdint>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// "\w" of Python's regular expressions: letters and numbers, but no combining
// marks ("_" is deleted before this is asked).
bool IsOfWord(CodePoint c) {
  return (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_N_MASK)) != 0 ||
         u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool IsArticle(absl::string_view word) {
  return word == "a" || word == "an" || word == "the";
}

std::string DeletePunctuation(absl::string_view text) {
  std::string rest;
  for (const char c : text) {
    if (!absl::ascii_ispunct(static_cast<unsigned char>(c))) {
      rest += c;
    }
  }
  return rest;
}

}  // namespace

std::string NormalizeAnswer(absl::string_view text) {
  const std::string lower = DeletePunctuation(LowerCase(text));
  // Runs of word characters; articles and white space become one blank.
  std::string result;
  bool pending_blank = false;
  const auto append = [&](absl::string_view part) {
    if (pending_blank && !result.empty()) {
      result += ' ';
    }
    pending_blank = false;
    result.append(part.data(), part.size());
  };
  const auto size = static_cast<int64_t>(lower.size());
  for (int64_t begin = 0; begin < size;) {
    int64_t end = begin;
    const CodePoint first = NextCodePoint(lower, &end);
    const bool is_word = IsOfWord(first);
    for (int64_t next = end; is_word && next < size;) {
      if (!IsOfWord(NextCodePoint(lower, &next))) {
        break;
      }
      end = next;
    }
    const absl::string_view part = absl::string_view(lower).substr(
        static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    if (IsPythonSpace(first) || (is_word && IsArticle(part))) {
      pending_blank = true;
    } else {
      append(part);
    }
    begin = end;
  }
  return result;
}

std::vector<std::string> AnswerWords(absl::string_view normalized) {
  return absl::StrSplit(normalized, ' ', absl::SkipEmpty());
}

PrecisionRecall WordOverlap(absl::string_view predicted,
                            absl::string_view gold) {
  const std::vector<std::string> predicted_words = AnswerWords(predicted);
  const std::vector<std::string> gold_words = AnswerWords(gold);
  std::map<absl::string_view, int64_t> left;
  for (const std::string& word : gold_words) {
    ++left[word];
  }
  int64_t shared = 0;
  for (const std::string& word : predicted_words) {
    const auto found = left.find(word);
    if (found != left.end() && found->second > 0) {
      --found->second;
      ++shared;
    }
  }
  if (shared == 0) {
    return {};
  }
  return {.precision = static_cast<double>(shared) /
                       static_cast<double>(predicted_words.size()),
          .recall = static_cast<double>(shared) /
                    static_cast<double>(gold_words.size())};
}

}  // namespace etc
