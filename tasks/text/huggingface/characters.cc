#include "tasks/text/huggingface/characters.h"

#include <unicode/uchar.h>

#include "absl/container/flat_hash_map.h"
#include "etc/weights/roberta_vocabulary.h"

namespace etc::huggingface {
namespace {

enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };

CharacterClass ClassOf(CodePoint c) {
  const uint32_t category = U_GET_GC_MASK(c);
  if ((category & U_GC_L_MASK) != 0) {
    return CharacterClass::kLetter;
  }
  if ((category & U_GC_N_MASK) != 0) {
    return CharacterClass::kNumber;
  }
  return IsWhiteSpace(c) ? CharacterClass::kSpace : CharacterClass::kOther;
}

std::array<CharacterClass, 128> AsciiClasses() {
  std::array<CharacterClass, 128> classes = {};
  for (size_t c = 0; c < classes.size(); ++c) {
    classes[c] = ClassOf(static_cast<CodePoint>(c));
  }
  return classes;
}

// The class of the character at byte `*at`, which moves behind it.
CharacterClass NextClass(absl::string_view text, int64_t* at) {
  static const std::array<CharacterClass, 128> ascii = AsciiClasses();
  const auto first = static_cast<uint8_t>(text[static_cast<size_t>(*at)]);
  if (first < ascii.size()) {
    ++*at;
    return ascii[first];
  }
  return ClassOf(NextCodePoint(text, at));
}

// Bytes of "'s", "'t", "'re", "'ve", "'m", "'ll" or "'d" at the beginning, or
// 0.
int64_t ContractionSize(absl::string_view text) {
  if (text.size() < 2 || text[0] != '\'') {
    return 0;
  }
  switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return text.size() > 2 && text[2] == 'e' ? 3 : 0;
    case 'l':
      return text.size() > 2 && text[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// The end of the characters of one class from `at` on. `last` is the beginning
// of the last of them.
int64_t EndOfRun(absl::string_view text, int64_t at, CharacterClass of,
                 int64_t* last) {
  const auto size = static_cast<int64_t>(text.size());
  while (at < size) {
    int64_t next = at;
    if (NextClass(text, &next) != of) {
      break;
    }
    *last = at;
    at = next;
  }
  return at;
}

int64_t EndOfGpt2Word(absl::string_view text, int64_t begin) {
  const auto size = static_cast<int64_t>(text.size());
  const int64_t contraction =
      ContractionSize(text.substr(static_cast<size_t>(begin)));
  if (contraction > 0) {
    return begin + contraction;
  }
  int64_t at = begin;
  CharacterClass kind = NextClass(text, &at);
  if (kind == CharacterClass::kSpace && at < size &&
      text[static_cast<size_t>(begin)] == ' ') {
    int64_t next = at;
    const CharacterClass following = NextClass(text, &next);
    if (following != CharacterClass::kSpace) {
      kind = following;
      at = next;
    }
  }
  int64_t last = begin;
  const int64_t end = EndOfRun(text, at, kind, &last);
  // White space but for the last one, which belongs to the word behind it.
  return kind == CharacterClass::kSpace && end < size && last > begin ? last
                                                                      : end;
}

}  // namespace

bool IsNumber(CodePoint c) {
  return c >= 0 && (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0;
}

bool IsPunctuation(CodePoint c) { return c >= 0 && IsBertPunctuation(c); }

ByteRange WithoutWhiteSpace(absl::string_view text, ByteRange range) {
  ByteRange rest = range;
  while (rest.begin < rest.end) {
    int64_t next = rest.begin;
    if (!IsWhiteSpace(NextCodePoint(text, &next))) {
      break;
    }
    rest.begin = next;
  }
  while (rest.begin < rest.end) {
    int64_t before = rest.end;
    if (!IsWhiteSpace(PreviousCodePoint(text, &before))) {
      break;
    }
    rest.end = before;
  }
  return rest.begin < rest.end ? rest : range;
}

void VisitGpt2Words(absl::string_view text,
                    absl::FunctionRef<void(ByteRange word)> visit) {
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t end = EndOfGpt2Word(text, at);
    visit({.begin = at, .end = end});
    at = end;
  }
}

bool BytesOfPiece(absl::string_view piece, std::string* bytes) {
  static const auto* const byte_of = [] {
    auto* map = new absl::flat_hash_map<CodePoint, char>();
    for (int byte = 0; byte < 256; ++byte) {
      const std::string character = ByteCharacter(static_cast<uint8_t>(byte));
      int64_t at = 0;
      map->emplace(NextCodePoint(character, &at), static_cast<char>(byte));
    }
    return map;
  }();
  bytes->clear();
  for (int64_t at = 0; at < static_cast<int64_t>(piece.size());) {
    const auto byte = byte_of->find(NextCodePoint(piece, &at));
    if (byte == byte_of->end()) {
      return false;
    }
    bytes->push_back(byte->second);
  }
  return true;
}

}  // namespace etc::huggingface
