#include "tasks/text/huggingface/pattern.h"

#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

class LiteralPattern : public Pattern {
 public:
  explicit LiteralPattern(std::string text) : text_(std::move(text)) {}

  void FindAll(absl::string_view text,
               absl::FunctionRef<void(ByteRange match)> visit) const override {
    for (size_t at = text.find(text_);
         !text_.empty() && at != absl::string_view::npos;
         at = text.find(text_, at + text_.size())) {
      visit({.begin = static_cast<int64_t>(at),
             .end = static_cast<int64_t>(at + text_.size())});
    }
  }

 private:
  const std::string text_;
};

class Gpt2Pattern : public Pattern {
 public:
  void FindAll(absl::string_view text,
               absl::FunctionRef<void(ByteRange match)> visit) const override {
    VisitGpt2Words(text, visit);
  }
};

// The states that ICU may save in all matches of a text together (it counts
// them from reset() on, in units of 10,000, for setTimeLimit). Published
// expressions save at most 10 a byte, whatever the text, so that 100 a byte
// bound none of them; the ten million for a text of any size let expressions
// with a quadratic look-ahead, as those that group digits by three, take runs
// of some thousand digits. Nested repetitions save exponentially many.
int32_t MostSavedStates(size_t bytes) {
  constexpr size_t kUnit = 10'000;
  return static_cast<int32_t>(10'000'000 / kUnit + bytes / (kUnit / 100));
}

// The bytes of the states that ICU may keep at a time. "\s*[\r\n]+", which
// published expressions have, keeps one of up to 64 bytes for each blank.
int32_t MostKeptBytes(size_t bytes) {
  constexpr size_t kLeast = size_t{16} << 20;
  return static_cast<int32_t>(std::min<size_t>(
      kLeast + 256 * bytes, std::numeric_limits<int32_t>::max()));
}

class IcuPattern : public Pattern {
 public:
  explicit IcuPattern(std::unique_ptr<icu::RegexPattern> pattern)
      : pattern_(std::move(pattern)) {}

  void FindAll(absl::string_view text,
               absl::FunctionRef<void(ByteRange match)> visit) const override {
    if (text.empty()) {
      return;
    }
    UErrorCode status = U_ZERO_ERROR;
    UText bytes = UTEXT_INITIALIZER;
    utext_openUTF8(&bytes, text.data(), static_cast<int64_t>(text.size()),
                   &status);
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(status));
    if (U_SUCCESS(status)) {
      matcher->setTimeLimit(MostSavedStates(text.size()), status);
      matcher->setStackLimit(MostKeptBytes(text.size()), status);
      matcher->reset(&bytes);
      int64_t done = -1;
      while (matcher->find(status) != 0 && U_SUCCESS(status)) {
        const int64_t begin = matcher->start64(status);
        const int64_t end = matcher->end64(status);
        if (begin < end || begin != done) {
          visit({.begin = begin, .end = end});
        }
        done = end;
      }
    }
    utext_close(&bytes);
    if (U_FAILURE(status)) {
      throw LimitReached(absl::StrCat(
          "a regular expression of the tokenizer failed on a text of ",
          text.size(), " bytes: ", u_errorName(status)));
    }
  }

 private:
  const std::unique_ptr<icu::RegexPattern> pattern_;
};

// Returns true for the name of a general category, a script or a property of
// Unicode, which ICU and Oniguruma know alike. POSIX's names are others: ICU's
// XDigit has all decimal digits, its Word has marks.
bool IsSharedProperty(absl::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      letters += absl::ascii_tolower(static_cast<unsigned char>(c));
    }
  }
  for (const char* posix :
       {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print",
        "punct", "space", "upper", "word", "xdigit"}) {
    if (letters == posix) {
      return false;
    }
  }
  const std::string whole(name);
  const UProperty property = u_getPropertyEnum(whole.c_str());
  return u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, whole.c_str()) !=
             UCHAR_INVALID_CODE ||
         u_getPropertyValueEnum(UCHAR_SCRIPT, whole.c_str()) !=
             UCHAR_INVALID_CODE ||
         (property >= UCHAR_BINARY_START && property < UCHAR_BINARY_LIMIT);
}

