#ifndef ETC_TASKS_OPENKP_RAW_H_
#define ETC_TASKS_OPENKP_RAW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// Layout of a node of the page by a browser (doc/openkp.md 1). Pixels.
struct OpenkpNode {
  double x = 0;
  double width = 0;
  double y = 0;
  double height = 0;
  bool is_block = false;
  bool is_inline = false;  // a `select` or `button`
  bool in_heading = false;
  bool is_leaf = false;  // a block without blocks in it
  double font_size = 0;
  bool is_bold = false;
};

// A piece of the page: words [first_word, end_word) of the document.
struct OpenkpElement {
  int64_t first_word = 0;
  int64_t end_word = 0;
  OpenkpNode node;
  OpenkpNode parent;
};

// One document of OpenKPTrain.jsonl and the like (doc/openkp.md 1). A word is
// the text between two blanks (U+0020); it may be empty.
struct OpenkpRecord {
  std::string id;  // the url
  // All words, a blank between any two.
  std::string text;
  // Elements, at least one; together they cover all words, in order. One may
  // have none.
  std::vector<OpenkpElement> elements;
  // Key phrases as in the file, each a list of words; absent if the record has
  // no field "KeyPhrases", as in data to predict for.
  std::optional<std::vector<std::vector<std::string>>> key_phrases;
  // True if a position or size was written as a whole number (44 instead of
  // 44.0), which the official reader refuses (doc/openkp.md 3.1).
  bool has_integer_coordinates = false;
};

// The words of a text: always at least one.
std::vector<absl::string_view> OpenkpWords(absl::string_view text);

// A document and its key phrases according to somebody, as lists of words.
struct OpenkpPhraseLists {
  std::string url;
  std::vector<std::vector<std::string>> phrases;
};

// Reads a line of a prediction file, or `url` and "KeyPhrases" of a data
// file's.
//   kInvalidArgument  not JSON, no url, phrases that are not lists of strings:
//                     the official evaluator would take a plain string for a
//                     list of letters (doc/openkp.md 8.2)
absl::StatusOr<OpenkpPhraseLists> ParseOpenkpPhraseLists(
    absl::string_view json, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_RAW_H_
