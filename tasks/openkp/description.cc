#include "tasks/openkp/description.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "tasks/data/pattern_text.h"

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

// What of a document is gold, and where it stands.
std::string KeyPhrases(const OpenkpExample& example) {
  if (!example.references.has_value()) {
    return "not given";
  }
  std::vector<std::string> places;
  for (const PhrasePosition& label : example.labels) {
    places.push_back(PhraseOf(example, label));
  }
  return absl::StrCat(
      absl::StrJoin(example.references->evaluator, ", "),
      "\nin the input: ", places.empty() ? "none" : absl::StrJoin(places, ", "),
      example.left_out.empty()
          ? ""
          : absl::StrCat("; training leaves it out: ", example.left_out));
}

std::string Heading(const OpenkpExample& example) {
  const std::string dropped =
      example.dropped_words == 0
          ? "nothing truncated"
          : absl::StrCat("the last ", Counted(example.dropped_words, "word"),
                         " truncated");
  return absl::StrCat("document ", example.record_id,
                      "\nkey phrases: ", KeyPhrases(example), "\n",
                      Counted(example.num_words, "word"), ", ",
                      Counted(example.long_length(), "long token"), ", ",
                      Counted(example.global_length(), "global token"), "; ",
                      dropped, "\n", DescribeMasks(example.pattern), "\n");
}

bool IsOfKeyPhrase(const OpenkpExample& example, int32_t word) {
  return std::any_of(example.labels.begin(), example.labels.end(),
                     [word](const PhrasePosition& label) {
                       return word >= label.start &&
                              word < label.start + label.length;
                     });
}

std::string PiecesOf(const OpenkpExample& example, const Tokenizer& tokenizer,
                     int32_t g) {
  std::string text;
  bool is_open = false;
  for (size_t i = 0; i < example.long_token_ids.size(); ++i) {
    if (example.pattern.sentence[i] != g) {
      continue;
    }
    const bool is_key = IsOfKeyPhrase(example, example.long_words[i]);
    absl::StrAppend(&text, is_open && !is_key ? " ]" : "",
                    is_key && !is_open ? " [" : "", " ",
                    tokenizer.Piece(example.long_token_ids[i]));
    is_open = is_key;
  }
  return absl::StrCat(text, is_open ? " ]" : "");
}

}  // namespace

std::string DescribeOpenkpExample(const OpenkpExample& example,
                                  const Tokenizer& tokenizer) {
  std::string text = Heading(example);
  absl::StrAppendFormat(&text, "\n%6s  %-11s  %-11s  %s\n", "global", "owns",
                        "sees", "tokens ([ key phrase ])");
  for (int32_t g = 0; g < static_cast<int32_t>(example.global_length()); ++g) {
    const std::string line = absl::StrFormat(
        "%6d  %-11s  %-11s %s", g, LongTokensOwnedBy(example.pattern, g),
        LongTokensSeenBy(example.pattern, g), PiecesOf(example, tokenizer, g));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
    if (!example.elements.empty()) {
      const OpenkpElement& element = example.elements[static_cast<size_t>(g)];
      absl::StrAppend(&text, "        ", Layout(element.node), "; parent ",
                      Layout(element.parent), "\n");
    }
  }
  return text;
}

}  // namespace etc
