#include "etc/weights/tokenizer_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/byte_level_files.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

// --- What is not supported --------------------------------------------------

constexpr char kAdvice[] = " as \"wordpiece\"; \"huggingface\" has others";

// Checks that the object has the type that BERT's tokenizer has there.
absl::Status CheckType(const json& object, const std::string& where,
                       const std::string& expected) {
  JsonObjectReader reader(object, where);
  std::string type;
  reader.Required("type", &type);
  ETC_RETURN_IF_ERROR(reader.status());
  return type == expected ? absl::OkStatus()
                          : UnsupportedTokenizer(reader.Where("type"),
                                                 QuotedName(type), expected);
}

// --- The parts of tokenizer.json ---------------------------------------------

// Reads the processing of a text before it is split. Without a normalizer case
// is kept.
absl::Status ReadNormalizer(JsonObjectReader* file, TokenizerJson* tokenizer) {
  const std::string where = file->Where("normalizer");
  TokenizerStatements& statements = tokenizer->statements;
  const json* normalizer = file->Given("normalizer");
  if (normalizer == nullptr) {
    tokenizer->has_normalizer = false;
    statements.lower_case = {false, absl::StrCat(where, ".lowercase")};
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(CheckType(*normalizer, where, "BertNormalizer"));
  JsonObjectReader reader(*normalizer, where);
  const auto read = [&reader](const char* field,
                              std::optional<Stated<bool>>* stated) {
    *stated = {true, reader.Where(field)};
    reader.Optional(field, &(*stated)->value);
  };
  read("clean_text", &statements.clean_text);
  read("handle_chinese_chars", &statements.tokenize_chinese_chars);
  read("lowercase", &statements.lower_case);
  if (reader.Given("strip_accents") != nullptr) {
    read("strip_accents", &statements.strip_accents);
  }
  return reader.status();
}

// The pieces by their ids.
class Pieces {
 public:
  // There are at most `most` of them, which bounds the memory that an id can
  // ask for.
  explicit Pieces(size_t most) : most_(most) {}

  absl::Status Add(const std::string& where, const std::string& piece,
                   const json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= most_) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the id of ", QuotedName(piece),
                       " should be a whole number from 0 to ", most_ - 1,
                       ", for there are ", most_, " pieces, but is ",
                       id.is_number() ? JsonText(id) : id.type_name()));
    }
    const auto index = id.get<size_t>();
    if (piece.empty() || piece.find_first_of("\r\n") != std::string::npos) {
      return UnsupportedTokenizer(
          absl::StrCat(where, ": the piece with the id ", index),
          QuotedName(piece), "a line that is not empty", kAdvice);
    }
    if (index >= pieces_.size()) {
      pieces_.resize(index + 1);
    }
    if (pieces_[index].has_value() && *pieces_[index] != piece) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": id ", index, " is that of ", QuotedName(*pieces_[index]),
          " and of ", QuotedName(piece)));
    }
    pieces_[index] = piece;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ToLines(const std::string& where) const {
    std::string lines;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!pieces_[id].has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": ids should be those from 0 to ",
                         pieces_.size() - 1, ", but there is no ", id));
      }
      absl::StrAppend(&lines, *pieces_[id], "\n");
    }
    return lines;
  }

 private:
  const size_t most_;
  std::vector<std::optional<std::string>> pieces_;
};

// The field "vocab" of the model, an object.
absl::StatusOr<const json*> ModelVocabulary(const json& model,
                                            const std::string& where,
                                            TokenizerStatements* statements) {
  JsonObjectReader reader(model, where);
  constexpr char kMost[] = "max_input_chars_per_word";
  statements->max_word_code_points = {kHuggingFaceWordCodePoints,
                                      reader.Where(kMost)};
  int64_t& most = statements->max_word_code_points->value;
  reader.Optional(kMost, &most);
  if (most < 1) {
    reader.Fail(kMost, absl::StrCat("should be at least 1, but is ", most));
  }
  std::string prefix = "##";
  std::string unknown = "[UNK]";
  reader.Optional("continuing_subword_prefix", &prefix);
  reader.Optional("unk_token", &unknown);
  const json* vocabulary = reader.Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  if (prefix != "##") {
    return UnsupportedTokenizer(reader.Where("continuing_subword_prefix"),
                                QuotedName(prefix), "\"##\"");
  }
  if (unknown != "[UNK]") {
    return UnsupportedTokenizer(reader.Where("unk_token"), QuotedName(unknown),
                                "\"[UNK]\"");
  }
  JsonObjectReader vocabulary_reader(*vocabulary, reader.Where("vocab"));
  ETC_RETURN_IF_ERROR(vocabulary_reader.status());
  return vocabulary;
}

// A piece that was added behind the model's, or is one of them.
absl::Status AddPiece(const json& added, const std::string& where,
                      const json& vocabulary, Pieces* pieces,
                      TokenizerStatements* statements) {
  JsonObjectReader reader(added, where);
  const json* id = reader.Raw("id", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  StatedToken stated;
  stated.where = where;
  ETC_RETURN_IF_ERROR(ReadAddedToken(added, where, &stated.token));
  const std::string& content = stated.token.content;
  const auto same = vocabulary.find(content);
  if (same != vocabulary.end() && *same != *id) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.Where("id"), " of ", QuotedName(content), " should be ",
        JsonText(*same), ", as in model.vocab, but is ", JsonText(*id)));
  }
  ETC_RETURN_IF_ERROR(pieces->Add(where, content, *id));
  stated.token.id = id->get<int64_t>();
  stated.token.outside = same == vocabulary.end();
  statements->added_tokens.push_back(std::move(stated));
  return absl::OkStatus();
}

