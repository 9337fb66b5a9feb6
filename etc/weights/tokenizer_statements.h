#ifndef ETC_ETC_WEIGHTS_TOKENIZER_STATEMENTS_H_
#define ETC_ETC_WEIGHTS_TOKENIZER_STATEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "etc/weights/wordpiece_options.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// HuggingFace's max_input_chars_per_word where no file gives it.
inline constexpr int64_t kHuggingFaceWordCodePoints = 100;
// HuggingFace's file of a tokenizer's options, which ours extends.
inline constexpr char kTokenizerConfigFile[] = "tokenizer_config.json";
// HuggingFace's configuration of a model.
inline constexpr char kModelConfigFile[] = "config.json";
// Bytes of a vocabulary at most: doc/formats.md 0.2.
inline constexpr uint64_t kMostVocabularyBytes = uint64_t{256} << 20;
// Ids of tokens end before this: models take them as int32.
inline constexpr uint64_t kEndOfTokenIds = uint64_t{1} << 31;

// A value of a file, and where it stands: "<file>: <field>".
template <typename T>
struct Stated {
  T value;
  std::string where;
};

struct StatedToken {
  AddedToken token;
  // The file has all fields, not only content and id.
  bool has_flags = true;
  std::string where;
};

// Statements of one or several files about the use of a vocabulary; absent
// where none is made.
struct TokenizerStatements {
  std::optional<Stated<bool>> lower_case;
  std::optional<Stated<bool>> strip_accents;
  std::optional<Stated<bool>> tokenize_chinese_chars;
  std::optional<Stated<bool>> clean_text;
  std::optional<Stated<int64_t>> max_word_code_points;
  std::optional<Stated<bool>> split_punctuation;
  std::optional<Stated<std::string>> tokenizer_class;
  std::vector<StatedToken> added_tokens;
  // Special tokens that are named without their ids.
  std::vector<Stated<std::string>> special_tokens;
};

// Adds the statements of another file.
//   kInvalidArgument  the two contradict each other
absl::Status AddStatements(const TokenizerStatements& other,
                           TokenizerStatements* all);

// Reads HuggingFace's and our files in the directory of a vocabulary of
// WordPiece, as far as they are there: tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, and the tokenizer_class of
// config.json.
//   kUnimplemented    an option that only another tokenizer than BERT's has, or
//                     a value of it that is not supported
//   kInvalidArgument  a wrong type, or two files contradict each other
absl::StatusOr<TokenizerStatements> ReadWordPieceStatements(
    const std::string& vocabulary);

// Returns true if config.json in the directory of a vocabulary has a
// tokenizer_class, be it of a wrong type.
bool NamesTokenizerClass(const std::string& vocabulary);

// Reads tokenizer_config.json beside a SentencePiece model: lower_case,
// split_punctuation and tokenizer_class.
//   kInvalidArgument  a wrong type
absl::StatusOr<TokenizerStatements> ReadSentencePieceStatements(
    const std::string& vocabulary);

// "<where> is <found>, but only <expected> is supported<advice>".
absl::Status UnsupportedTokenizer(const std::string& where,
                                  absl::string_view found,
                                  absl::string_view expected,
                                  const std::string& advice = "");

// Checks the id of a piece, which should be a whole number in
// [0, kEndOfTokenIds); `where` is the file, for the message.
absl::Status CheckTokenId(const nlohmann::json& id, const std::string& piece,
                          const std::string& where);

// Reads an added token of HuggingFace's files, but for its id.
absl::Status ReadAddedToken(const nlohmann::json& json,
                            const std::string& where, AddedToken* token);

// Adds the tokens of `added_tokens_decoder` of tokenizer_config.json, which has
// them by their ids, to `all`.
//   kInvalidArgument  no such ids or tokens, or they contradict those of `all`
absl::Status ReadAddedTokensDecoder(JsonObjectReader* config,
                                    std::vector<StatedToken>* all);

// Adds the tokens of an added_tokens.json, {"[ENT0]": 30522}, to `all`.
//   kInvalidArgument  no object of such ids, or they contradict those of `all`
// and the errors of ReadJsonFile.
absl::Status ReadAddedTokensFile(const std::string& path,
                                 std::vector<StatedToken>* all);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_TOKENIZER_STATEMENTS_H_
