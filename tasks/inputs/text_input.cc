#include "tasks/inputs/text_input.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/inputs/example_writer.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

// The texts one behind the other, with the marks.
class TextWriter {
 public:
  explicit TextWriter(int32_t cls) { Add(cls, 0, -1); }

  void AddText(const TextPieces& text, const std::vector<int32_t>& marks,
               int32_t type) {
    for (size_t i = 0; i < text.ids.size(); ++i) {
      Add(text.ids[i], type,
          i < text.sentences.size() ? sentences_ + text.sentences[i] : -1);
    }
    for (const int32_t mark : marks) {
      Add(mark, type, -1);
    }
    if (!text.sentences.empty()) {
      sentences_ += text.sentences.back() + 1;
    }
  }

  void WriteForBert(const InputOptions& input, Example* example) && {
    example->pattern = UnrestrictedPattern(
        /*long_length=*/0, static_cast<int64_t>(ids_.size()),
        input.pattern.local_radius, input.pattern.relative_pos_max_distance);
    example->global_token_ids = std::move(ids_);
    if (!input.has_second_type) {
      types_.assign(types_.size(), 0);
    }
    example->global_type_ids = std::move(types_);
  }

  void WriteForEtc(const InputOptions& input, Example* example) && {
    example->global_token_ids = {kWholeTextToken};
    example->global_token_ids.resize(1 + static_cast<size_t>(sentences_),
                                     kSentenceOfTextToken);
    // Without sentences each token belongs to the whole text alone.
    std::vector<int32_t> owners;
    owners.reserve(ids_.size());
    for (const int32_t sentence : owners_) {
      owners.push_back(sentence + 1);
    }
    const size_t tokens = ids_.size();
    example->long_token_ids = std::move(ids_);
    SetTypesAndPattern(owners, input.pattern, example);
    for (size_t i = 0; i < tokens; ++i) {
      example->long_type_ids[i] = kPlainLongType + types_[i];
    }
    example->pattern.paragraph.assign(tokens, 0);
  }

 private:
  void Add(int32_t id, int32_t type, int32_t sentence) {
    ids_.push_back(id);
    types_.push_back(type);
    owners_.push_back(sentence);
  }

  std::vector<int32_t> ids_;
  std::vector<int32_t> types_;   // 0 of a, 1 of b
  std::vector<int32_t> owners_;  // sentences, -1 for none
  int32_t sentences_ = 0;
};

}  // namespace

absl::Status FindTextMarks(const Tokenizer& tokenizer, TextMarks* marks) {
  const SpecialIds ids = FindSpecialIds(tokenizer);
  *marks = {.cls = ids.cls, .separator = ids.separator, .between = ids.between};
  if (ids.cls >= 0) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "the vocabulary should have the pieces \"[CLS]\" and \"[SEP]\", or "
      "\"<unused_63>\" and \"<unused_2>\", or \"<s>\" and \"</s>\", but has "
      "none of these pairs");
}

int64_t NumMarksBetween(const TextMarks& marks) {
  return marks.between.has_value() ? static_cast<int64_t>(marks.between->size())
                                   : 1;
}

int64_t NumMarks(const TextMarks& marks, bool two_texts) {
  return 2 + (two_texts ? NumMarksBetween(marks) : 0);
}

std::vector<Token> EncodeBehindBlank(absl::string_view part,
                                     const Tokenizer& tokenizer) {
  if (!tokenizer.begins_words_with_blanks() || absl::StartsWith(part, " ")) {
    return tokenizer.Encode(part);
  }
  std::vector<Token> pieces = tokenizer.Encode(absl::StrCat(" ", part));
  if (pieces.empty() || pieces.back().end <= 1) {
    return {};  // nothing but the blank
  }
  for (Token& piece : pieces) {
    piece.begin = std::max<int64_t>(piece.begin - 1, 0);
    piece.end = std::max<int64_t>(piece.end - 1, 0);
  }
  return pieces;
}

