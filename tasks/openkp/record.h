#ifndef ETC_TASKS_OPENKP_RECORD_H_
#define ETC_TASKS_OPENKP_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record, as programs give it (tasks/inference/predictor.h). A prediction is
// a std::vector<std::string>, the phrases, the best first.

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
  OpenkpNode node = {};
  OpenkpNode parent = {};
};

// One document of OpenKPTrain.jsonl and the like (doc/openkp.md 1). A word is
// the text between two blanks (U+0020); it may be empty.
struct OpenkpRecord {
  std::string id = {};  // the url
  // All words, a blank between any two.
  std::string text = {};
  // Elements, at least one; together they cover all words, in order. One may
  // have none. With openkp.fixed_block_length they may be missing.
  std::vector<OpenkpElement> elements = {};
  // Key phrases as in the file, each a list of words; absent if the record has
  // no field "KeyPhrases", as in data to predict for.
  std::optional<std::vector<std::vector<std::string>>> key_phrases =
      std::nullopt;
  // True if a position or size was written as a whole number (44 instead of
  // 44.0), which the official reader refuses (doc/openkp.md 3.1).
  bool has_integer_coordinates = false;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts =
      std::make_tuple(&OpenkpRecord::id, &OpenkpRecord::text);
};

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_RECORD_H_
