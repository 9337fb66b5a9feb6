#include "tasks/pretrain/corpus/token_store_format.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

constexpr uint64_t kChecksumOffset = kTokenStoreHeaderBytes - sizeof(uint32_t);
constexpr uint64_t kMostSettingsBytes =
    kChecksumOffset - kTokenStoreSettingsOffset;
// kTokenStoreByteOrder as the other kind of machine writes it.
constexpr uint32_t kOtherByteOrder = 0x04030201;
// Limit below which no product of counts overflows.
constexpr uint64_t kMostItems = uint64_t{1} << 56;

absl::Status DamagedHeader(const std::string& path, absl::string_view message) {
  return absl::DataLossError(
      absl::StrCat(path, ": the header of the token store (bytes 0 to ",
                   kTokenStoreHeaderBytes, ") is damaged: ", message));
}

// Checks the bytes before the checksum: that the file is a token store, of this
// version.
absl::Status CheckKind(absl::string_view file, const std::string& path) {
  if (!absl::StartsWith(file, kTokenStoreMagic)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " should be a token store, which realetc tokenize writes, but ",
        "does not begin with ", kTokenStoreMagic));
  }
  if (file.size() < kTokenStoreHeaderBytes) {
    return absl::DataLossError(absl::StrCat(
        path, ": a token store has a header of ", kTokenStoreHeaderBytes,
        " bytes, but the file ends at byte ", file.size()));
  }
  ByteReader reader(file.substr(kTokenStoreMagic.size()));
  const uint32_t byte_order = *reader.TakeFixed<uint32_t>();
  const uint32_t version = *reader.TakeFixed<uint32_t>();
  if (byte_order == kOtherByteOrder) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the token store was written on a machine of the other byte ",
        "order; run realetc tokenize on this one"));
  }
  if (byte_order != kTokenStoreByteOrder) {
    return DamagedHeader(
        path, absl::StrCat("the byte order mark is ", absl::Hex(byte_order)));
  }
  if (version != kTokenStoreVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the token store is of version ", version,
                     ", but this program knows version ", kTokenStoreVersion,
                     "; use the program that wrote it, or run realetc "
                     "tokenize again"));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const TokenStoreHeader& header, uint32_t token_bytes,
                         const std::string& path) {
  if (token_bytes != header.token_bytes()) {
    return DamagedHeader(
        path,
        absl::StrCat("ids of a vocabulary of ", header.settings.vocab_size,
                     " pieces have ", header.token_bytes(), " bytes, but here ",
                     token_bytes));
  }
  // No document is without sentences and no sentence without tokens.
  if (header.num_documents > header.num_sentences ||
      header.num_sentences > header.num_tokens ||
      header.num_tokens > kMostItems ||
      (header.num_documents == 0) != (header.num_tokens == 0)) {
    return DamagedHeader(
        path, absl::StrCat("there cannot be ", header.num_documents,
                           " documents, ", header.num_sentences,
                           " sentences and ", header.num_tokens, " tokens"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view NameOfSection(TokenStoreSection section) {
  constexpr std::array<absl::string_view, kTokenStoreSections> kNames = {
      "the tokens", "the continuation flags", "the index of sentences",
      "the index of documents"};
  return kNames[static_cast<size_t>(section)];
}

uint64_t SentenceSectionBytes(uint64_t num_sentences) {
  const uint64_t rest = num_sentences % kSentenceGroup;
  return num_sentences / kSentenceGroup * kSentenceGroupBytes +
         (rest > 0 ? sizeof(uint64_t) + rest * sizeof(uint32_t) : 0);
}

TokenStoreExtent ExtentOf(const TokenStoreHeader& header,
                          TokenStoreSection section) {
  const std::array<uint64_t, kTokenStoreSections> bytes = {
      header.num_tokens * header.token_bytes(), (header.num_tokens + 7) / 8,
      SentenceSectionBytes(header.num_sentences),
      header.num_documents * kDocumentBytes};
  const auto index = static_cast<size_t>(section);
  TokenStoreExtent extent = {.begin = kTokenStoreHeaderBytes,
                             .bytes = bytes[index]};
  for (size_t before = 0; before < index; ++before) {
    extent.begin += PaddedBytes(bytes[before]);
  }
  return extent;
}

uint64_t NumBlocks(const TokenStoreExtent& section) {
  return (section.bytes + kTokenStoreBlockBytes - 1) / kTokenStoreBlockBytes;
}

TokenStoreExtent ExtentOfBlockChecksums(const TokenStoreHeader& header,
                                        TokenStoreSection section) {
  const TokenStoreExtent last = ExtentOf(header, TokenStoreSection::kDocuments);
  TokenStoreExtent extent = {.begin = last.begin + last.bytes};
  const auto bytes = [&header](TokenStoreSection of) {
    return NumBlocks(ExtentOf(header, of)) * sizeof(uint32_t);
  };
  if (section != TokenStoreSection::kTokens) {
    extent.begin += bytes(TokenStoreSection::kTokens);
  }
  extent.bytes = bytes(section);
  return extent;
}

uint64_t TokenStoreFileBytes(const TokenStoreHeader& header) {
  const TokenStoreExtent last =
      ExtentOfBlockChecksums(header, TokenStoreSection::kFlags);
  return last.begin + last.bytes;
}

std::string EncodeTokenStoreHeader(const TokenStoreHeader& header) {
  const std::string settings = TokenStoreSettingsToJson(header.settings);
  std::string bytes(kTokenStoreMagic);
  bytes.reserve(kTokenStoreHeaderBytes);
  AppendFixed(kTokenStoreByteOrder, &bytes);
  AppendFixed(kTokenStoreVersion, &bytes);
  AppendFixed(header.num_documents, &bytes);
  AppendFixed(header.num_sentences, &bytes);
  AppendFixed(header.num_tokens, &bytes);
  AppendFixed(static_cast<uint32_t>(header.token_bytes()), &bytes);
  AppendFixed(static_cast<uint32_t>(settings.size()), &bytes);
  for (const uint32_t checksum : header.checksums) {
    AppendFixed(checksum, &bytes);
  }
  // Digests and numbers: some 400 bytes.
  bytes += settings.substr(0, kMostSettingsBytes);
  bytes.resize(kChecksumOffset);
  AppendFixed(ExtendCrc32c(0, bytes), &bytes);
  return bytes;
}

absl::StatusOr<TokenStoreHeader> DecodeTokenStoreHeader(
    absl::string_view file, const std::string& path) {
  ETC_RETURN_IF_ERROR(CheckKind(file, path));
  const absl::string_view bytes = file.substr(0, kTokenStoreHeaderBytes);
  ByteReader trailer(bytes.substr(kChecksumOffset));
  if (*trailer.TakeFixed<uint32_t>() !=
      ExtendCrc32c(0, bytes.substr(0, kChecksumOffset))) {
    return DamagedHeader(path, "its checksum is another");
  }
  // All reads are within the 4096 bytes.
  ByteReader reader(bytes);
  reader.Take(kTokenStoreMagic.size() + 2 * sizeof(uint32_t));
  TokenStoreHeader header;
  header.num_documents = *reader.TakeFixed<uint64_t>();
  header.num_sentences = *reader.TakeFixed<uint64_t>();
  header.num_tokens = *reader.TakeFixed<uint64_t>();
  const uint32_t token_bytes = *reader.TakeFixed<uint32_t>();
  const uint32_t settings_bytes = *reader.TakeFixed<uint32_t>();
  for (uint32_t& checksum : header.checksums) {
    checksum = *reader.TakeFixed<uint32_t>();
  }
  if (settings_bytes > kMostSettingsBytes) {
    return DamagedHeader(
        path, absl::StrCat("settings cannot have ", settings_bytes, " bytes"));
  }
  absl::StatusOr<TokenStoreSettings> settings = ParseTokenStoreSettings(
      bytes.substr(kTokenStoreSettingsOffset, settings_bytes), path);
  if (!settings.ok()) {
    return DamagedHeader(path, settings.status().message());
  }
  header.settings = *std::move(settings);
  ETC_RETURN_IF_ERROR(CheckCounts(header, token_bytes, path));
  return header;
}

namespace {

constexpr absl::string_view kWordPieceName = "wordpiece";
constexpr absl::string_view kSentencePieceName = "sentencepiece";
constexpr absl::string_view kHuggingFaceName = "huggingface";
constexpr char kWordPieceOptions[] = "wordpiece_options";

absl::string_view KindName(TokenizerKind kind) {
  return kind == TokenizerKind::kWordPiece       ? kWordPieceName
         : kind == TokenizerKind::kSentencePiece ? kSentencePieceName
                                                 : kHuggingFaceName;
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
  if (tokenizer != kWordPieceName && tokenizer != kSentencePieceName &&
      tokenizer != kHuggingFaceName) {
    reader.Fail("tokenizer", absl::StrCat("should be \"", kWordPieceName,
                                          "\", \"", kSentencePieceName,
                                          "\" or \"", kHuggingFaceName, "\""));
  }
  settings.tokenizer_kind =
      tokenizer == kSentencePieceName ? TokenizerKind::kSentencePiece
      : tokenizer == kHuggingFaceName ? TokenizerKind::kHuggingFace
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
                                const std::string& path,
                                const std::string& vocabulary) {
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
          JsonText(theirs[field]), "; run realetc tokenize --vocabulary ",
          vocabulary, ", with the settings of the run"));
    }
  }
  return absl::OkStatus();
}

}  // namespace etc
