#include "tasks/text/punkt_splitter.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tasks/text/punkt_words.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

absl::string_view Slice(absl::string_view text, int64_t begin, int64_t end) {
  return text.substr(static_cast<size_t>(begin),
                     static_cast<size_t>(end - begin));
}

// `begin` behind the characters of `text` that are `wanted`.
template <typename Predicate>
int64_t Skip(absl::string_view text, int64_t begin, const Predicate& wanted) {
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = begin; at < size; begin = at) {
    if (!wanted(NextCodePoint(text, &at))) {
      break;
    }
  }
  return begin;
}

// --- The words around a candidate -------------------------------------------

struct Word {
  absl::string_view text;
  bool is_break = false;
  bool is_abbreviation = false;
  bool is_ellipsis = false;

  // Type with a full stop at its end, or without.
  std::string Type() const { return PunktType(text); }
  std::string TypeWithoutStop() const {
    std::string type = Type();
    if (type.size() > 1 && type.back() == '.') {
      type.pop_back();
    }
    return type;
  }
  // Type without the full stop if that one ends a sentence.
  std::string TypeWithoutBreak() const {
    return is_break ? TypeWithoutStop() : Type();
  }
};

// Classifies words and pairs of words (Kiss and Strunk 2006, section 4).
class Classifier {
 public:
  explicit Classifier(const PunktTables& tables) : tables_(tables) {}

  // Returns true if a sentence ends within `text`, before its last word.
  bool HasBreak(absl::string_view text) const {
    const std::vector<absl::string_view> words = PunktWords(text);
    if (words.empty()) {
      return false;
    }
    Word word = ByType(words[0]);
    for (size_t i = 1; i < words.size(); ++i) {
      const Word next = ByType(words[i]);
      DecideByNext(next, &word);
      if (word.is_break) {
        return true;
      }
      word = next;
    }
    return false;
  }

 private:
  // The first pass: decides by the word alone.
  Word ByType(absl::string_view text) const {
    Word word{.text = text};
    if (text == "." || text == "?" || text == "!") {
      word.is_break = true;
    } else if (IsPunktEllipsis(text)) {
      word.is_ellipsis = true;
    } else if (absl::EndsWith(text, ".") && !absl::EndsWith(text, "..")) {
      word.is_abbreviation = IsAbbreviation(text);
      word.is_break = !word.is_abbreviation;
    }
    return word;
  }

  bool IsAbbreviation(absl::string_view text) const {
    const std::string word = LowerCase(absl::StripSuffix(text, "."));
    const size_t last_hyphen = word.rfind('-');
    return tables_.abbreviations.contains(word) ||
           (last_hyphen != std::string::npos &&
            tables_.abbreviations.contains(word.substr(last_hyphen + 1)));
  }

  // The second pass: decides about a word by the pair with the next one.
  void DecideByNext(const Word& next, Word* word) const {
    if (!absl::EndsWith(word->text, ".")) {
      return;
    }
    const std::string type = word->TypeWithoutStop();
    const std::string next_type = next.TypeWithoutBreak();
    if (tables_.collocations.contains(absl::StrCat(type, "\t", next_type))) {
      word->is_break = false;
      return;
    }
    const bool is_initial = IsPunktInitial(word->text);
    const std::optional<bool> begins = BeginsSentence(next, next_type);
    if ((word->is_abbreviation || word->is_ellipsis) && !is_initial &&
        (begins == true || (BeginsInUpperCase(next.text) &&
                            tables_.sentence_starters.contains(next_type)))) {
      word->is_break = true;
      return;
    }
    if (!is_initial && type != kPunktNumber) {
      return;
    }
    if (begins == false ||
        (!begins.has_value() && is_initial && BeginsInUpperCase(next.text) &&
         (Orthography(next_type) & kPunktLower) == 0)) {
      word->is_break = false;
    }
  }

  // The orthographic heuristic: whether a word seems to begin a sentence; or
  // nothing if the tables do not tell.
  std::optional<bool> BeginsSentence(const Word& word,
                                     const std::string& type) const {
    if (word.text.size() == 1 && absl::string_view(";:,.!?").find(
                                     word.text[0]) != absl::string_view::npos) {
      return false;
    }
    const uint32_t orthography = Orthography(type);
    if (BeginsInUpperCase(word.text) && (orthography & kPunktLower) != 0 &&
        (orthography & kPunktUpperInMiddle) == 0) {
      return true;
    }
    if (BeginsInLowerCase(word.text) &&
        ((orthography & kPunktUpper) != 0 ||
         (orthography & kPunktLowerAtBeginning) == 0)) {
      return false;
    }
    return std::nullopt;
  }

  uint32_t Orthography(const std::string& type) const {
    const auto found = tables_.orthography.find(type);
    return found == tables_.orthography.end() ? 0 : found->second;
  }

  const PunktTables& tables_;
};

// --- Candidates -------------------------------------------------------------

