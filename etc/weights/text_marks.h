#ifndef ETC_ETC_WEIGHTS_TEXT_MARKS_H_
#define ETC_ETC_WEIGHTS_TEXT_MARKS_H_

#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// The special pieces around texts, by name.
struct TextMarkNames {
  const char* first = nullptr;
  const char* last = nullptr;
  // Pieces `last` between two texts.
  size_t num_between = 1;
};

// The pieces around texts where a tokenizer.json names none: the first pair of
// [CLS] and [SEP], <s> and </s>, <unused_63> and <unused_2> that the vocabulary
// has, and between two texts one `last`, of byte-level BPE with <s> and </s>
// RoBERTa's two. Absent if it has none of these pairs.
std::optional<TextMarkNames> UsualTextMarks(
    absl::FunctionRef<bool(const char*)> has_piece, bool is_byte_level);

// Returns true if the pre_tokenizer of a tokenizer.json, or a part of a
// Sequence of them, is ByteLevel.
bool IsByteLevel(const nlohmann::json& splitter);

// Writes into the post-processor of a tokenizer.json the pieces that tasks put
// around texts although the file does not: UsualTextMarks where it has no
// special pieces, and one piece between two texts where its template has pieces
// around one text alone. All else stays as it is. Returns true if the file was
// changed; a mistake in it is left to the tokenizer that reads it.
bool WriteTextMarks(nlohmann::json* file);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TEXT_MARKS_H_