// The field "added_tokens"; null without it.
absl::StatusOr<const json*> AddedTokens(JsonObjectReader* file) {
  const json* added = file->Given("added_tokens");
  if (added != nullptr && !added->is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->Where("added_tokens"),
                     " should be an array, but is ", added->type_name()));
  }
  return added;
}

absl::StatusOr<std::string> ReadLines(JsonObjectReader* file,
                                      const json& vocabulary,
                                      TokenizerStatements* statements) {
  ETC_ASSIGN_OR_RETURN(const json* added, AddedTokens(file));
  const std::string where = file->Where("added_tokens");
  const size_t num_added = added == nullptr ? 0 : added->size();
  Pieces pieces(vocabulary.size() + num_added);
  const std::string model_where = file->Where("model.vocab");
  for (const auto& [piece, id] : vocabulary.items()) {
    ETC_RETURN_IF_ERROR(pieces.Add(model_where, piece, id));
  }
  for (size_t i = 0; i < num_added; ++i) {
    ETC_RETURN_IF_ERROR(AddPiece((*added)[i], absl::StrCat(where, "[", i, "]"),
                                 vocabulary, &pieces, statements));
  }
  return pieces.ToLines(model_where);
}

// Old files leave the type out.
absl::Status CheckModelType(const json& model, const std::string& where) {
  JsonObjectReader reader(model, where);
  std::string type;
  if (reader.Has("vocab") && reader.Has("continuing_subword_prefix") &&
      !reader.Has("merges")) {
    type = "WordPiece";
    reader.Optional("type", &type);
  } else {
    reader.Required("type", &type);
  }
  ETC_RETURN_IF_ERROR(reader.status());
  return type == "WordPiece"
             ? absl::OkStatus()
             : UnsupportedTokenizer(reader.Where("type"), QuotedName(type),
                                    "\"WordPiece\"", kAdvice);
}

}  // namespace

absl::StatusOr<TokenizerJson> ReadTokenizerJson(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  const json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  const std::string where = reader.Where("model");
  ETC_RETURN_IF_ERROR(CheckModelType(*model, where));
  const std::string splitter_where = reader.Where("pre_tokenizer");
  const json* splitter = reader.Given("pre_tokenizer");
  if (splitter == nullptr) {  // A whole text is one word.
    return UnsupportedTokenizer(splitter_where, "null", "\"BertPreTokenizer\"",
                                kAdvice);
  }
  ETC_RETURN_IF_ERROR(CheckType(*splitter, splitter_where, "BertPreTokenizer"));
  TokenizerJson tokenizer;
  ETC_RETURN_IF_ERROR(ReadNormalizer(&reader, &tokenizer));
  ETC_ASSIGN_OR_RETURN(const json* vocabulary,
                       ModelVocabulary(*model, where, &tokenizer.statements));
  ETC_ASSIGN_OR_RETURN(tokenizer.vocabulary,
                       ReadLines(&reader, *vocabulary, &tokenizer.statements));
  return tokenizer;
}

absl::Status CheckTokenizerJsonModel(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadTokenizerJsonOrByteLevel(path));
  JsonObjectReader reader(contents, path);
  const json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  JsonObjectReader model_reader(*model, reader.Where("model"));
  // Old files leave the type out.
  std::string type = "BPE";
  model_reader.Optional("type", &type);
  ETC_RETURN_IF_ERROR(model_reader.status());
  return type == "BPE" || type == "Unigram" || type == "WordLevel" ||
                 type == "WordPiece"
             ? absl::OkStatus()
             : UnsupportedTokenizer(model_reader.Where("type"),
                                    QuotedName(type),
                                    "BPE, Unigram, WordLevel or WordPiece");
}

absl::StatusOr<int64_t> CountTokenizerJsonPieces(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadTokenizerJsonOrByteLevel(path));
  JsonObjectReader reader(contents, path);
  const json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.status());
  JsonObjectReader model_reader(*model, reader.Where("model"));
  const json* pieces = model_reader.Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(model_reader.status());
  int64_t size = 0;
  const auto add = [&size](const json& id) {
    // Other ids are refused when the tokenizer is loaded.
    if (id.is_number_unsigned() && id.get<uint64_t>() < kEndOfTokenIds) {
      size = std::max(size, id.get<int64_t>() + 1);
    }
  };
  if (pieces->is_array()) {  // Unigram's, in the order of their ids
    size = static_cast<int64_t>(pieces->size());
  } else if (pieces->is_object()) {
    std::for_each(pieces->begin(), pieces->end(), add);
  }
  ETC_ASSIGN_OR_RETURN(const json* added, AddedTokens(&reader));
  for (size_t i = 0; added != nullptr && i < added->size(); ++i) {
    if (const json& token = (*added)[i];
        token.is_object() && token.contains("id")) {
      add(token["id"]);
    }
  }
  return size;
}

}  // namespace etc
