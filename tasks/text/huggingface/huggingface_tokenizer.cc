#include "tasks/text/huggingface/huggingface_tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/text_marks.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/added_vocabulary.h"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/huggingface/mapped_text.h"
#include "tasks/text/huggingface/model.h"
#include "tasks/text/huggingface/normalizers.h"
#include "tasks/text/huggingface/post_processor.h"
#include "tasks/text/huggingface/pre_tokenizers.h"
#include "tasks/text/huggingface/vocabulary.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

// All parts of a tokenizer.json.
struct Parts {
  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  Vocabulary vocabulary;
  std::unique_ptr<const Model> model;
  std::vector<AddedToken> added_tokens;
  TextMarkIds marks;
};

MappedText WellFormed(absl::string_view text) {
  WellFormedText kept = WithoutIllFormedUtf8(text);
  return {std::move(kept.text), std::move(kept.sources), /*begin=*/0};
}

class HuggingFaceTokenizer : public Tokenizer {
 public:
  explicit HuggingFaceTokenizer(Parts parts)
      : parts_(std::move(parts)),
        added_(parts_.added_tokens, parts_.normalizers) {
    word_start_ = parts_.pre_tokenizers.is_byte_level
                      ? ByteCharacter(' ')
                      : parts_.pre_tokenizers.word_mark;
    if (word_start_.empty() && parts_.normalizers.marks_words) {
      word_start_ = "\u2581";
    }
    const std::string mark =
        parts_.pre_tokenizers.is_byte_level ? " " : word_start_;
    begins_words_with_blanks_ = !mark.empty() &&
                                !absl::StartsWith(FirstWord("a"), mark) &&
                                absl::StartsWith(FirstWord(" a"), mark);
  }

  std::vector<Token> Encode(absl::string_view text) const override {
    if (text.size() > std::numeric_limits<int32_t>::max()) {
      throw std::length_error(absl::StrCat(
          "a text of ", text.size(), " bytes is too long for a tokenizer"));
    }
    std::vector<Token> tokens;
    tokens.reserve(text.size() / 4 + 1);
    const MappedText whole = CountIllFormedUtf8(text) == 0
                                 ? MappedText(text, /*begin=*/0)
                                 : WellFormed(text);
    added_.raw().Split(
        whole.text(),
        [&](ByteRange part) {
          // A part of an unchanged text is not copied.
          MappedText section = whole.Slice(part);
          parts_.normalizers.Apply(&section);
          EncodeNormalized(std::move(section), text, &tokens);
        },
        [&](int32_t id, ByteRange place) {
          Append(id, whole.Source(place.begin, place.end), text, &tokens);
        });
    return tokens;
  }

  int64_t vocab_size() const override { return parts_.vocabulary.size(); }
  std::string Piece(int32_t id) const override {
    if (!parts_.vocabulary.Has(id)) {
      throw std::out_of_range(absl::StrCat("id ", id, " should be in [0, ",
                                           vocab_size(), ") and have a piece"));
    }
    return parts_.vocabulary.Piece(id);
  }
  int32_t Id(absl::string_view piece) const override {
    return parts_.vocabulary.Id(piece);
  }
  bool lower_cases() const override { return parts_.normalizers.lower_cases; }
  bool ContinuesWord(int32_t id) const override {
    const std::string continuation = parts_.model->continuation();
    const absl::string_view piece = parts_.vocabulary.Piece(id);
    return continuation.empty()
               ? !word_start_.empty() && !absl::StartsWith(piece, word_start_)
               : absl::StartsWith(piece, continuation);
  }
  bool begins_words_with_blanks() const override {
    return begins_words_with_blanks_;
  }
  TextMarkIds marks() const override { return parts_.marks; }

 private:
  // The first word of a text without added tokens, as the model gets it.
  std::string FirstWord(absl::string_view text) const {
    MappedText section(text, /*begin=*/0);
    parts_.normalizers.Apply(&section);
    const int64_t size = section.size();
    if (size == 0) {
      return "";
    }
    SplitText split = {.text = std::move(section),
                       .words = {{.begin = 0, .end = size}}};
    for (const auto& step : parts_.pre_tokenizers.steps) {
      step->Apply(&split);
    }
    if (split.words.empty()) {
      return "";
    }
    const ByteRange word = split.words.front();
    return std::string(
        split.text.text().substr(static_cast<size_t>(word.begin),
                                 static_cast<size_t>(word.end - word.begin)));
  }

  static void Append(int32_t id, ByteRange source, absl::string_view text,
                     std::vector<Token>* tokens) {
    source = WithoutWhiteSpace(text, source);
    tokens->push_back({id, source.begin, source.end});
  }

