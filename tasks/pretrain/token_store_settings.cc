#include "tasks/pretrain/token_store_settings.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr absl::string_view kWordPieceName = "wordpiece";
constexpr absl::string_view kSentencePieceName = "sentencepiece";
constexpr char kWordPieceOptions[] = "wordpiece_options";

absl::string_view KindName(TokenizerKind kind) {
  return kind == TokenizerKind::kWordPiece ? kWordPieceName
                                           : kSentencePieceName;
}

nlohmann::json ToJson(const TokenStoreSettings& settings) {
  nlohmann::json json = {
      {"tokenizer", std::string(KindName(settings.tokenizer_kind))},
      {"vocab_size", settings.vocab_size},
      {"vocabulary_sha256", settings.vocabulary_sha256},
      {"lower_case", settings.lower_case},
      {"split_punctuation", settings.split_punctuation},
      {"sentences", settings.sentences},
      {"unknown_id", settings.unknown_id},
      {"cls_id", settings.cls_id},
      {"sep_id", settings.sep_id},
      {"mask_id", settings.mask_id}};
  // Stores of the defaults have the digests that they always had.
  if (!settings.wordpiece_options.empty()) {
    json[kWordPieceOptions] = settings.wordpiece_options;
  }
  return json;
}

void ReadSpecialId(JsonObjectReader& reader, const std::string& field,
                   int64_t vocab_size, int32_t* id) {
  int64_t value = -1;
  reader.Required(field, &value);
  if (value < -1 || value >= vocab_size) {
    reader.Fail(field,
                absl::StrCat("should be an id of the vocabulary, which has ",
                             vocab_size, " pieces, or -1, but is ", value));
    return;
  }
  *id = static_cast<int32_t>(value);
}

}  // namespace

std::string TokenizerDigest(const TokenStoreSettings& settings) {
  nlohmann::json json = ToJson(settings);
  json.erase("sentences");
  Sha256 digest;
  digest.Update(JsonText(json));
  return digest.HexDigest();
}

std::string TokenStoreSettingsToJson(const TokenStoreSettings& settings) {
  return JsonText(ToJson(settings));
}

absl::StatusOr<TokenStoreSettings> ParseTokenStoreSettings(
    absl::string_view json, const std::string& source) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, source));
  JsonObjectReader reader(object, source);
  TokenStoreSettings settings;
  std::string tokenizer;
  reader.Required("tokenizer", &tokenizer);
  if (tokenizer != kWordPieceName && tokenizer != kSentencePieceName) {
    reader.Fail("tokenizer",
                absl::StrCat("should be \"", kWordPieceName, "\" or \"",
                             kSentencePieceName, "\""));
  }
  settings.tokenizer_kind = tokenizer == kSentencePieceName
                                ? TokenizerKind::kSentencePiece
                                : TokenizerKind::kWordPiece;
  reader.Required("vocab_size", &settings.vocab_size);
  if (settings.vocab_size < 1 ||
      settings.vocab_size > std::numeric_limits<int32_t>::max()) {
    reader.Fail("vocab_size",
                absl::StrCat("should be a number of pieces, but is ",
                             settings.vocab_size));
  }
  reader.Required("vocabulary_sha256", &settings.vocabulary_sha256);
  reader.Required("lower_case", &settings.lower_case);
  reader.Required("split_punctuation", &settings.split_punctuation);
  reader.Optional(kWordPieceOptions, &settings.wordpiece_options);
  reader.Required("sentences", &settings.sentences);
  const int64_t pieces = settings.vocab_size;
  ReadSpecialId(reader, "unknown_id", pieces, &settings.unknown_id);
  ReadSpecialId(reader, "cls_id", pieces, &settings.cls_id);
  ReadSpecialId(reader, "sep_id", pieces, &settings.sep_id);
  ReadSpecialId(reader, "mask_id", pieces, &settings.mask_id);
  ETC_RETURN_IF_ERROR(reader.Finish());
  return settings;
}

absl::Status CheckSameTokenizer(const TokenStoreSettings& store,
                                const TokenStoreSettings& run,
                                const std::string& path) {
  nlohmann::json ours = ToJson(store);
  nlohmann::json theirs = ToJson(run);
  ours.emplace(kWordPieceOptions, "{}");
  theirs.emplace(kWordPieceOptions, "{}");
  // The vocabulary last: its digest says least to a reader.
  for (const char* field :
       {"tokenizer", "lower_case", "split_punctuation", kWordPieceOptions,
        "vocab_size", "unknown_id", "cls_id", "sep_id", "mask_id",
        "vocabulary_sha256"}) {
    if (ours[field] != theirs[field]) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": the store was made with another tokenizer than the run's: ",
          "its ", field, " is ", JsonText(ours[field]), ", the run's ",
          JsonText(theirs[field]),
          "; run realetc tokenize with the vocabulary ",
          "and settings of the run"));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