struct Candidate {
  // Range of the words that decide about it: it ends behind the word that
  // follows, or behind the closing character.
  int64_t context_begin = 0;
  int64_t context_end = 0;
  int64_t mark = 0;
  // Begin of the next sentence if this ends one.
  int64_t next = 0;
};

// The candidate at a mark, but for `context_begin`, if there is one.
std::optional<Candidate> CandidateAt(absl::string_view text, int64_t mark) {
  const auto size = static_cast<int64_t>(text.size());
  int64_t behind = mark + 1;
  if (behind >= size) {
    return std::nullopt;
  }
  if (IsPunktCloser(NextCodePoint(text, &behind))) {
    return Candidate{.context_end = behind, .mark = mark, .next = mark + 1};
  }
  const int64_t next = Skip(text, mark + 1, IsPythonSpace);
  if (next == mark + 1 || next == size) {
    return std::nullopt;
  }
  const int64_t end =
      Skip(text, next, [](CodePoint c) { return !IsPythonSpace(c); });
  return Candidate{.context_end = end, .mark = mark, .next = next};
}

// Returns all candidates; of several in one word ("really?!)") the last.
std::vector<Candidate> Candidates(absl::string_view text) {
  constexpr absl::string_view kMarks = ".?!";
  // ASCII ones only, unlike everywhere else: this is NLTK's.
  constexpr absl::string_view kAsciiSpace = " \t\n\r\v\f";
  std::vector<Candidate> candidates;
  int64_t last_mark = 0;
  int64_t word_begin = 0;
  for (size_t at = text.find_first_of(kMarks); at != absl::string_view::npos;
       at = text.find_first_of(kMarks, at + 1)) {
    const auto mark = static_cast<int64_t>(at);
    std::optional<Candidate> candidate = CandidateAt(text, mark);
    if (!candidate.has_value()) {
      continue;
    }
    const size_t space = Slice(text, last_mark, mark).find_last_of(kAsciiSpace);
    if (space != absl::string_view::npos && space > 0) {
      word_begin = last_mark + static_cast<int64_t>(space) + 1;
    }
    // No white space since the mark before: one word with two marks.
    if (!candidates.empty() && last_mark > word_begin) {
      candidates.pop_back();
    }
    candidate->context_begin = word_begin;
    candidates.push_back(*candidate);
    last_mark = mark;
  }
  return candidates;
}

// --- Borders ----------------------------------------------------------------

// Sentences as the candidates divide the text, closing characters at the
// beginning of the one that follows.
std::vector<ByteRange> Divide(absl::string_view text,
                              const PunktTables& tables) {
  const Classifier classifier(tables);
  std::vector<ByteRange> ranges;
  int64_t begin = 0;
  for (const Candidate& candidate : Candidates(text)) {
    if (classifier.HasBreak(
            Slice(text, candidate.context_begin, candidate.context_end))) {
      ranges.push_back({begin, candidate.mark + 1});
      begin = candidate.next;
    }
  }
  const absl::string_view rest = text.substr(static_cast<size_t>(begin));
  const absl::string_view stripped = StripWhiteSpace(rest);
  ranges.push_back(
      {begin, stripped.empty()
                  ? begin
                  : stripped.data() + stripped.size() - text.data()});
  return ranges;
}

bool IsClosingQuoteOrBracket(CodePoint c) {
  return c != '(' && c != '{' && c != '[' && c != ';' && c != '*' && c != ':' &&
         c != '@' && c != '?' && c != '!' && IsPunktCloser(c);
}

// The bytes of closing quotes and brackets at the beginning of a sentence that
// belong to the one before: those with white space, a dash or nothing behind
// them.
int64_t ClosingBytes(absl::string_view sentence) {
  const int64_t end = Skip(sentence, 0, IsClosingQuoteOrBracket);
  const absl::string_view rest = sentence.substr(static_cast<size_t>(end));
  const bool belongs_before = rest.empty() || absl::StartsWith(rest, "--") ||
                              Skip(rest, 0, IsPythonSpace) > 0;
  return belongs_before ? end : 0;
}

}  // namespace

std::vector<ByteRange> PunktSentences(absl::string_view text,
                                      const PunktTables& tables) {
  std::vector<ByteRange> ranges = Divide(text, tables);
  std::vector<ByteRange> sentences;
  for (size_t i = 0; i < ranges.size(); ++i) {
    ByteRange& range = ranges[i];
    if (i + 1 < ranges.size()) {
      ByteRange& next = ranges[i + 1];
      const int64_t closing = ClosingBytes(Slice(text, next.begin, next.end));
      if (closing > 0) {
        range.end = next.begin + closing;
        next.begin = Skip(Slice(text, 0, next.end), range.end, IsPythonSpace);
      }
    }
    if (range.begin < range.end) {
      sentences.push_back(range);
    }
  }
  return sentences;
}

}  // namespace etc
