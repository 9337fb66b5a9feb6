#ifndef ETC_ETC_WEIGHTS_WORDPIECE_OPTIONS_H_
#define ETC_ETC_WEIGHTS_WORDPIECE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace etc {

// A piece that is found in a text as a whole, before the text is split into
// words ("[ENT0]"). The fields are those of HuggingFace's files.
struct AddedToken {
  int64_t id = 0;
  std::string content;
  // Matches only where no letter, digit, mark or connector is next to it.
  bool single_word = false;
  // Searches the text after cleaning, lower-casing and so on, for the content
  // treated likewise.
  bool normalized = false;
  // White space beside the token belongs to it: no effect on pieces.
  bool lstrip = false;
  bool rstrip = false;
  bool special = false;
  // Has an id, but is no piece of the vocabulary that words are cut into.
  bool outside = false;

  bool operator==(const AddedToken&) const = default;
};

// Options of BERT's tokenizer.
struct WordPieceOptions {
  // Folds upper case to lower case.
  bool lower_case = true;
  // Drops accents: category Mn after NFD. Absent: as lower_case.
  std::optional<bool> strip_accents = std::nullopt;
  // Makes each CJK ideograph a word.
  bool tokenize_chinese_chars = true;
  // Deletes control characters.
  bool clean_text = true;
  // A word of more code points than this becomes one [UNK]: 200 in ETC and
  // Google's BERT, 100 in HuggingFace.
  int64_t max_word_code_points = 200;
  std::vector<AddedToken> added_tokens = {};

  bool operator==(const WordPieceOptions&) const = default;
};

// JSON of the options beside lower_case that differ from the defaults, by the
// names of HuggingFace's tokenizer_config.json; "{}" if none does.
std::string WordPieceOptionsToJson(const WordPieceOptions& options);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_WORDPIECE_OPTIONS_H_
