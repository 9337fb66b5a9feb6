#ifndef ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_
#define ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// The text of a SentencePiece piece in RoBERTa's byte-level vocabulary (
// doc/formats.md 4.7): U+2581 becomes a space, and then each byte of UTF-8 that
// is no printable Latin-1 character a code point from U+0100 on.
std::string RobertaSpelling(absl::string_view piece);

// The character that stands for a byte in the byte-level vocabularies of GPT-2
// and RoBERTa: the byte's own in printable Latin-1, else one from U+0100 on.
const std::string& ByteCharacter(uint8_t byte);

// Returns, for each piece of a SentencePiece vocabulary, the row of RoBERTa's
// token table with the same text, or -1. `tokenizer` is RoBERTa's
// tokenizer.json, or the equivalent of its vocab.json (byte_level_files.h), and
// `source` the path, for messages.
//   kInvalidArgument  model.vocab is no object of whole numbers in
//                     [0, 2^31), or added_tokens have no such ids
absl::StatusOr<std::vector<int64_t>> RobertaRows(
    const nlohmann::json& tokenizer, const std::string& source,
    const std::vector<std::string>& pieces);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_ROBERTA_VOCABULARY_H_
