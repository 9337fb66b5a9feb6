#include "tasks/text/text_folding.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/edits.h>
#include <unicode/stringpiece.h>

#include <cstddef>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace etc {
namespace {

// `edits` may be null.
std::string LowerCaseNotingEdits(absl::string_view text, icu::Edits* edits) {
  if (text.size() > std::numeric_limits<int32_t>::max()) {
    throw std::length_error(
        absl::StrCat("a text of ", text.size(), " bytes is too long for ICU"));
  }
  std::string lower;
  icu::StringByteSink<std::string> sink(&lower);
  // Fails only if memory does.
  UErrorCode ignored = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower(
      /*locale=*/"", /*options=*/0,
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
      edits, ignored);
  return lower;
}

}  // namespace

bool IsPythonSpace(CodePoint c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

absl::string_view StripWhiteSpace(absl::string_view text) {
  int64_t begin = 0;
  int64_t end = std::ssize(text);
  for (int64_t next = begin; begin < end; begin = next) {
    if (!IsPythonSpace(NextCodePoint(text, &next))) {
      break;
    }
  }
  for (int64_t previous = end; begin < end; end = previous) {
    if (!IsPythonSpace(PreviousCodePoint(text, &previous))) {
      break;
    }
  }
  return text.substr(static_cast<size_t>(begin),
                     static_cast<size_t>(end - begin));
}

bool IsBlank(absl::string_view text) { return StripWhiteSpace(text).empty(); }

std::vector<absl::string_view> SplitWhiteSpace(absl::string_view text) {
  std::vector<absl::string_view> words;
  int64_t begin = -1;
  for (int64_t at = 0; at < std::ssize(text);) {
    const int64_t here = at;
    const bool is_space = IsPythonSpace(NextCodePoint(text, &at));
    if (is_space && begin >= 0) {
      words.push_back(text.substr(static_cast<size_t>(begin),
                                  static_cast<size_t>(here - begin)));
      begin = -1;
    } else if (!is_space && begin < 0) {
      begin = here;
    }
  }
  if (begin >= 0) {
    words.push_back(text.substr(static_cast<size_t>(begin)));
  }
  return words;
}

std::string LowerCase(absl::string_view text) {
  return LowerCaseNotingEdits(text, /*edits=*/nullptr);
}

AlignedLowerCase LowerCaseWithOrigin(absl::string_view text) {
  icu::Edits edits;
  AlignedLowerCase lower;
  lower.text = LowerCaseNotingEdits(text, &edits);
  lower.origin.resize(lower.text.size() + 1);
  UErrorCode ignored = U_ZERO_ERROR;
  icu::Edits::Iterator edit = edits.getFineIterator();
  while (edit.next(ignored)) {
    for (int32_t i = 0; i < edit.newLength(); ++i) {
      // Unchanged text goes byte by byte; a changed character as a whole.
      lower.origin[static_cast<size_t>(edit.destinationIndex()) +
                   static_cast<size_t>(i)] =
          edit.sourceIndex() + (edit.hasChange() ? 0 : i);
    }
  }
  lower.origin.back() = static_cast<int64_t>(text.size());
  return lower;
}

}  // namespace etc
