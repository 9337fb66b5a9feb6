#include "tasks/translation/vocabulary.h"

#include <algorithm>
#include <array>
#include <new>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/encoder_decoder/config.h"
#include "etc/weights/tokenizer_statements.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

constexpr std::array<absl::string_view, 4> kSpecials = {"<s>", "<pad>", "</s>",
                                                        "<unk>"};

class SentencePieceVocabulary final : public TranslationVocabulary {
 public:
  explicit SentencePieceVocabulary(SentencePieceModelPtr model)
      : model_(std::move(model)) {}

  std::vector<int32_t> Encode(absl::string_view line) const override {
    std::vector<int32_t> ids;
    const bool encoded = model_->Encode(
        line.data(), line.size(), &ids,
        [](void* context, const SentencePiece& piece) {
          static_cast<std::vector<int32_t>*>(context)->push_back(piece.id);
        });
    if (!encoded) {
      throw std::bad_alloc();
    }
    return ids;
  }

  std::string Decode(absl::Span<const int64_t> ids) const override {
    std::vector<int32_t> pieces;
    for (const int64_t id : ids) {
      if (id >= kUnknownId && id < size()) {
        pieces.push_back(static_cast<int32_t>(id));
      }
    }
    const absl::StatusOr<std::string> text = DecodePieces(*model_, pieces);
    if (!text.ok()) {
      throw std::bad_alloc();
    }
    // The bytes of byte_fallback include line ends.
    return absl::StrReplaceAll(*text, {{"\n", " "}, {"\r", " "}});
  }

  std::string TextOf(absl::string_view line) const override {
    return std::string(line);
  }
  bool is_tokenized() const override { return false; }

  int64_t size() const override { return model_->size(); }

  std::string Piece(int64_t id) const override {
    if (id < 0 || id >= size()) {
      return "";
    }
    size_t length = 0;
    const char* const text = model_->Piece(static_cast<int32_t>(id), &length);
    return std::string(text, length);
  }

 private:
  const SentencePieceModelPtr model_;
};

// The text of tokens, the parts of subword-nmt joined.
template <typename Tokens>
std::string JoinParts(const Tokens& tokens) {
  return std::string(absl::StripAsciiWhitespace(absl::StrReplaceAll(
      absl::StrCat(absl::StrJoin(tokens, " "), " "), {{"@@ ", ""}})));
}

class DictionaryVocabulary final : public TranslationVocabulary {
 public:
  explicit DictionaryVocabulary(std::vector<std::string> tokens)
      : tokens_(std::move(tokens)) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      ids_.emplace(tokens_[i], static_cast<int32_t>(i));
    }
  }

  std::vector<int32_t> Encode(absl::string_view line) const override {
    std::vector<int32_t> ids;
    for (const absl::string_view token : SplitWhiteSpace(line)) {
      const auto found = ids_.find(std::string(token));
      ids.push_back(found == ids_.end() ? static_cast<int32_t>(kUnknownId)
                                        : found->second);
    }
    return ids;
  }

  std::string Decode(absl::Span<const int64_t> ids) const override {
    std::vector<std::string> tokens;
    for (const int64_t id : ids) {
      if (id >= kUnknownId && id < size()) {
        tokens.push_back(Piece(id));
      }
    }
    return JoinParts(tokens);
  }

  std::string TextOf(absl::string_view line) const override {
    return JoinParts(SplitWhiteSpace(line));
  }
  bool is_tokenized() const override { return true; }

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }

  std::string Piece(int64_t id) const override {
    return id >= 0 && id < size() ? tokens_[static_cast<size_t>(id)] : "";
  }

 private:
  const std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
};

absl::StatusOr<std::vector<std::string>> ParseDictionary(
    const std::string& contents, const std::string& path) {
  std::vector<std::string> tokens(kSpecials.begin(), kSpecials.end());
  std::unordered_map<std::string, int64_t> lines;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty()) {
      continue;
    }
    const size_t blank = line.rfind(' ');
    int64_t count = 0;
    const auto wrong = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", what));
    };
    if (!IsUtf8(line)) {
      return wrong("a dictionary should be UTF-8, but is not");
    }
    if (blank == absl::string_view::npos || blank == 0 ||
        !absl::SimpleAtoi(line.substr(blank + 1), &count)) {
      return wrong(absl::StrCat(
          "a line of fairseq's dictionary should be \"<token> <count>\", but "
          "is ",
          QuotedName(line)));
    }
    std::string token(line.substr(0, blank));
    const auto [before, is_new] = lines.emplace(token, number);
    if (!is_new) {
      return wrong(absl::StrCat("the token ", QuotedName(token), " is in line ",
                                before->second, " already"));
    }
    if (std::find(kSpecials.begin(), kSpecials.end(), token) !=
        kSpecials.end()) {
      return wrong(absl::StrCat("the token ", QuotedName(token),
                                " has its id without a line: ids of lines "
                                "begin at 4"));
    }
    tokens.push_back(std::move(token));
  }
  if (tokens.size() == kSpecials.size()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no tokens"));
  }
  return tokens;
}

absl::Status CheckSpecials(const TranslationVocabulary& vocabulary,
                           const std::string& path) {
  for (size_t id = 0; id < kSpecials.size(); ++id) {
    const std::string piece = vocabulary.Piece(static_cast<int64_t>(id));
    if (piece != kSpecials[id]) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": piece ", id, " should be ", kSpecials[id], ", but is ",
          QuotedName(piece),
          "; train the model with bos_id 0, pad_id 1, eos_id 2 and unk_id 3"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void UnknownTokens::Add(absl::Span<const int32_t> ids) {
  tokens += std::ssize(ids) - std::count(ids.begin(), ids.end(), kEndId);
  unknown += std::count(ids.begin(), ids.end(), kUnknownId);
}

std::string UnknownTokens::Percent() const {
  return absl::StrFormat("%.1f %%",
                         100.0 * static_cast<double>(unknown) /
                             static_cast<double>(std::max<int64_t>(tokens, 1)));
}

std::string UnknownTokens::Warning(absl::string_view name) const {
  constexpr int64_t kFewest = 20;  // tokens for each unknown one
  return unknown * kFewest <= tokens
             ? ""
             : absl::StrCat(name, ": ", Percent(),
                            " of the tokens are unknown to the vocabulary, "
                            "which should be of this language; text for a "
                            "dictionary should be in its pieces");
}

absl::StatusOr<std::shared_ptr<const TranslationVocabulary>>
LoadTranslationVocabulary(const TokenizerConfig& config) {
  if (config.type != "sentencepiece" && config.type != "dictionary") {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer.type should be \"sentencepiece\" or \"dictionary\" for "
        "translation, but is \"",
        config.type, "\""));
  }
  if (config.vocabulary.empty()) {
    return absl::InvalidArgumentError(
        "tokenizer.vocabulary should name a file, but is empty");
  }
  ETC_ASSIGN_OR_RETURN(const std::string contents,
                       ReadFile(config.vocabulary, kMostVocabularyBytes));
  if (config.type == "dictionary") {
    ETC_ASSIGN_OR_RETURN(std::vector<std::string> tokens,
                         ParseDictionary(contents, config.vocabulary));
    return std::make_shared<DictionaryVocabulary>(std::move(tokens));
  }
  ETC_ASSIGN_OR_RETURN(SentencePieceModelPtr model,
                       LoadSentencePieceModel(contents, config.vocabulary));
  auto vocabulary = std::make_shared<SentencePieceVocabulary>(std::move(model));
  ETC_RETURN_IF_ERROR(CheckSpecials(*vocabulary, config.vocabulary));
  return vocabulary;
}

}  // namespace etc
