#include "tasks/text/sentence_splitter.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tasks/text/punkt_splitter.h"
#include "tasks/text/punkt_tables.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// The three lists are in lower case, without the last full stop, in the order
// of their bytes.
constexpr auto kAbbreviations = std::to_array<absl::string_view>(
    {"adm",    "approx", "apr", "assn", "assoc", "aug",  "ave",  "brig", "bros",
     "ca",     "capt",   "cf",  "cmdr", "co",    "col",  "corp", "cpl",  "dec",
     "dept",   "dr",     "etc", "feb",  "fr",    "ft",   "gen",  "gov",  "hon",
     "inc",    "jan",    "jr",  "jul",  "jun",   "lt",   "ltd",  "maj",  "md",
     "messrs", "mr",     "mrs", "ms",   "mt",    "mts",  "nov",  "oct",  "ph.d",
     "pres",   "prof",   "pvt", "rep",  "rev",   "sen",  "sens", "sept", "sgt",
     "sr",     "st",     "ste", "supt", "trans", "univ", "viz",  "vs"});

// Abbreviations before a number, often words or names elsewhere.
constexpr auto kAbbreviationsBeforeNumbers = std::to_array<absl::string_view>(
    {"art", "ch", "fig", "figs", "mar", "no", "nos", "pp", "pt", "sec", "sep",
     "vol", "vols"});

// Words that, in upper case, mostly begin a sentence.
constexpr auto kSentenceStarters = std::to_array<absl::string_view>(
    {"a",       "according", "after", "all",       "also",    "although",
     "among",   "an",        "and",   "as",        "at",      "because",
     "before",  "between",   "both",  "but",       "by",      "currently",
     "despite", "during",    "each",  "following", "for",     "from",
     "he",      "her",       "his",   "how",       "however", "if",
     "in",      "it",        "its",   "later",     "many",    "most",
     "on",      "once",      "one",   "other",     "she",     "since",
     "some",    "such",      "that",  "the",       "their",   "then",
     "there",   "these",     "they",  "this",      "those",   "though",
     "thus",    "to",        "under", "until",     "we",      "what",
     "when",    "where",     "which", "while",     "who",     "with"});

// Bytes beyond which no word is in a list.
constexpr size_t kLongestWord = 16;

static_assert(std::is_sorted(kAbbreviations.begin(), kAbbreviations.end()));
static_assert(std::is_sorted(kAbbreviationsBeforeNumbers.begin(),
                             kAbbreviationsBeforeNumbers.end()));
static_assert(std::is_sorted(kSentenceStarters.begin(),
                             kSentenceStarters.end()));

template <typename Words>
bool Contains(const Words& words, absl::string_view word) {
  return std::binary_search(words.begin(), words.end(), word);
}

// ICU's iterator for English. Each thread has one, because making it takes a
// hundred times as long as splitting a paragraph.
icu::BreakIterator& SentenceIterator() {
  thread_local const std::unique_ptr<icu::BreakIterator> iterator = [] {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(
        icu::BreakIterator::createSentenceInstance(icu::Locale::getEnglish(),
                                                   status));
    if (U_FAILURE(status) || made == nullptr) {
      throw std::runtime_error(absl::StrCat("ICU has no rules for sentences: ",
                                            u_errorName(status)));
    }
    return made;
  }();
  return *iterator;
}

// The ends of the sentences of `text` as ICU has them.
std::vector<int64_t> IcuSentenceEnds(absl::string_view text) {
  std::vector<int64_t> ends;
  icu::BreakIterator& iterator = SentenceIterator();
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, text.data(), static_cast<int64_t>(text.size()),
                 &status);
  iterator.setText(&utext, status);
  if (U_SUCCESS(status)) {
    iterator.first();
    for (int32_t end = iterator.next(); end != icu::BreakIterator::DONE;
         end = iterator.next()) {
      ends.push_back(end);
    }
  }
  utext_close(&utext);
  if (U_FAILURE(status)) {
    throw std::runtime_error(
        absl::StrCat("ICU cannot split a text: ", u_errorName(status)));
  }
  return ends;
}

// The text with spaces in place of line ends, byte for byte: ICU would end a
// paragraph there, and with it a sentence.
std::string WithoutLineEnds(absl::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(),
      [](char byte) { return byte == '\n' || byte == '\r'; }, ' ');
  for (const std::string line_end : {"\u0085", "\u2028", "\u2029"}) {
    for (size_t at = result.find(line_end); at != std::string::npos;
         at = result.find(line_end, at)) {
      result.replace(at, line_end.size(), line_end.size(), ' ');
    }
  }
  return result;
}

bool IsOpeningBracket(CodePoint c) {
  return c >= 0 && u_charType(c) == U_START_PUNCTUATION;
}

bool IsOpener(CodePoint c) {
  return c == '"' || c == '\'' || IsOpeningBracket(c) ||
         (c >= 0 && u_charType(c) == U_INITIAL_PUNCTUATION);
}

