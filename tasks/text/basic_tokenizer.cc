#include "tasks/text/basic_tokenizer.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

constexpr CodePoint kCapitalSigma = 0x03A3;
constexpr CodePoint kSmallSigma = 0x03C3;
constexpr CodePoint kFinalSigma = 0x03C2;
constexpr CodePoint kCapitalDottedI = 0x0130;
constexpr CodePoint kDotAbove = 0x0307;
constexpr CodePoint kFirstDecomposable = 0x00C0;

// A character of the working text and the bytes of the original that it is.
struct SourcedCodePoint {
  CodePoint value;
  ByteRange source;
};

enum class AsciiClass : uint8_t { kOther, kSpace, kLetter, kPunctuation };

// kOther needs the general path: controls and parts of longer UTF-8 sequences.
constexpr std::array<AsciiClass, 256> MakeAsciiClasses() {
  std::array<AsciiClass, 256> classes{};
  for (int c = 0x21; c < 0x7F; ++c) {
    const bool alphanumeric = (c >= '0' && c <= '9') ||
                              (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    classes[c] = alphanumeric ? AsciiClass::kLetter : AsciiClass::kPunctuation;
  }
  for (const unsigned char c : {' ', '\t', '\n', '\r'}) {
    classes[c] = AsciiClass::kSpace;
  }
  return classes;
}
constexpr std::array<AsciiClass, 256> kAsciiClasses = MakeAsciiClasses();

AsciiClass ClassOf(char byte) {
  return kAsciiClasses[static_cast<uint8_t>(byte)];
}

// Python's str.split also splits at these, which are neither Zs nor Cc.
bool IsLineSeparator(CodePoint c) { return c == 0x2028 || c == 0x2029; }

// Returns true if a sigma between `before` and `after` is at the end of a word
// (Final_Sigma of Unicode 15.0, table 3-17): a cased letter comes before it and
// none after it, case-ignorable characters being looked through.
bool IsFinalSigma(absl::Span<const SourcedCodePoint> before,
                  absl::Span<const SourcedCodePoint> after) {
  const auto meets_cased = [](auto first, auto last) {
    const auto met = std::find_if(first, last, [](const SourcedCodePoint& c) {
      return u_hasBinaryProperty(c.value, UCHAR_CASE_IGNORABLE) == 0;
    });
    return met != last && u_hasBinaryProperty(met->value, UCHAR_CASED) != 0;
  };
  return meets_cased(before.rbegin(), before.rend()) &&
         !meets_cased(after.begin(), after.end());
}

// The passes over one white-space separated word, with buffers that are used
// again for the next one.
class WordScanner {
 public:
  WordScanner(absl::string_view text, const BasicTokenizerOptions& options,
              absl::FunctionRef<void(const BasicWord&)> visit)
      : text_(text),
        size_(static_cast<int64_t>(text.size())),
        options_(options),
        strip_accents_(options.strip_accents.value_or(options.lower_case)),
        visit_(visit),
        nfd_(GetNfd()) {}

  void Scan() {
    for (int64_t at = 0; at < size_;) {
      if (ClassOf(text_[at]) == AsciiClass::kSpace) {
        ++at;
        continue;
      }
      int64_t end = at;
      while (end < size_ && ClassOf(text_[end]) > AsciiClass::kSpace) {
        ++end;
      }
      if (end == size_ || ClassOf(text_[end]) == AsciiClass::kSpace) {
        VisitAsciiWord(at, end);
        at = end;
      } else {
        at = Collect(at);
        VisitCollected();
      }
    }
  }

  NormalizedText Normalize() {
    for (int64_t at = 0; at < size_;) {
      const int64_t begin = at;
      const CodePoint c = NextCodePoint(text_, &at);
      if (IsDropped(c)) {
        continue;
      }
      const bool stands_alone = StandsAlone(c);
      if (stands_alone) {
        word_.push_back({' ', {begin, begin}});
      }
      word_.push_back({IsSpace(c) ? ' ' : c, {begin, at}});
      if (stands_alone) {
        word_.push_back({' ', {at, at}});
      }
    }
    Fold();
    NormalizedText normalized;
    for (const auto& [c, source] : word_) {
      AppendUtf8(c, &normalized.text);
      normalized.sources.resize(normalized.text.size(), source);
    }
    return normalized;
  }

 private:
  static const icu::Normalizer2& GetNfd() {
    // The data of NFD are compiled into ICU, so that this cannot fail.
    UErrorCode status = U_ZERO_ERROR;
    return *icu::Normalizer2::getNFDInstance(status);
  }

  bool IsDropped(CodePoint c) const {
    return c < 0 || (options_.clean_text && IsBertDeleted(c));
  }
  // Without cleaning, controls that are white space are left.
  bool IsSpace(CodePoint c) const {
    return IsBertSpace(c) || IsLineSeparator(c) ||
           (!options_.clean_text && u_isUWhiteSpace(c) != 0);
  }
  bool StandsAlone(CodePoint c) const {
    return options_.tokenize_chinese_chars && IsBertIdeograph(c);
  }

  // Bytes [begin, end) are letters, digits and punctuation of ASCII: nothing
  // to clean or to decompose.
  void VisitAsciiWord(int64_t begin, int64_t end) {
    absl::string_view word = text_.substr(begin, end - begin);
    if (options_.lower_case) {
      utf8_.assign(word.data(), word.size());
      absl::AsciiStrToLower(&utf8_);
      word = utf8_;
    }
    const auto size = static_cast<int64_t>(word.size());
    for (int64_t from = 0; from < size;) {
      int64_t to = from + 1;
      if (ClassOf(word[from]) == AsciiClass::kLetter) {
        while (to < size && ClassOf(word[to]) == AsciiClass::kLetter) {
          ++to;
        }
      }
      visit_(BasicWord(word.substr(from, to - from), begin + from, {}));
      from = to;
    }
  }

  // Cleans and splits at white space and around ideographs: fills `word_` with
  // the word at `at` and returns the end of it.
  int64_t Collect(int64_t at) {
    word_.clear();
    while (at < size_) {
      const int64_t begin = at;
      const CodePoint c = NextCodePoint(text_, &at);
      if (IsDropped(c)) {
        continue;
      }
      if (IsSpace(c)) {
        return at;
      }
      if (StandsAlone(c)) {
        if (!word_.empty()) {
          return begin;
        }
        word_.push_back({c, {begin, at}});
        return at;
      }
      word_.push_back({c, {begin, at}});
    }
    return at;
  }

  // `word_` into lower case and without accents, as the options say.
  void Fold() {
    if (options_.lower_case) {
      LowerCase();
    }
    if (strip_accents_) {
      Decompose();
      std::erase_if(word_, [](const SourcedCodePoint& c) {
        return u_charType(c.value) == U_NON_SPACING_MARK;
      });
    }
  }

  void VisitCollected() {
    Fold();
    for (size_t from = 0; from < word_.size();) {
      size_t to = from + 1;
      if (!IsBertPunctuation(word_[from].value)) {
        while (to < word_.size() && !IsBertPunctuation(word_[to].value)) {
          ++to;
        }
      }
      Visit(absl::MakeConstSpan(word_).subspan(from, to - from));
      from = to;
    }
  }

  // `word_` into lower case. In the root locale all is simple but for the
  // final sigma and U+0130, which becomes two characters.
  void LowerCase() {
    other_.clear();
    for (size_t i = 0; i < word_.size(); ++i) {
      const auto& [c, source] = word_[i];
      if (c == kCapitalSigma) {
        const absl::Span<const SourcedCodePoint> word = word_;
        const bool is_final = IsFinalSigma(word.first(i), word.subspan(i + 1));
        other_.push_back({is_final ? kFinalSigma : kSmallSigma, source});
      } else if (c == kCapitalDottedI) {
        other_.push_back({'i', source});
        other_.push_back({kDotAbove, source});
      } else {
        other_.push_back({u_tolower(c), source});
      }
    }
    word_.swap(other_);
  }

  // `word_` into NFD, code point by code point, then marks into canonical
  // order.
  void Decompose() {
    other_.clear();
    for (const auto& [c, source] : word_) {
      if (c < kFirstDecomposable || !nfd_.getDecomposition(c, decomposed_)) {
        other_.push_back({c, source});
        continue;
      }
      for (int32_t i = 0; i < decomposed_.length();) {
        const UChar32 part = decomposed_.char32At(i);
        other_.push_back({part, source});
        i += U16_LENGTH(part);
      }
    }
    word_.swap(other_);
    OrderMarks(
        [](const SourcedCodePoint& c) {
          return c.value < kFirstDecomposable ? uint8_t{0}
                                              : u_getCombiningClass(c.value);
        },
        &word_);
  }

  void Visit(absl::Span<const SourcedCodePoint> characters) {
    utf8_.clear();
    sources_.clear();
    for (const auto& [c, source] : characters) {
      AppendUtf8(c, &utf8_);
      sources_.resize(utf8_.size(), source);
    }
    visit_(BasicWord(utf8_, sources_.front().begin, sources_));
  }

  const absl::string_view text_;
  const int64_t size_;
  const BasicTokenizerOptions options_;
  const bool strip_accents_;
  const absl::FunctionRef<void(const BasicWord&)> visit_;
  const icu::Normalizer2& nfd_;

  std::vector<SourcedCodePoint> word_;
  std::vector<SourcedCodePoint> other_;  // the next state of `word_`
  icu::UnicodeString decomposed_;
  std::string utf8_;
  std::vector<ByteRange> sources_;  // one for each byte of `utf8_`
};

}  // namespace

