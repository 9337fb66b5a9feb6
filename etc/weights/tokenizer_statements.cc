#include "etc/weights/tokenizer_statements.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

// --- Several files -----------------------------------------------------------

std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(const std::string& value) { return QuotedName(value); }

absl::Status Contradiction(const std::string& where, const std::string& value,
                           const std::string& other_where,
                           const std::string& other_value) {
  return absl::InvalidArgumentError(
      absl::StrCat(other_where, " is ", other_value, ", but ", where, " is ",
                   value, "; they should say the same"));
}

template <typename T>
absl::Status AddStatement(const std::optional<Stated<T>>& other,
                          std::optional<Stated<T>>* all) {
  if (!all->has_value()) {
    *all = other;
  } else if (other.has_value() && other->value != (*all)->value) {
    return Contradiction((*all)->where, Text((*all)->value), other->where,
                         Text(other->value));
  }
  return absl::OkStatus();
}

// Adds what another file says of the token with the same content.
absl::Status MergeToken(const StatedToken& other, StatedToken* known) {
  const std::string of =
      absl::StrCat(" of ", QuotedName(known->token.content), " in ");
  if (known->token.id != other.token.id) {
    return Contradiction(
        absl::StrCat("the id", of, known->where), Text(known->token.id),
        absl::StrCat("the id", of, other.where), Text(other.token.id));
  }
  const bool outside = known->token.outside || other.token.outside;
  if (!known->has_flags) {
    *known = other;
    known->token.outside = outside;
    return absl::OkStatus();
  }
  known->token.outside = outside;
  for (const auto& [field, member] :
       {std::pair("single_word", &AddedToken::single_word),
        std::pair("normalized", &AddedToken::normalized)}) {
    if (other.has_flags && known->token.*member != other.token.*member) {
      return Contradiction(
          absl::StrCat(field, of, known->where), Text(known->token.*member),
          absl::StrCat(field, of, other.where), Text(other.token.*member));
    }
  }
  return absl::OkStatus();
}

absl::Status AddTokens(const std::vector<StatedToken>& others,
                       std::vector<StatedToken>* all) {
  // Indices into `all`.
  absl::flat_hash_map<std::string, size_t> by_content;
  absl::flat_hash_map<int64_t, size_t> by_id;
  for (size_t i = 0; i < all->size(); ++i) {
    by_content.emplace((*all)[i].token.content, i);
    by_id.emplace((*all)[i].token.id, i);
  }
  for (const StatedToken& other : others) {
    const auto same_id = by_id.find(other.token.id);
    if (same_id != by_id.end()) {
      const StatedToken& known = (*all)[same_id->second];
      if (known.token.content != other.token.content) {
        return Contradiction(known.where, QuotedName(known.token.content),
                             other.where, QuotedName(other.token.content));
      }
    }
    const auto [known, is_new] =
        by_content.try_emplace(other.token.content, all->size());
    if (is_new) {
      by_id.emplace(other.token.id, all->size());
      all->push_back(other);
    } else {
      ETC_RETURN_IF_ERROR(MergeToken(other, &(*all)[known->second]));
    }
  }
  return absl::OkStatus();
}

// --- The fields of a file ----------------------------------------------------

template <typename T>
void ReadStated(JsonObjectReader* reader, const std::string& field,
                std::optional<Stated<T>>* stated) {
  if (reader->Given(field) != nullptr) {
    *stated = {T(), reader->Where(field)};
    reader->Optional(field, &(*stated)->value);
  }
}

// A token is its content or an object with it.
std::string ContentOf(const json& token) {
  const json* content = &token;
  if (token.is_object() && token.contains("content")) {
    content = &token.find("content").value();
  }
  return content->is_string() ? content->get<std::string>() : "";
}

