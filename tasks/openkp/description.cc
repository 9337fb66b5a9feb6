#include "tasks/inputs/description.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "tasks/openkp/task.h"

namespace etc {
namespace {

// "(44, 78) 728x45 font 20 block heading"
std::string Layout(const OpenkpNode& node) {
  return absl::StrCat(
      "(", node.x, ", ", node.y, ") ", node.width, "x", node.height, " font ",
      node.font_size, node.is_block ? " block" : "",
      node.is_inline ? " inline" : "", node.in_heading ? " heading" : "",
      node.is_leaf ? " leaf" : "", node.is_bold ? " bold" : "");
}

std::string PhraseOf(const OpenkpExample& example, PhrasePosition position) {
  const std::vector<absl::string_view> words = OpenkpWords(example.text);
  const auto size = static_cast<int64_t>(words.size());
  const int64_t begin = std::min(position.start, size);
  const int64_t end = std::min(position.start + position.length, size);
  return absl::StrCat(
      "\"", absl::StrJoin(words.begin() + begin, words.begin() + end, " "),
      "\" at words ", position.start, "-",
      position.start + position.length - 1);
}

// Describes the gold phrases of a document and their positions.
std::string KeyPhrases(const OpenkpExample& example) {
  std::vector<std::string> places;
  for (const PhrasePosition& label : example.labels) {
    places.push_back(PhraseOf(example, label));
  }
  return absl::StrCat(absl::StrJoin(example.references->evaluator, ", "),
                      "\nin the input: ",
                      places.empty() ? "none" : absl::StrJoin(places, ", "));
}

// Returns true if long token `i` belongs to global token `g` and to a key
// phrase.
bool IsOfKeyPhrase(const OpenkpExample& example, size_t i, int32_t g) {
  return i < example.long_words.size() && example.pattern.sentence[i] == g &&
         std::any_of(
             example.labels.begin(), example.labels.end(),
             [word = example.long_words[i]](const PhrasePosition& label) {
               return word >= label.start && word < label.start + label.length;
             });
}

// Long token `i`, the runs of those of key phrases in brackets.
std::string PieceOf(const OpenkpExample& example, const Tokenizer& tokenizer,
                    size_t i) {
  const int32_t g = example.pattern.sentence[i];
  const bool is_key = IsOfKeyPhrase(example, i, g);
  const bool begins = is_key && (i == 0 || !IsOfKeyPhrase(example, i - 1, g));
  const bool ends = is_key && !IsOfKeyPhrase(example, i + 1, g);
  return absl::StrCat(begins ? "[ " : "",
                      tokenizer.Piece(example.long_token_ids[i]),
                      ends ? " ]" : "");
}

}  // namespace

std::string Openkp::Describe(const Example& example) const {
  const auto layouts = [&](size_t g) {
    // Records need no layout where the model does not read it.
    if (!options().has_visual_features() || example.elements.empty()) {
      return std::string();
    }
    const OpenkpElement& element = example.elements[g];
    return absl::StrCat("        ", Layout(element.node), "; parent ",
                        Layout(element.parent), "\n");
  };
  const auto token = [&](size_t i) { return PieceOf(example, tokenizer(), i); };
  const auto truncation = [](int64_t words) {
    return absl::StrCat("the last ", Counted(words, "word"), " truncated");
  };
  return DescribeExample(
      example,
      {.title = absl::StrCat("document ", example.record_id),
       .answer_name = "key phrases",
       .answer = example.has_answer ? KeyPhrases(example) : "",
       .size = absl::StrCat(
           Counted(example.num_words, "word"), ", ", DescribeLengths(example),
           "; ", DescribeTruncation(example.dropped_words, truncation))},
      {.tokens_heading = "tokens ([ key phrase ])",
       .token = token,
       .details = layouts});
}

}  // namespace etc
