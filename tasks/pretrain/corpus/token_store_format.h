#ifndef ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_FORMAT_H_
#define ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Meaning of the ids of a token store, as the store keeps it.
struct TokenStoreSettings {
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  // Pieces of the vocabulary; ids are below it.
  int64_t vocab_size = 0;
  // 64 hexadecimal digits: for WordPiece, SHA-256 of the pieces, each with a
  // line feed behind it (the `sha256sum` of a plain vocab.txt); for
  // SentencePiece, of the model file; for HuggingFace, of the tokenizer.json,
  // for a vocab.json of the one that is equivalent to it and its merges.
  std::string vocabulary_sha256;
  bool lower_case = true;
  bool split_punctuation = false;
  // WordPiece: its other options, as WordPieceOptionsToJson writes them; empty:
  // the defaults.
  std::string wordpiece_options;
  // Method of splitting the text into sentences: "lines", "icu" or "punkt".
  std::string sentences;
  // Ids of the pieces that stand for no text of the corpus; -1: there is none.
  int32_t unknown_id = -1;
  int32_t cls_id = -1;
  int32_t sep_id = -1;
  int32_t mask_id = -1;

  bool operator==(const TokenStoreSettings&) const = default;
};

// One JSON object, and back. `source` starts each message.
//   kInvalidArgument  no such object
std::string TokenStoreSettingsToJson(const TokenStoreSettings& settings);
absl::StatusOr<TokenStoreSettings> ParseTokenStoreSettings(
    absl::string_view json, const std::string& source);

// Checks that ids of the store at `path` mean the same as in a run with `run`,
// whose `sentences` do not matter. The message names `vocabulary`, the file of
// the run.
//   kFailedPrecondition  they do not; the message has the first difference
absl::Status CheckSameTokenizer(const TokenStoreSettings& store,
                                const TokenStoreSettings& run,
                                const std::string& path,
                                const std::string& vocabulary);

// The file of a token store, version 2 (doc/pretraining.md 10, step 1). One
// file, so that one renaming makes it appear and no half of it can be mixed
// with another. Numbers are little-endian; each section begins at a multiple of
// 8, zeros in between.
//
//   header     4096 bytes:
//                0  "RETCTOKS"             24  uint64 sentences
//                8  uint32 0x01020304      32  uint64 tokens
//               12  uint32 version         40  uint32 bytes of an id: 2 or 4
//               16  uint64 documents       44  uint32 bytes of the settings
//               48  uint32 CRC-32C of each section; for tokens and flags, of
//                   the checksums of its blocks
//               64  the settings, as JSON (TokenStoreSettingsToJson)
//             4092  uint32 CRC-32C of what stands before it
//   tokens     [tokens] ids, uint16 if the vocabulary has at most 65,536
//              pieces, else uint32
//   flags      [tokens] bits, the lowest of a byte first: 1 for a piece that
//              continues a word
//   sentences  groups of 64, the last may be shorter: uint64, the first token
//              of the first of them, and for each a uint32, its first token
//              from there on
//   documents  [documents] of uint64 first sentence, uint64 hash of the text
//   blocks     uint32 CRC-32C of each block of 65,536 bytes of the tokens, then
//              of the flags; the last block of each may be shorter
inline constexpr absl::string_view kTokenStoreMagic = "RETCTOKS";
inline constexpr uint32_t kTokenStoreByteOrder = 0x01020304;
inline constexpr uint32_t kTokenStoreVersion = 2;
inline constexpr uint64_t kTokenStoreHeaderBytes = 4096;
inline constexpr uint64_t kTokenStoreSettingsOffset = 64;
// A vocabulary of more pieces needs ids of 4 bytes.
inline constexpr int64_t kMostNarrowIds = 65'536;
inline constexpr uint64_t kSentenceGroup = 64;
inline constexpr uint64_t kSentenceGroupBytes = 8 + 4 * kSentenceGroup;
inline constexpr uint64_t kDocumentBytes = 16;
inline constexpr uint64_t kTokenStoreBlockBytes = 65'536;

enum class TokenStoreSection { kTokens, kFlags, kSentences, kDocuments };
inline constexpr size_t kTokenStoreSections = 4;
// "the tokens", for messages.
absl::string_view NameOfSection(TokenStoreSection section);

struct TokenStoreHeader {
  uint64_t num_documents = 0;
  uint64_t num_sentences = 0;
  uint64_t num_tokens = 0;
  // Checksums by TokenStoreSection.
  std::array<uint32_t, kTokenStoreSections> checksums = {};
  TokenStoreSettings settings;

  // Bytes of an id.
  uint64_t token_bytes() const {
    return settings.vocab_size <= kMostNarrowIds ? 2 : 4;
  }
};

// Place of a section: its first byte in the file and its length, without the
// zeros behind it.
struct TokenStoreExtent {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};
TokenStoreExtent ExtentOf(const TokenStoreHeader& header,
                          TokenStoreSection section);
// The number of blocks of a section; and the extent of the checksums of the
// blocks of the tokens, or of the flags.
uint64_t NumBlocks(const TokenStoreExtent& section);
TokenStoreExtent ExtentOfBlockChecksums(const TokenStoreHeader& header,
                                        TokenStoreSection section);
// Bytes of the whole file.
uint64_t TokenStoreFileBytes(const TokenStoreHeader& header);
// `bytes`, rounded up to where the next section begins.
constexpr uint64_t PaddedBytes(uint64_t bytes) { return (bytes + 7) / 8 * 8; }
// Bytes of the section of `num_sentences`.
uint64_t SentenceSectionBytes(uint64_t num_sentences);

// The 4096 bytes, and back. `file` is the beginning of the file, or all that
// there is of it, and `path` starts each message.
//   kInvalidArgument     no token store; or one written by a machine of the
//                        other byte order
//   kFailedPrecondition  of another version
//   kDataLoss            damaged, or less than 4096 bytes
std::string EncodeTokenStoreHeader(const TokenStoreHeader& header);
absl::StatusOr<TokenStoreHeader> DecodeTokenStoreHeader(
    absl::string_view file, const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_FORMAT_H_
