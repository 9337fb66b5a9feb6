#ifndef ETC_TASKS_TEXT_TOKENIZER_H_
#define ETC_TASKS_TEXT_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace etc {

struct WordPieceOptions;

// One piece of a text.
struct Token {
  // Row of the token table.
  int32_t id = 0;
  // Bytes [begin, end) of the original UTF-8 text that the piece stands for.
  int64_t begin = 0;
  int64_t end = 0;
};

// Kind of vocabulary of the published checkpoints: tasks have other special
// tokens for each.
// kHuggingFace is any tokenizer.json; pieces are known by their names.
enum class TokenizerKind { kWordPiece, kSentencePiece, kHuggingFace };

// Ids of the special pieces before and behind a text, -1 for none.
struct TextMarkIds {
  int32_t first = -1;
  int32_t last = -1;
  // Pieces between two texts, in their order; absent: one `last`. RoBERTa has
  // two.
  std::optional<std::vector<int32_t>> between = std::nullopt;
};

// Places at which a text may be cut so that its parts have the same pieces as
// in the whole.
struct CuttingPlaces {
  // Any run of these characters, which has no pieces itself. Empty: nowhere.
  absl::string_view blanks = "";
  // Exceptions: a text with one of these in it must not be cut.
  std::vector<std::string> joining = {};
};

// Text to pieces. Implementations are immutable after construction: all methods
// may be called from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The pieces of `text` in order; no special tokens are added. Bytes that are
  // not UTF-8 are dropped. Neighbours may share bytes (several pieces made from
  // one character) and leave some out; neither begins nor ends decrease, save
  // where normalization swaps spacing marks on one letter. Throws LimitReached
  // (base/out_of_memory.h) for a text that takes a tokenizer.json far more
  // steps or memory than those of published ones take for any.
  virtual std::vector<Token> Encode(absl::string_view text) const = 0;

  // Ids are in [0, vocab_size()).
  virtual int64_t vocab_size() const = 0;
  // The text of a piece as its vocabulary spells it ("##able", "▁the").
  // Throws std::out_of_range for an id that the vocabulary does not have.
  virtual std::string Piece(int32_t id) const = 0;
  // The id of a piece, or -1 if the vocabulary has no such piece.
  virtual int32_t Id(absl::string_view piece) const = 0;

  // Returns true if upper case is folded to lower case.
  virtual bool lower_cases() const = 0;

  virtual const CuttingPlaces& cutting_places() const {
    static const CuttingPlaces* const nowhere = new CuttingPlaces();
    return *nowhere;
  }

  // Returns true if the piece stands within a word, as far as its spelling
  // shows it: "##able", or "able" where words begin with "▁" or "Ġ".
  virtual bool ContinuesWord(int32_t /*id*/) const { return false; }
  // Returns true if words within a text have pieces that begin with the blank
  // before them ("Ġthe"), and nothing stands in for it at the beginning of a
  // text ("the"). Of a tokenizer.json alone.
  virtual bool begins_words_with_blanks() const { return false; }
  // The special pieces around a text, as far as a tokenizer.json names them.
  virtual TextMarkIds marks() const { return {}; }

  // Options of WordPiece; null for other tokenizers.
  virtual const WordPieceOptions* wordpiece_options() const { return nullptr; }
};

}  // namespace etc

#endif  // ETC_TASKS_TEXT_TOKENIZER_H_
