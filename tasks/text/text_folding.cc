#include "tasks/text/text_folding.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/edits.h>
#include <unicode/stringpiece.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace etc {
namespace {

// `edits` may be null.
std::string LowerCaseNotingEdits(absl::string_view text, icu::Edits* edits) {
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
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  int32_t begin = 0;
  int32_t end = static_cast<int32_t>(text.size());
  UChar32 c = 0;
  for (int32_t next = begin; begin < end; begin = next) {
    U8_NEXT(bytes, next, end, c);
    if (!IsPythonSpace(c)) {
      break;
    }
  }
  for (int32_t previous = end; begin < end; end = previous) {
    U8_PREV(bytes, begin, previous, c);
    if (!IsPythonSpace(c)) {
      break;
    }
  }
  return text.substr(static_cast<size_t>(begin),
                     static_cast<size_t>(end - begin));
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