// The roles of special tokens, and the pieces that BERT's tokenizer has there.
constexpr std::pair<const char*, const char*> kRoles[] = {
    {"pad_token", "[PAD]"}, {"unk_token", "[UNK]"},   {"cls_token", "[CLS]"},
    {"sep_token", "[SEP]"}, {"mask_token", "[MASK]"},
};

absl::Status CheckRoles(JsonObjectReader* reader) {
  for (const auto& [role, piece] : kRoles) {
    const json* token = reader->Given(role);
    if (token != nullptr && ContentOf(*token) != piece) {
      return UnsupportedTokenizer(reader->Where(role),
                                  QuotedName(ContentOf(*token)),
                                  QuotedName(piece));
    }
  }
  return absl::OkStatus();
}

// Options that change the treatment of a text, and the only value of each that
// is supported.
absl::Status CheckUnsupported(JsonObjectReader* reader) {
  const std::pair<const char*, json> only[] = {
      {"do_basic_tokenize", true},      {"split_special_tokens", false},
      {"never_split", json::array()},   {"wordpieces_prefix", "##"},
      {"word_tokenizer_type", "basic"}, {"subword_tokenizer_type", "wordpiece"},
  };
  for (const auto& [field, value] : only) {
    const json* found = reader->Given(field);
    if (found != nullptr && *found != value) {
      return UnsupportedTokenizer(reader->Where(field),
                                  found->is_string()
                                      ? QuotedName(found->get<std::string>())
                                  : found->is_primitive() ? JsonText(*found)
                                                          : "a list",
                                  JsonText(value));
    }
  }
  return absl::OkStatus();
}

// Names of special tokens: a list, or in transformers 4 an object of them.
absl::Status ReadSpecialTokens(JsonObjectReader* reader,
                               TokenizerStatements* statements) {
  for (const char* field :
       {"additional_special_tokens", "extra_special_tokens"}) {
    const json* tokens = reader->Given(field);
    if (tokens == nullptr) {
      continue;
    }
    if (!tokens->is_array() && !tokens->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader->Where(field), " should be a list, but is ",
                       tokens->type_name()));
    }
    for (const json& token : *tokens) {
      if (ContentOf(token).empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            reader->Where(field), " should be a list of tokens, but has ",
            token.is_string() ? "an empty one" : token.type_name()));
      }
      statements->special_tokens.push_back(
          {ContentOf(token), reader->Where(field)});
    }
  }
  return absl::OkStatus();
}

// --- The files ---------------------------------------------------------------

absl::StatusOr<TokenizerStatements> ReadTokenizerConfig(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  ETC_RETURN_IF_ERROR(reader.status());
  TokenizerStatements statements;
  ReadStated(&reader, "do_lower_case", &statements.lower_case);
  ReadStated(&reader, "strip_accents", &statements.strip_accents);
  ReadStated(&reader, "tokenize_chinese_chars",
             &statements.tokenize_chinese_chars);
  ReadStated(&reader, "clean_text", &statements.clean_text);
  ReadStated(&reader, "max_input_chars_per_word",
             &statements.max_word_code_points);
  ReadStated(&reader, "split_punctuation", &statements.split_punctuation);
  ReadStated(&reader, "tokenizer_class", &statements.tokenizer_class);
  if (const auto& most = statements.max_word_code_points;
      most.has_value() && most->value < 1) {
    reader.Fail("max_input_chars_per_word",
                absl::StrCat("should be at least 1, but is ", most->value));
  }
  ETC_RETURN_IF_ERROR(reader.status());
  ETC_RETURN_IF_ERROR(CheckUnsupported(&reader));
  ETC_RETURN_IF_ERROR(CheckRoles(&reader));
  ETC_RETURN_IF_ERROR(ReadSpecialTokens(&reader, &statements));
  ETC_RETURN_IF_ERROR(
      ReadAddedTokensDecoder(&reader, &statements.added_tokens));
  return statements;
}

