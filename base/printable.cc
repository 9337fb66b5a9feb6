#include "base/printable.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace etc {
namespace {

// The bytes of the character that `lead` begins; 1 of what begins none.
size_t LengthOf(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
}

// Characters that are not seen, and end a line or change the order of others.
constexpr absl::string_view kInvisible =
    "\u200E\u200F\u2028\u2029\u202A\u202B\u202C\u202D\u202E"
    "\u2066\u2067\u2068\u2069";

bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7F ||
         (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0) ||
         (first == 0xE2 &&
          kInvisible.find(character) != absl::string_view::npos);
}

// Appends the characters of `text`, escaped unless they are printable or in
// `kept`.
void AppendPrintable(absl::string_view text, absl::string_view kept,
                     std::string* out) {
  while (!text.empty()) {
    absl::string_view character = text.substr(0, LengthOf(text[0]));
    const bool is_character = IsUtf8(character);
    if (!is_character) {
      character = text.substr(0, 1);
    }
    text.remove_prefix(character.size());
    if (is_character && (!IsControl(character) ||
                         kept.find(character) != absl::string_view::npos)) {
      absl::StrAppend(out, character);
      continue;
    }
    for (const char byte : character) {
      absl::StrAppend(
          out, "\\x",
          absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
    }
  }
}

// The number of bytes of an incomplete UTF-8 character at the end of `text`.
size_t BegunAtEnd(absl::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(3, text.size()); ++bytes) {
    const char byte = text[text.size() - bytes];
    if (BeginsCharacter(byte)) {
      return LengthOf(byte) > bytes ? bytes : 0;
    }
  }
  return 0;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable;
  AppendPrintable(text, "", &printable);
  return printable;
}

bool PrintableBuffer::Write(absl::string_view text) {
  std::string out;
  AppendPrintable(text, kept_, &out);
  const auto size = static_cast<std::streamsize>(out.size());
  return to_->sputn(out.data(), size) == size;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) {
    return traits_type::not_eof(c);
  }
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text,
                                        std::streamsize size) {
  const std::scoped_lock lock(mutex_);
  begun_.append(text, static_cast<size_t>(size));
  const std::string whole =
      begun_.substr(0, begun_.size() - BegunAtEnd(begun_));
  begun_.erase(0, whole.size());
  return Write(whole) ? size : 0;
}

// Keeps an incomplete character in `begun_`: the stream may be flushed in the
// middle of one.
int PrintableBuffer::sync() {
  const std::scoped_lock lock(mutex_);
  return to_->pubsync();
}

void EscapeStandardStreams() {
  // Never deleted: the streams are flushed when all else is gone.
  std::cout.rdbuf(
      new PrintableBuffer(std::cout.rdbuf(), absl::StrCat("\n\t", kInvisible)));
  std::cerr.rdbuf(new PrintableBuffer(std::cerr.rdbuf(), "\n\t\r"));
}

}  // namespace etc
