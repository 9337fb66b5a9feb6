#ifndef ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_
#define ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// The text of a SentencePiece piece in RoBERTa's byte-level vocabulary (
// doc/formats.md 4.7): U+2581 becomes a space, and then each byte of UTF-8 that
// is no printable Latin-1 character a code point from U+0100 on.
std::string RobertaSpelling(absl::string_view piece);

// The character that stands for a byte in the byte-level vocabularies of GPT-2
// and RoBERTa: the byte's own in printable Latin-1, else one from U+0100 on.
const std::string& ByteCharacter(uint8_t byte);

// Returns, for each piece of a SentencePiece vocabulary, the row of RoBERTa's
// token table with the same text, or -1. `vocab_json` is the path of RoBERTa's
// vocab.json, which maps texts to rows.
//   kInvalidArgument  it is no object of whole numbers in [0, 2^31)
absl::StatusOr<std::vector<int64_t>> RobertaRows(
    const std::string& vocab_json, const std::vector<std::string>& pieces);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_