absl::StatusOr<TokenizerStatements> ReadSpecialTokensMap(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  ETC_RETURN_IF_ERROR(reader.status());
  TokenizerStatements statements;
  ETC_RETURN_IF_ERROR(CheckRoles(&reader));
  ETC_RETURN_IF_ERROR(ReadSpecialTokens(&reader, &statements));
  return statements;
}

absl::StatusOr<TokenizerStatements> ReadAddedTokensJson(
    const std::string& path) {
  TokenizerStatements statements;
  ETC_RETURN_IF_ERROR(ReadAddedTokensFile(path, &statements.added_tokens));
  return statements;
}

// The class that HuggingFace takes where tokenizer_config.json names none. The
// file is that of the model, if it is JSON at all: whoever reads it as such
// reports its mistakes.
absl::StatusOr<TokenizerStatements> ReadModelConfig(const std::string& path) {
  TokenizerStatements statements;
  const absl::StatusOr<json> contents = ReadJsonFile(path);
  if (!contents.ok() || !contents->is_object()) {
    return statements;
  }
  JsonObjectReader reader(*contents, path);
  ReadStated(&reader, "tokenizer_class", &statements.tokenizer_class);
  ETC_RETURN_IF_ERROR(reader.status());
  return statements;
}

}  // namespace

absl::Status UnsupportedTokenizer(const std::string& where,
                                  absl::string_view found,
                                  absl::string_view expected,
                                  const std::string& advice) {
  return absl::UnimplementedError(absl::StrCat(
      where, " is ", found, ", but only ", expected, " is supported", advice));
}

absl::Status ReadAddedToken(const json& object, const std::string& where,
                            AddedToken* token) {
  JsonObjectReader reader(object, where);
  reader.Required("content", &token->content);
  reader.Optional("special", &token->special);
  // The default of transformers and tokenizers.
  token->normalized = !token->special;
  reader.Optional("single_word", &token->single_word);
  reader.Optional("normalized", &token->normalized);
  reader.Optional("lstrip", &token->lstrip);
  reader.Optional("rstrip", &token->rstrip);
  if (reader.ok() && token->content.empty()) {
    reader.Fail("content", "should be a token, but is empty");
  }
  return reader.status();
}

absl::Status CheckTokenId(const json& id, const std::string& piece,
                          const std::string& where) {
  // A negative number is no uint64_t below the end either.
  if (id.is_number_integer() && id.get<uint64_t>() < kEndOfTokenIds) {
    return absl::OkStatus();
  }
  return InvalidArgument(where, ": the id of ", QuotedName(piece),
                         " should be a whole number from 0 to ",
                         kEndOfTokenIds - 1, ", but is ",
                         id.is_number() ? JsonText(id) : id.type_name());
}

absl::Status ReadAddedTokensDecoder(JsonObjectReader* config,
                                    std::vector<StatedToken>* all) {
  constexpr char kField[] = "added_tokens_decoder";
  const json* decoder = config->Given(kField);
  if (decoder == nullptr) {
    return absl::OkStatus();
  }
  const std::string where = config->Where(kField);
  JsonObjectReader object(*decoder, where);
  ETC_RETURN_IF_ERROR(object.status());
  std::vector<StatedToken> tokens;
  for (const auto& [id, token] : decoder->items()) {
    StatedToken stated;
    stated.where = absl::StrCat(where, "[", QuotedName(id), "]");
    uint64_t number = 0;
    if (!absl::SimpleAtoi(id, &number) || number >= kEndOfTokenIds) {
      return InvalidArgument(where,
                             " should have ids for keys, whole numbers from 0 "
                             "to ",
                             kEndOfTokenIds - 1, ", but has ", QuotedName(id));
    }
    stated.token.id = static_cast<int64_t>(number);
    ETC_RETURN_IF_ERROR(ReadAddedToken(token, stated.where, &stated.token));
    tokens.push_back(std::move(stated));
  }
  return AddTokens(tokens, all);
}

