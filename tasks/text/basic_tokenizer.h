#ifndef ETC_TASKS_TEXT_BASIC_TOKENIZER_H_
#define ETC_TASKS_TEXT_BASIC_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"

namespace etc {

struct BasicTokenizerOptions {
  // Folds upper case to lower case.
  bool lower_case = true;
  // Drops accents (category Mn after NFD). Absent: as lower_case.
  std::optional<bool> strip_accents = std::nullopt;
  // Makes each CJK ideograph a word.
  bool tokenize_chinese_chars = true;
  // Deletes controls and U+FFFD.
  bool clean_text = true;
};

// Returns the options of a tokenizer.
BasicTokenizerOptions BasicOptionsOf(const Tokenizer& tokenizer);

// One word of a text: a run without white space and punctuation, one
// punctuation character, or one CJK character.
class BasicWord {
 public:
  // `sources` has one range for each byte of `text`, or is empty when byte i of
  // `text` is byte `begin` + i of the original.
  BasicWord(absl::string_view text, int64_t begin,
            absl::Span<const ByteRange> sources)
      : text_(text), begin_(begin), sources_(sources) {}

  // The word as the vocabulary sees it: cleaned and, on demand, lower-cased.
  // Never empty, always valid UTF-8.
  absl::string_view text() const { return text_; }

  // The bytes of the original text that bytes [from, to) of text() stand for:
  // the smallest range that covers the sources of all its characters
  // (doc/formats.md 4.4). 0 <= from < to <= text().size().
  ByteRange Source(int64_t from, int64_t to) const;
  // Range of the whole word.
  ByteRange Source() const {
    return Source(0, static_cast<int64_t>(text_.size()));
  }

 private:
  absl::string_view text_;
  int64_t begin_;
  absl::Span<const ByteRange> sources_;
};

// Calls `visit` for each word of `text` in order: BERT's BasicTokenizer as ETC
// has it (doc/formats.md 4.2). The word is gone when `visit` returns.
//
// Controls, U+FFFD (with clean_text) and bytes that are not UTF-8 (by maximal
// subparts) are deleted, so that the letters around them are one word.
// Lower-casing is full, in the root locale, and knows the final sigma.
void VisitBasicWords(absl::string_view text,
                     const BasicTokenizerOptions& options,
                     absl::FunctionRef<void(const BasicWord&)> visit);

// A text as its words are made of it, before it is split: cleaned and folded,
// each white space a blank, blanks around each CJK ideograph.
struct NormalizedText {
  std::string text;
  // The bytes of the original that each byte of `text` stands for.
  std::vector<ByteRange> sources;
};
NormalizedText NormalizeText(absl::string_view text,
                             const BasicTokenizerOptions& options);

// Words on either side of one of these characters do not depend on the other
// side.
const CuttingPlaces& CuttingPlacesOfBasicWords();

// The texts of VisitBasicWords' words.
std::vector<std::string> BasicWords(absl::string_view text,
                                    const BasicTokenizerOptions& options = {});

}  // namespace etc

#endif  // ETC_TASKS_TEXT_BASIC_TOKENIZER_H_
