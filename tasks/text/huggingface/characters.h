#ifndef ETC_TASKS_TEXT_HUGGINGFACE_CHARACTERS_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_CHARACTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {

// Category N: decimal digits, letter-like and other numbers.
bool IsNumber(CodePoint c);
// ASCII punctuation and category P.
bool IsPunctuation(CodePoint c);

// `text` without the white space at both ends of `range`; `range` itself if
// there is nothing else. `text` is valid UTF-8.
ByteRange WithoutWhiteSpace(absl::string_view text, ByteRange range);

// Calls `visit` for each word that GPT-2's pattern finds; they cover `text`,
// which is valid UTF-8:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|
//   \s+(?!\S)|\s+
void VisitGpt2Words(absl::string_view text,
                    absl::FunctionRef<void(ByteRange word)> visit);
// The pattern as files spell it.
inline constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

// The bytes that a piece of a byte-level vocabulary spells,
// or false if it has a character that stands for no byte.
bool BytesOfPiece(absl::string_view piece, std::string* bytes);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_CHARACTERS_H_