// Writes an expression of Oniguruma's Ruby syntax for ICU.
class Translator {
 public:
  explicit Translator(absl::string_view expression) : in_(expression) {}

  // False if there is something that is not supported; see unsupported().
  bool Run() {
    while (at_ < in_.size() && unsupported_.empty()) {
      const char c = in_[at_];
      if (c == '\\') {
        Escape();
      } else if (c == '[') {
        Class();
      } else if (c == '(') {
        Group();
      } else if (c == '{') {
        Repetition();
      } else if (c == '^' || c == '$') {
        Refuse(1);
      } else {
        Take(1);
      }
    }
    return unsupported_.empty();
  }

  const std::string& text() const { return out_; }
  // The part that is not supported.
  const std::string& unsupported() const { return unsupported_; }

 private:
  absl::string_view Rest() const { return in_.substr(at_); }
  void Take(size_t size) {
    out_.append(in_.data() + at_, std::min(size, in_.size() - at_));
    at_ += size;
  }
  void Put(absl::string_view text, size_t size) {
    absl::StrAppend(&out_, text);
    at_ += size;
  }
  void Refuse(size_t size) {
    unsupported_ = std::string(Rest().substr(0, size));
  }

  void Escape() {
    static constexpr std::pair<char, const char*> kClasses[] = {
        {'s', R"(\p{White_Space})"},
        {'S', R"(\P{White_Space})"},
        {'d', R"(\p{Nd})"},
        {'D', R"(\P{Nd})"},
        {'w', R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])"},
        {'W', R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])"},
        {'v', R"(\x{0b})"}};
    const char c = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    // By itself, but not in a class, this has superscripts and fractions of
    // Latin-1.
    if (class_depth_ == 0 && (c == 'w' || c == 'W')) {
      return Put(absl::StrCat(c == 'w' ? "[" : "[^",
                              R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})",
                              R"(\u00b2\u00b3\u00b9\u00bc-\u00be])"),
                 2);
    }
    for (const auto& [letter, text] : kClasses) {
      if (c == letter) {
        return Put(text, 2);
      }
    }
    if (c == 'p' || c == 'P') {
      return Property();
    }
    // Two digits are a byte of UTF-8 in Oniguruma, and a code point in ICU: the
    // same below 0x80.
    const absl::string_view first_digit = Rest().substr(2, 1);
    if (c == 'x' && !first_digit.empty() &&
        absl::StrContains("89abcdefABCDEF", first_digit)) {
      return Refuse(4);
    }
    const bool is_known = c == 'r' || c == 'n' || c == 't' || c == 'f' ||
                          c == 'u' || c == 'x' ||
                          absl::ascii_ispunct(static_cast<unsigned char>(c));
    is_known ? Take(2) : Refuse(2);
  }

  void Property() {
    const size_t end = in_.find('}', at_);
    const absl::string_view text =
        Rest().substr(0, end == absl::string_view::npos ? 0 : end - at_);
    // "\p{^L}" is Oniguruma's alone.
    if (text.size() < 4 || text[2] != '{' || text[3] == '^') {
      return Refuse(4);
    }
    IsSharedProperty(text.substr(3)) ? Take(text.size() + 1)
                                     : Refuse(text.size() + 1);
  }

  // Returns the size of something in a class that ICU reads otherwise, or 0:
  // classes of POSIX, differences, and an intersection that has one "&" or
  // nothing at one side.
  size_t SizeOfOtherOperator() const {
    if (absl::StartsWith(Rest(), "[:")) {
      const size_t end = in_.find(":]", at_ + 2);
      return end == absl::string_view::npos ? 2 : end + 2 - at_;
    }
    for (const char* operation : {"--", "-[", "&[", "&&&", "&&]"}) {
      if (absl::StartsWith(Rest(), operation)) {
        return absl::string_view(operation).size();
      }
    }
    return 0;
  }

  void Class() {
    // Bounds the recursion: classes in classes may be as many as a file likes.
    constexpr int kDeepest = 64;
    if (++class_depth_ > kDeepest) {
      return Refuse(1);
    }
    Take(absl::StartsWith(Rest(), "[^") ? 2 : 1);
    if (absl::StartsWith(Rest(), "]") || absl::StartsWith(Rest(), "&&")) {
      return Refuse(in_[at_] == ']' ? 1 : 2);
    }
    while (at_ < in_.size() && unsupported_.empty()) {
      const char c = in_[at_];
      if (c == ']') {
        --class_depth_;
        return Take(1);
      }
      if (const size_t size = SizeOfOtherOperator(); size > 0) {
        Refuse(size);
      } else if (c == '[') {
        Class();
      } else if (c == '\\') {
        Escape();
      } else if (absl::StartsWith(Rest(), "&&")) {
        Take(2);
      } else if (c == ':' || c == '{' || c == '}' || c == '$' || c == ' ') {
        Put(absl::StrCat("\\", absl::string_view(&c, 1)), 1);
      } else {
        Take(1);
      }
    }
  }

  void Group() {
    if (!absl::StartsWith(Rest(), "(?")) {
      return Take(1);
    }
    for (const char* known :
         {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (absl::StartsWith(Rest(), known)) {
        return Take(absl::string_view(known).size());
      }
    }
    // Ends, elsewhere, at the next alternative in ICU alone.
    if (at_ == 0 && absl::StartsWith(Rest(), "(?i)")) {
      return Take(4);
    }
    Refuse(4);
  }

  // "{2}+" repeats the repetition in Oniguruma, and is possessive in ICU;
  // "{2}?" makes it optional, and is lazy in ICU.
  void Repetition() {
    const size_t end = in_.find('}', at_);
    const absl::string_view text =
        Rest().substr(0, end == absl::string_view::npos ? 0 : end - at_);
    const bool is_plain =
        text.size() > 1 &&
        absl::ascii_isdigit(static_cast<unsigned char>(text[1]));
    const char behind = is_plain && end + 1 < in_.size() ? in_[end + 1] : ' ';
    const bool is_other =
        behind == '+' || behind == '*' ||
        (behind == '?' && text.find(',') == absl::string_view::npos);
    is_plain && !is_other ? Take(text.size() + 1) : Refuse(text.size() + 2);
  }

  const absl::string_view in_;
  size_t at_ = 0;
  int class_depth_ = 0;
  std::string out_;
  std::string unsupported_;
};