  void EncodeNormalized(MappedText section, absl::string_view text,
                        std::vector<Token>* tokens) const {
    if (added_.normalized().empty()) {
      return EncodeSection(std::move(section), text, tokens);
    }
    added_.normalized().Split(
        section.text(),
        [&](ByteRange part) {
          EncodeSection(section.Slice(part), text, tokens);
        },
        [&](int32_t id, ByteRange place) {
          Append(id, section.Source(place.begin, place.end), text, tokens);
        });
  }

  // Text without added tokens.
  void EncodeSection(MappedText section, absl::string_view text,
                     std::vector<Token>* tokens) const {
    const int64_t size = section.size();
    if (size == 0) {
      return;
    }
    SplitText split = {.text = std::move(section),
                       .words = {{.begin = 0, .end = size}}};
    for (const auto& step : parts_.pre_tokenizers.steps) {
      step->Apply(&split);
    }
    const absl::string_view words = split.text.text();
    std::vector<WordPart> parts;
    for (const ByteRange word : split.words) {
      parts.clear();
      parts_.model->Encode(
          words.substr(static_cast<size_t>(word.begin),
                       static_cast<size_t>(word.end - word.begin)),
          &parts);
      for (const WordPart& part : parts) {
        Append(
            part.id,
            split.text.Source(word.begin + part.begin, word.begin + part.end),
            text, tokens);
      }
    }
  }

  const Parts parts_;
  const AddedVocabulary added_;
  // The beginning of pieces that begin a word; empty if there is none.
  std::string word_start_;
  bool begins_words_with_blanks_ = false;
};

// Marks by their usual names, where the post-processor names none.
TextMarkIds MarksByName(const Vocabulary& vocabulary, bool is_byte_level) {
  const std::optional<TextMarkNames> names = UsualTextMarks(
      [&vocabulary](const char* piece) { return vocabulary.Id(piece) >= 0; },
      is_byte_level);
  TextMarkIds marks;
  if (names.has_value()) {
    marks.first = vocabulary.Id(names->first);
    marks.last = vocabulary.Id(names->last);
    marks.between.emplace(names->num_between, marks.last);
  }
  return marks;
}

absl::StatusOr<Parts> ReadParts(const json& contents,
                                const std::string& source) {
  JsonObjectReader reader(contents, source);
  const json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  Parts parts;
  if (const json* normalizer = reader.Given("normalizer")) {
    ETC_ASSIGN_OR_RETURN(
        parts.normalizers,
        ReadNormalizers(*normalizer, reader.Where("normalizer")));
  }
  if (const json* splitter = reader.Given("pre_tokenizer")) {
    ETC_ASSIGN_OR_RETURN(
        parts.pre_tokenizers,
        ReadPreTokenizers(*splitter, reader.Where("pre_tokenizer")));
  }
  ETC_ASSIGN_OR_RETURN(ReadModelResult read,
                       ReadModel(*model, reader.Where("model"),
                                 parts.pre_tokenizers.is_byte_level));
  parts.vocabulary = std::move(read.vocabulary);
  parts.model = std::move(read.model);
  if (const json* added = reader.Given("added_tokens")) {
    ETC_ASSIGN_OR_RETURN(parts.added_tokens,
                         ReadAddedTokens(*added, reader.Where("added_tokens"),
                                         &parts.vocabulary));
  }
  if (const json* processor = reader.Given("post_processor")) {
    ETC_ASSIGN_OR_RETURN(
        parts.marks,
        ReadPostProcessor(*processor, reader.Where("post_processor"),
                          parts.vocabulary));
  }
  if (parts.marks.first < 0 || parts.marks.last < 0) {
    parts.marks =
        MarksByName(parts.vocabulary, parts.pre_tokenizers.is_byte_level);
  }
  return parts;
}

}  // namespace
}  // namespace etc::huggingface

namespace etc {

absl::StatusOr<std::unique_ptr<Tokenizer>> ParseHuggingFaceTokenizer(
    absl::string_view contents, const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object,
                       ParseJson(contents, source));
  ETC_ASSIGN_OR_RETURN(huggingface::Parts parts,
                       huggingface::ReadParts(object, source));
  // Added tokens are normalized.
  return NamingOutOfMemory(
      [&source] { return absl::StrCat("reading ", source); },
      [&parts]() -> absl::StatusOr<std::unique_ptr<Tokenizer>> {
        return std::make_unique<huggingface::HuggingFaceTokenizer>(
            std::move(parts));
      });
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadHuggingFaceTokenizer(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::string contents,
                       ReadVocabulary("huggingface", path));
  return ParseHuggingFaceTokenizer(contents, path);
}

}  // namespace etc
