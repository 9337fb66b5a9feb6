#include "tasks/pretrain/examples/example_text.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "tasks/inputs/description.h"

namespace etc {
namespace {

// Each token as a word of text; masked ones with their label.
std::vector<std::string> TokenTexts(const PretrainExample& example,
                                    const std::vector<int32_t>& ids,
                                    const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const int32_t id : ids) {
    texts.push_back(tokenizer.Piece(id));
  }
  for (size_t m = 0; m < example.masked_positions.size(); ++m) {
    std::string& text =
        texts.at(static_cast<size_t>(example.masked_positions[m]));
    text = absl::StrCat("{", text, " <- ",
                        tokenizer.Piece(example.masked_labels[m]), "}");
  }
  return texts;
}

// The tokens of each sentence, joined.
std::vector<std::string> SentenceTexts(const std::vector<std::string>& tokens,
                                       const AttentionPattern& pattern) {
  std::vector<std::string> sentences(
      static_cast<size_t>(pattern.global_length()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    absl::StrAppend(&sentences[static_cast<size_t>(pattern.sentence[i])], " ",
                    tokens[i]);
  }
  return sentences;
}

// The hidden sentences as they were, by global token; others are empty.
std::vector<std::string> HiddenTexts(const PretrainExample& example,
                                     const Tokenizer& tokenizer) {
  std::vector<std::string> hidden(example.global_token_ids.size());
  if (example.targets != nullptr) {
    const Example& targets = *example.targets;
    const std::vector<std::string> sentences = SentenceTexts(
        TokenTexts(PretrainExample(), targets.long_token_ids, tokenizer),
        targets.pattern);
    for (size_t h = 0; h < example.hidden_globals.size(); ++h) {
      hidden[static_cast<size_t>(example.hidden_globals[h])] = sentences[h];
    }
  }
  return hidden;
}

std::string DescribeCountOfMasks(const PretrainExample& example) {
  return absl::StrCat(
      Counted(static_cast<int64_t>(example.masked_positions.size()), "token"),
      " masked");
}

std::string DescribePacked(const PretrainExample& example,
                           const Tokenizer& tokenizer) {
  const std::vector<int32_t>& windows = example.pattern.global_example;
  const std::vector<std::string> sentences = SentenceTexts(
      TokenTexts(example, example.long_token_ids, tokenizer), example.pattern);
  const std::vector<std::string> hidden = HiddenTexts(example, tokenizer);
  std::string text;
  int64_t num_windows = 0;
  for (size_t g = 0; g < sentences.size(); ++g) {
    if (g == 0 || windows[g] != windows[g - 1]) {
      absl::StrAppend(&text, "window ", num_windows++, "\n");
    }
    absl::StrAppend(
        &text, "  ", g, " ",
        hidden[g].empty() ? sentences[g] : absl::StrCat(" hidden:", hidden[g]),
        "\n");
  }
  return absl::StrCat(
      example.record_id, ": ", DescribeLengths(example), " in ",
      Counted(num_windows, "window"), "; ", DescribeCountOfMasks(example), ", ",
      Counted(static_cast<int64_t>(example.hidden_globals.size()), "sentence"),
      " hidden\nmasks: ", DescribeMasks(example.pattern), "\n", text);
}

std::string DescribePair(const PretrainExample& example,
                         const Tokenizer& tokenizer) {
  const std::vector<std::string> tokens =
      TokenTexts(example, example.global_token_ids, tokenizer);
  size_t b = 0;
  while (b < tokens.size() && example.global_type_ids[b] == 0) {
    ++b;
  }
  const auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(b);
  std::string next;
  if (example.next_sentence >= 0) {
    next = example.next_sentence == 1 ? "; B is random" : "; B follows A";
  }
  std::string text = absl::StrCat(
      example.record_id, ": ", Counted(example.global_length(), "token"), "; ",
      DescribeCountOfMasks(example), next, "\n  A  ",
      absl::StrJoin(tokens.begin(), middle, " "), "\n");
  if (middle != tokens.end()) {
    absl::StrAppend(&text, "  B  ", absl::StrJoin(middle, tokens.end(), " "),
                    "\n");
  }
  return text;
}

}  // namespace

std::string DescribePretrainExample(const PretrainExample& example,
                                    const Tokenizer& tokenizer) {
  return example.long_token_ids.empty() ? DescribePair(example, tokenizer)
                                        : DescribePacked(example, tokenizer);
}

}  // namespace etc