absl::StatusOr<std::shared_ptr<const Pattern>> ReadExpression(
    const std::string& expression, const std::string& where) {
  if (expression == kGpt2Pattern) {
    return std::make_shared<const Gpt2Pattern>();
  }
  Translator translator(expression);
  if (!translator.Run()) {
    return absl::UnimplementedError(absl::StrCat(
        where, " is ", QuotedName(expression), ", of which ",
        QuotedName(translator.unsupported()), " is not supported"));
  }
  UErrorCode status = U_ZERO_ERROR;
  UParseError mistake;
  std::unique_ptr<icu::RegexPattern> pattern(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(translator.text()), UREGEX_UNIX_LINES,
      mistake, status));
  if (U_FAILURE(status)) {
    return InvalidArgument(where, " should be a regular expression, but ",
                           QuotedName(expression),
                           " is none: ", u_errorName(status));
  }
  return std::make_shared<const IcuPattern>(std::move(pattern));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Pattern>> ReadPattern(
    const json& object, const std::string& where) {
  JsonObjectReader reader(object, where);
  std::string text;
  if (reader.Has("Regex")) {
    reader.Required("Regex", &text);
    ETC_RETURN_IF_ERROR(reader.Finish());
    return ReadExpression(text, reader.Where("Regex"));
  }
  reader.Required("String", &text);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return std::make_shared<const LiteralPattern>(std::move(text));
}

}  // namespace etc::huggingface