ByteRange BasicWord::Source(int64_t from, int64_t to) const {
  if (sources_.empty()) {
    return {begin_ + from, begin_ + to};
  }
  ByteRange range = sources_[from];
  for (const ByteRange& source : sources_.subspan(from, to - from)) {
    range.begin = std::min(range.begin, source.begin);
    range.end = std::max(range.end, source.end);
  }
  return range;
}

void VisitBasicWords(absl::string_view text,
                     const BasicTokenizerOptions& options,
                     absl::FunctionRef<void(const BasicWord&)> visit) {
  WordScanner(text, options, visit).Scan();
}

NormalizedText NormalizeText(absl::string_view text,
                             const BasicTokenizerOptions& options) {
  return WordScanner(text, options, [](const BasicWord&) {}).Normalize();
}

BasicTokenizerOptions BasicOptionsOf(const Tokenizer& tokenizer) {
  const WordPieceOptions* options = tokenizer.wordpiece_options();
  if (options == nullptr) {
    return {.lower_case = tokenizer.lower_cases()};
  }
  return {.lower_case = options->lower_case,
          .strip_accents = options->strip_accents,
          .tokenize_chinese_chars = options->tokenize_chinese_chars,
          .clean_text = options->clean_text};
}

const CuttingPlaces& CuttingPlacesOfBasicWords() {
  static const auto* const places = new CuttingPlaces{.blanks = " \n\t\r"};
  return *places;
}

std::vector<std::string> BasicWords(absl::string_view text,
                                    const BasicTokenizerOptions& options) {
  std::vector<std::string> words;
  VisitBasicWords(text, options, [&words](const BasicWord& word) {
    words.emplace_back(word.text());
  });
  return words;
}

}  // namespace etc
