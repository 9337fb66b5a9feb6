#include "tasks/text/sentencepiece_tokenizer.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "etc/weights/tokenizer_statements.h"
#include "tasks/text/basic_tokenizer.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

constexpr absl::string_view kMark = "\u2581";

// Returns true if the digit-comma rule applies to this piece: two code points
// or more, the last a comma, the one before it a digit in the sense of Python's
// isdigit.
bool EndsInDigitAndComma(absl::string_view piece) {
  if (!absl::ConsumeSuffix(&piece, ",") || piece.empty()) {
    return false;
  }
  size_t last = piece.size() - 1;
  while (last > 0 && U8_IS_TRAIL(piece[last])) {
    --last;
  }
  auto at = static_cast<int64_t>(last);
  const CodePoint c = NextCodePoint(piece, &at);
  const int32_t type = u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceModelPtr model,
                         const SentencePieceOptions& options)
      : model_(std::move(model)),
        options_(options),
        places_(options.split_punctuation ? CuttingPlacesOfBasicWords()
                                          : FindCuttingPlaces()) {}

  const CuttingPlaces& cutting_places() const override { return places_; }

  std::vector<Token> Encode(absl::string_view text) const override {
    if (options_.split_punctuation) {
      return EncodeWords(text);
    }
    if (CountIllFormedUtf8(text) == 0) {
      return EncodeRun(text);
    }
    const WellFormedText clean = WithoutIllFormedUtf8(text);
    std::vector<Token> pieces = EncodeRun(clean.text);
    for (Token& piece : pieces) {
      const bool is_empty = piece.begin == piece.end;
      const auto size = static_cast<int64_t>(clean.sources.size());
      piece.begin = piece.begin < size ? clean.sources[piece.begin].begin
                                       : static_cast<int64_t>(text.size());
      piece.end = is_empty ? piece.begin : clean.sources[piece.end - 1].end;
    }
    return pieces;
  }

  int64_t vocab_size() const override { return model_->size(); }

  std::string Piece(int32_t id) const override {
    if (id < 0 || id >= model_->size()) {
      throw std::out_of_range(
          absl::StrCat("id ", id, " should be in [0, ", model_->size(), ")"));
    }
    size_t size = 0;
    const char* text = model_->Piece(id, &size);
    return std::string(text, size);
  }

  int32_t Id(absl::string_view piece) const override {
    // A text that is not in the vocabulary has the id of the unknown piece.
    const int32_t id = model_->Id(piece.data(), piece.size());
    return Piece(id) == piece ? id : -1;
  }

  bool lower_cases() const override { return false; }
  bool ContinuesWord(int32_t id) const override {
    return !absl::StartsWith(Piece(id), kMark);
  }

 private:
  std::vector<Token> EncodeWords(absl::string_view text) const {
    std::vector<Token> pieces;
    VisitBasicWords(
        text, {.lower_case = false}, [this, &pieces](const BasicWord& word) {
          const auto size = static_cast<int64_t>(word.text().size());
          for (Token piece : EncodeRun(word.text())) {
            if (piece.begin < piece.end) {
              const ByteRange source = word.Source(piece.begin, piece.end);
              piece.begin = source.begin;
              piece.end = source.end;
            } else {
              piece.begin = piece.begin < size
                                ? word.Source(piece.begin, size).begin
                                : word.Source().end;
              piece.end = piece.begin;
            }
            pieces.push_back(piece);
          }
        });
    return pieces;
  }

  // `text` is well-formed. The digit-comma rule is applied.
  std::vector<Token> EncodeRun(absl::string_view text) const {
    std::vector<Token> pieces;
    struct Context {
      const SentencePieceTokenizer* tokenizer;
      absl::string_view text;
      std::vector<Token>* pieces;
    } context{this, text, &pieces};
    EncodePlainly(text, &context, [](void* opaque, const SentencePiece& piece) {
      const auto& [tokenizer, whole, out] = *static_cast<Context*>(opaque);
      const absl::string_view spelt(piece.text, piece.text_size);
      const Token found{piece.id, piece.begin, piece.end};
      if (EndsInDigitAndComma(spelt)) {
        tokenizer->TakeApart(spelt, found, whole, out);
      } else {
        out->push_back(found);
      }
    });
    return pieces;
  }

  void EncodePlainly(absl::string_view text, void* context,
                     SentencePieceModel::Visit visit) const {
    if (text.size() > std::numeric_limits<int32_t>::max()) {
      throw std::length_error(absl::StrCat(
          "a text of ", text.size(), " bytes is too long for SentencePiece"));
    }
    if (!model_->Encode(text.data(), text.size(), context, visit)) {
      throw std::bad_alloc();
    }
  }

  // The digit-comma rule on a piece of `text`.
  void TakeApart(absl::string_view spelt, const Token& piece,
                 absl::string_view text, std::vector<Token>* pieces) const {
    const bool had_mark = absl::StartsWith(spelt, kMark);
    const std::string bare = absl::StrReplaceAll(spelt, {{kMark, ""}});
    std::vector<Token> parts;
    EncodePlainly(absl::string_view(bare).substr(0, bare.size() - 1), &parts,
                  [](void* context, const SentencePiece& part) {
                    static_cast<std::vector<Token>*>(context)->push_back(
                        {part.id, part.begin, part.end});
                  });
    const auto bare_size = static_cast<int64_t>(bare.size());
    parts.push_back({model_->Id(",", 1), bare_size - 1, bare_size});

    // If nothing was normalized, the bytes of `bare` stand at the end of the
    // piece's range, behind the white space of its mark.
    const bool is_literal =
        absl::EndsWith(text.substr(piece.begin, piece.end - piece.begin), bare);
    const int64_t shift = piece.end - bare_size;
    for (const Token& part : parts) {
      pieces->push_back(
          is_literal ? Token{part.id, part.begin + shift, part.end + shift}
                     : Token{part.id, piece.begin, piece.end});
    }
    if (is_literal && had_mark) {
      (*pieces)[pieces->size() - parts.size()].begin = piece.begin;
    }
  }

  // Returns true if sums of scores are never rounded: those of whole numbers,
  // as in ETC's own vocabulary, where all are 0.
  bool HasExactSums() const {
    constexpr float kLargestExact = 1000;
    for (int32_t id = 0; id < model_->size(); ++id) {
      const float score = model_->Score(id);
      if (score != std::round(score) || std::abs(score) > kLargestExact) {
        return false;
      }
    }
    return true;
  }

  // Returns blanks, if the scores of the text between them decide. Where sums
  // are rounded, those of the text before decide too.
  CuttingPlaces FindCuttingPlaces() const {
    if (!HasExactSums()) {
      return {};
    }
    CuttingPlaces places;
    for (int32_t id = 0; id < model_->size(); ++id) {
      const std::string piece = Piece(id);
      if (absl::string_view(piece).find(kMark, 1) == absl::string_view::npos) {
        continue;
      }
      // The piece extends over a blank; it occurs only in a text with all parts
      // between its marks.
      std::string longest;
      for (const absl::string_view part : absl::StrSplit(piece, kMark)) {
        if (part.size() > longest.size()) {
          longest = std::string(part);
        }
      }
      if (longest.empty()) {
        return {};
      }
      places.joining.push_back(std::move(longest));
    }
    // The model's own rules for blanks are the usual ones.
    const auto ids = [this](absl::string_view text) {
      std::vector<int32_t> result;
      for (const Token& token : EncodeRun(text)) {
        result.push_back(token.id);
      }
      return result;
    };
    std::vector<int32_t> twice = ids("a");
    twice.insert(twice.end(), twice.begin(), twice.end());
    if (Id(kMark) >= 0 && ids(" a  a ") == twice && ids("a a") == twice) {
      places.blanks = " ";
      // A mark that the text has itself may be left out at the end of a word,
      // as the blank that it stands for is.
      places.joining.emplace_back(kMark);
    }
    return places;
  }

  const SentencePieceModelPtr model_;
  const SentencePieceOptions options_;
  const CuttingPlaces places_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(
    const std::string& path, const SentencePieceOptions& options) {
  ETC_ASSIGN_OR_RETURN(const std::string model,
                       ReadFile(path, kMostVocabularyBytes));
  ETC_ASSIGN_OR_RETURN(
      SentencePieceModelPtr loaded,
      LoadSentencePieceModel(model, path, options.module_path));
  return absl::make_unique<SentencePieceTokenizer>(std::move(loaded), options);
}

}  // namespace etc