absl::Status ReadAddedTokensFile(const std::string& path,
                                 std::vector<StatedToken>* all) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  ETC_RETURN_IF_ERROR(reader.status());
  std::vector<StatedToken> tokens;
  for (const auto& [content, id] : contents.items()) {
    ETC_RETURN_IF_ERROR(CheckTokenId(id, content, path));
    if (content.empty()) {
      return InvalidArgument(path,
                             " should have tokens for keys, but has \"\"");
    }
    StatedToken added;
    added.token.id = id.get<int64_t>();
    added.token.content = content;
    added.token.normalized = true;
    added.has_flags = false;
    added.where = path;
    tokens.push_back(std::move(added));
  }
  return AddTokens(tokens, all);
}

absl::Status AddStatements(const TokenizerStatements& other,
                           TokenizerStatements* all) {
  ETC_RETURN_IF_ERROR(AddStatement(other.lower_case, &all->lower_case));
  ETC_RETURN_IF_ERROR(AddStatement(other.strip_accents, &all->strip_accents));
  ETC_RETURN_IF_ERROR(
      AddStatement(other.tokenize_chinese_chars, &all->tokenize_chinese_chars));
  ETC_RETURN_IF_ERROR(AddStatement(other.clean_text, &all->clean_text));
  ETC_RETURN_IF_ERROR(
      AddStatement(other.max_word_code_points, &all->max_word_code_points));
  ETC_RETURN_IF_ERROR(
      AddStatement(other.split_punctuation, &all->split_punctuation));
  ETC_RETURN_IF_ERROR(
      AddStatement(other.tokenizer_class, &all->tokenizer_class));
  ETC_RETURN_IF_ERROR(AddTokens(other.added_tokens, &all->added_tokens));
  std::copy(other.special_tokens.begin(), other.special_tokens.end(),
            std::back_inserter(all->special_tokens));
  return absl::OkStatus();
}

absl::StatusOr<TokenizerStatements> ReadSentencePieceStatements(
    const std::string& vocabulary) {
  TokenizerStatements statements;
  const std::string path = FileBesideWeights(vocabulary, kTokenizerConfigFile);
  if (path.empty()) {
    return statements;
  }
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  ETC_RETURN_IF_ERROR(reader.status());
  ReadStated(&reader, "do_lower_case", &statements.lower_case);
  ReadStated(&reader, "split_punctuation", &statements.split_punctuation);
  ReadStated(&reader, "tokenizer_class", &statements.tokenizer_class);
  ETC_RETURN_IF_ERROR(reader.status());
  return statements;
}

bool NamesTokenizerClass(const std::string& vocabulary) {
  const std::string path = FileBesideWeights(vocabulary, kModelConfigFile);
  if (path.empty()) {
    return false;
  }
  const absl::StatusOr<TokenizerStatements> model = ReadModelConfig(path);
  return !model.ok() || model->tokenizer_class.has_value();
}

absl::StatusOr<TokenizerStatements> ReadWordPieceStatements(
    const std::string& vocabulary) {
  using Reader =
      absl::StatusOr<TokenizerStatements> (*)(const std::string& path);
  constexpr std::pair<const char*, Reader> kFiles[] = {
      {kTokenizerConfigFile, ReadTokenizerConfig},
      {"special_tokens_map.json", ReadSpecialTokensMap},
      {"added_tokens.json", ReadAddedTokensJson},
      {kModelConfigFile, ReadModelConfig},
  };
  TokenizerStatements all;
  for (const auto& [name, read] : kFiles) {
    const std::string path = FileBesideWeights(vocabulary, name);
    if (path.empty()) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(TokenizerStatements statements, read(path));
    if (read == ReadModelConfig && all.tokenizer_class.has_value()) {
      statements.tokenizer_class.reset();
    }
    ETC_RETURN_IF_ERROR(AddStatements(statements, &all));
  }
  return all;
}

}  // namespace etc