// `begin` behind the code points of text[begin, end) that are `unwanted`.
int64_t SkipForward(absl::string_view text, int64_t begin, int64_t end,
                    bool (*unwanted)(CodePoint)) {
  for (int64_t at = begin; at < end; begin = at) {
    if (!unwanted(NextCodePoint(text, &at))) {
      break;
    }
  }
  return begin;
}

// The same from behind: `end` before the code points that are `unwanted`.
int64_t SkipBackward(absl::string_view text, int64_t begin, int64_t end,
                     bool (*unwanted)(CodePoint)) {
  for (int64_t at = end; at > begin; end = at) {
    if (!unwanted(PreviousCodePoint(text, &at))) {
      break;
    }
  }
  return end;
}

// "s", "u.s": letters with full stops between them.
bool IsInitials(absl::string_view word) {
  for (size_t i = 0; i < word.size(); ++i) {
    if (i % 2 == 0 ? !absl::ascii_isalpha(static_cast<unsigned char>(word[i]))
                   : word[i] != '.') {
      return false;
    }
  }
  return word.size() % 2 == 1;
}

// The ASCII letters at the beginning of a text; where there are more than a
// word of the lists has, not all of them.
absl::string_view FirstWord(absl::string_view text) {
  size_t size = 0;
  while (size < text.size() && size <= kLongestWord &&
         absl::ascii_isalpha(static_cast<unsigned char>(text[size]))) {
    ++size;
  }
  return text.substr(0, size);
}

// The ASCII letters and full stops at the end of a text, in the same manner;
// empty if they end a longer word.
absl::string_view LastWord(absl::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && text.size() - begin <= kLongestWord &&
         (absl::ascii_isalpha(static_cast<unsigned char>(text[begin - 1])) ||
          text[begin - 1] == '.')) {
    --begin;
  }
  auto at = static_cast<int64_t>(begin);
  const bool is_inside = begin > 0 && u_isalnum(PreviousCodePoint(text, &at));
  return is_inside ? absl::string_view() : text.substr(begin);
}

// Returns true if the full stop at the end of `left` seems to belong to an
// abbreviation and `right`, the text behind the white space after it, not to
// begin as sentences do.
bool IsAbbreviation(absl::string_view left, absl::string_view right) {
  if (!absl::ConsumeSuffix(&left, ".")) {
    return false;
  }
  const std::string last = absl::AsciiStrToLower(LastWord(left));
  right.remove_prefix(static_cast<size_t>(
      SkipForward(right, 0, static_cast<int64_t>(right.size()), IsOpener)));
  if (Contains(kAbbreviationsBeforeNumbers, last)) {
    return !right.empty() &&
           absl::ascii_isdigit(static_cast<unsigned char>(right[0]));
  }
  return (IsInitials(last) || Contains(kAbbreviations, last)) &&
         !Contains(kSentenceStarters, absl::AsciiStrToLower(FirstWord(right)));
}

}  // namespace

absl::StatusOr<SentenceSplitter> LoadSentenceSplitter(
    const std::string& sentences) {
  if (sentences == kIcuSentences) {
    return SentenceSplitter(SplitSentences);
  }
  if (sentences.empty()) {
    return absl::InvalidArgumentError(
        "should be \"icu\" or a folder, but is empty");
  }
  ETC_ASSIGN_OR_RETURN(const PunktFiles files, ReadPunktFiles(sentences));
  ETC_ASSIGN_OR_RETURN(PunktTables tables, ParsePunktTables(files, sentences));
  const auto shared = std::make_shared<const PunktTables>(std::move(tables));
  return [shared](absl::string_view text) {
    return PunktSentences(text, *shared);
  };
}

std::vector<ByteRange> SplitSentences(absl::string_view original) {
  if (original.size() > std::numeric_limits<int32_t>::max()) {
    throw std::length_error(absl::StrCat("a text of ", original.size(),
                                         " bytes is too long for ICU"));
  }
  const std::string plain = WithoutLineEnds(original);
  const absl::string_view text = plain;
  const auto size = static_cast<int64_t>(text.size());
  std::vector<ByteRange> sentences;
  int64_t begin = SkipForward(text, 0, size, IsWhiteSpace);
  for (const int64_t icu_end : IcuSentenceEnds(text)) {
    int64_t end = SkipBackward(text, begin, icu_end, IsWhiteSpace);
    int64_t next = SkipForward(text, icu_end, size, IsWhiteSpace);
    if (end == icu_end && next < size) {
      // UAX 29 takes an opening bracket behind the mark for a closing one.
      end = SkipBackward(text, begin, end, IsOpeningBracket);
      next = end;
    }
    if (end <= begin ||
        (next < size &&
         IsAbbreviation(text.substr(begin, end - begin), text.substr(next)))) {
      continue;
    }
    sentences.push_back({begin, end});
    begin = next;
  }
  return sentences;
}

}  // namespace etc