void AppendText(absl::string_view text, const Tokenizer& tokenizer,
                const InputOptions& input, SplitText* split) {
  std::vector<Token>& tokens = split->tokens;
  if (!input.has_long_tokens) {
    const std::vector<Token> pieces = tokenizer.Encode(text);
    tokens.insert(tokens.end(), pieces.begin(), pieces.end());
    return;
  }
  for (const auto& [begin, end] : input.split_sentences(text)) {
    const auto first = static_cast<size_t>(begin);
    const absl::string_view part =
        text.substr(first, static_cast<size_t>(end - begin));
    const std::vector<Token> pieces = first > 0 && text[first - 1] == ' '
                                          ? EncodeBehindBlank(part, tokenizer)
                                          : tokenizer.Encode(part);
    if (pieces.empty()) {
      continue;
    }
    std::vector<int32_t>& sentences = split->sentences;
    const int32_t sentence = sentences.empty() ? 0 : sentences.back() + 1;
    for (const Token& piece : pieces) {
      tokens.push_back({piece.id, begin + piece.begin, begin + piece.end});
    }
    sentences.resize(tokens.size(), sentence);
  }
}

TextPieces WithinRoom(const SplitText& split, int64_t* room,
                      int64_t* dropped_sentences) {
  TextPieces text;
  text.ids.reserve(split.tokens.size());
  for (const Token& token : split.tokens) {
    text.ids.push_back(token.id);
  }
  const auto begin = split.sentences.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(
                               split.sentences.size(), split.tokens.size()));
  const int64_t all = begin == end ? 0 : *(end - 1) + 1;
  const int64_t kept = std::min(all, *room);
  text.sentences.assign(begin, std::lower_bound(begin, end, kept));
  *room -= kept;
  *dropped_sentences += all - kept;
  return text;
}

std::vector<GlobalTokenName> GlobalTokensOfTexts(bool has_long_tokens) {
  std::vector<GlobalTokenName> names;
  if (has_long_tokens) {
    names = {{"whole text", kWholeTextToken},
             {"sentence", kSentenceOfTextToken}};
  }
  return names;
}

TableSizes TablesOfTexts(const InputOptions& input) {
  return {.tokens = kSentenceOfTextToken + 1,
          .token_names = "the global tokens 1 and 2",
          .types = input.has_long_tokens   ? kSecondTextType + 1
                   : input.has_second_type ? 2
                                           : 1};
}

NeededLengths LengthsOfTexts(const InputOptions& input,
                             const TextMarks& marks) {
  const int64_t needed = std::max<int64_t>(NumMarks(marks, true), 3);
  const char* const use = needed == 3 ? "[CLS] and two [SEP]"
                                      : "the special pieces around two texts";
  return input.has_long_tokens
             ? NeededLengths{.long_tokens = needed,
                             .long_use = use,
                             .global_tokens = 1,
                             .global_use = "the token of the whole text"}
             : NeededLengths{.global_tokens = needed, .global_use = use};
}

int64_t RoomForPieces(const InputOptions& input, const TextMarks& marks,
                      bool two_texts) {
  return (input.has_long_tokens ? input.max_long_length
                                : input.max_global_length) -
         NumMarks(marks, two_texts);
}

int64_t RoomForSentences(const InputOptions& input) {
  return input.has_long_tokens ? input.max_global_length - 1 : 0;
}

int64_t CutLongerText(int64_t room, std::vector<Token>* a,
                      std::vector<Token>* b) {
  int64_t cut = 0;
  while (static_cast<int64_t>(a->size() + b->size()) > room) {
    (a->size() > b->size() ? a : b)->pop_back();
    ++cut;
  }
  return cut;
}

void WriteTexts(const TextPieces& a, const std::optional<TextPieces>& b,
                const TextMarks& marks, const InputOptions& input,
                Example* example) {
  TextWriter writer(marks.cls);
  const std::vector<int32_t> end = {marks.separator};
  writer.AddText(a, b.has_value() ? marks.between.value_or(end) : end, 0);
  if (b.has_value()) {
    writer.AddText(*b, end, 1);
  }
  if (input.has_long_tokens) {
    std::move(writer).WriteForEtc(input, example);
  } else {
    std::move(writer).WriteForBert(input, example);
  }
}

const std::vector<int32_t>& TextTokens(const Example& example,
                                       const InputOptions& input) {
  return input.has_long_tokens ? example.long_token_ids
                               : example.global_token_ids;
}

}  // namespace etc
