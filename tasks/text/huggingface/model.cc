#include "tasks/text/huggingface/model.h"

#include <utility>

#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/piece_trie.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

// Each word from the left into the longest pieces.
class WordPieceModel : public Model {
 public:
  // Pieces inside a word are spelt with `prefix`.
  WordPieceModel(const Vocabulary& vocabulary, std::string prefix,
                 int32_t unknown_id, int64_t most_code_points)
      : prefix_(std::move(prefix)),
        unknown_id_(unknown_id),
        most_code_points_(most_code_points) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.Piece(id).empty()) {
        trie_.Add(vocabulary.Piece(id), id);
      }
    }
    continuation_ = trie_.Walk(PieceTrie::kRoot, prefix_);
  }

  void Encode(absl::string_view word,
              std::vector<WordPart>* parts) const override {
    const auto size = static_cast<int64_t>(word.size());
    const size_t first = parts->size();
    bool known =
        size <= most_code_points_ || CountCodePoints(word) <= most_code_points_;
    for (int64_t at = 0; known && at < size;) {
      const PieceTrie::Match match =
          trie_.Longest(at == 0 ? PieceTrie::kRoot : continuation_,
                        word.substr(static_cast<size_t>(at)));
      known = match.id >= 0;
      if (known) {
        parts->push_back({match.id, at, at + match.length});
        at += match.length;
      }
    }
    if (!known) {
      parts->resize(first);
      parts->push_back({unknown_id_, 0, size});
    }
  }

  std::string continuation() const override { return prefix_; }

 private:
  PieceTrie trie_;
  const std::string prefix_;
  PieceTrie::Node continuation_ = PieceTrie::kNowhere;
  const int32_t unknown_id_;
  const int64_t most_code_points_;
};

// Each word is a piece.
class WordLevelModel : public Model {
 public:
  WordLevelModel(Vocabulary vocabulary, int32_t unknown_id)
      : vocabulary_(std::move(vocabulary)), unknown_id_(unknown_id) {}

  void Encode(absl::string_view word,
              std::vector<WordPart>* parts) const override {
    const int32_t id = vocabulary_.Id(word);
    parts->push_back(
        {id >= 0 ? id : unknown_id_, 0, static_cast<int64_t>(word.size())});
  }

 private:
  const Vocabulary vocabulary_;
  const int32_t unknown_id_;
};

// The id of the piece for what is unknown, which the vocabulary should have.
absl::StatusOr<int32_t> UnknownId(JsonObjectReader* reader,
                                  const Vocabulary& vocabulary) {
  std::string unknown = "[UNK]";
  reader->Optional("unk_token", &unknown);
  const int32_t id = vocabulary.Id(unknown);
  if (id < 0) {
    return InvalidArgument(reader->Where("unk_token"), " is ",
                           QuotedName(unknown), ", which ",
                           reader->Where("vocab"), " should have, but has not");
  }
  return id;
}

absl::StatusOr<Vocabulary> ReadVocab(JsonObjectReader* reader) {
  const json* object = reader->Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader->status());
  return ReadVocabularyObject(*object, reader->Where("vocab"));
}

absl::StatusOr<ReadModelResult> ReadWordPiece(const json& object,
                                              const std::string& where) {
  JsonObjectReader reader(object, where);
  std::string ignored;
  std::string prefix = "##";
  int64_t most = 100;
  reader.Optional("type", &ignored);
  reader.Optional("continuing_subword_prefix", &prefix);
  reader.Optional("max_input_chars_per_word", &most);
  ReadModelResult result;
  ETC_ASSIGN_OR_RETURN(result.vocabulary, ReadVocab(&reader));
  ETC_ASSIGN_OR_RETURN(const int32_t unknown,
                       UnknownId(&reader, result.vocabulary));
  ETC_RETURN_IF_ERROR(reader.Finish());
  ETC_RETURN_IF_ERROR(
      CheckPieceSizes(result.vocabulary, reader.Where("vocab")));
  result.model = std::make_unique<WordPieceModel>(
      result.vocabulary, std::move(prefix), unknown, most);
  return result;
}

absl::StatusOr<ReadModelResult> ReadWordLevel(const json& object,
                                              const std::string& where) {
  JsonObjectReader reader(object, where);
  std::string ignored;
  reader.Optional("type", &ignored);
  ReadModelResult result;
  ETC_ASSIGN_OR_RETURN(result.vocabulary, ReadVocab(&reader));
  ETC_ASSIGN_OR_RETURN(const int32_t unknown,
                       UnknownId(&reader, result.vocabulary));
  ETC_RETURN_IF_ERROR(reader.Finish());
  result.model = std::make_unique<WordLevelModel>(result.vocabulary, unknown);
  return result;
}

// Old files leave the type out.
std::string TypeByFields(const JsonObjectReader& reader) {
  return reader.Has("merges")                      ? "BPE"
         : reader.Has("continuing_subword_prefix") ? "WordPiece"
         : reader.Has("unk_id")                    ? "Unigram"
                                                   : "";
}

}  // namespace

absl::StatusOr<ReadModelResult> ReadModel(const json& object,
                                          const std::string& where,
                                          bool is_byte_level) {
  JsonObjectReader reader(object, where);
  std::string type = TypeByFields(reader);
  if (type.empty()) {
    reader.Required("type", &type);
  } else {
    reader.Optional("type", &type);
  }
  ETC_RETURN_IF_ERROR(reader.status());
  if (type == "BPE") {
    return ReadBpe(object, where, is_byte_level);
  }
  if (is_byte_level) {
    return UnsupportedTokenizer(reader.Where("type"), QuotedName(type),
                                "\"BPE\" behind ByteLevel");
  }
  if (type == "Unigram") {
    return ReadUnigram(object, where);
  }
  if (type == "WordPiece") {
    return ReadWordPiece(object, where);
  }
  if (type == "WordLevel") {
    return ReadWordLevel(object, where);
  }
  return UnsupportedTokenizer(reader.Where("type"), QuotedName(type),
                              "BPE, WordPiece, WordLevel or Unigram");
}

}  // namespace etc::huggingface
