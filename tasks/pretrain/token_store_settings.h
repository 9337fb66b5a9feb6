#ifndef ETC_TASKS_PRETRAIN_TOKEN_STORE_SETTINGS_H_
#define ETC_TASKS_PRETRAIN_TOKEN_STORE_SETTINGS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// What the ids of a token store mean, as the store keeps it.
struct TokenStoreSettings {
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  // Pieces of the vocabulary; ids are below it.
  int64_t vocab_size = 0;
  // 64 hexadecimal digits: of WordPiece, SHA-256 of the pieces, each with a
  // line feed behind it (what `sha256sum` says of a plain vocab.txt); of
  // SentencePiece, of the model file.
  std::string vocabulary_sha256;
  bool lower_case = true;
  bool split_punctuation = false;
  // WordPiece: its other options, as WordPieceOptionsToJson writes them; empty:
  // the defaults.
  std::string wordpiece_options;
  // How the text was split into sentences: "lines", "icu" or "punkt".
  std::string sentences;
  // Ids of the pieces that stand for no text of the corpus; -1: there is none.
  int32_t unknown_id = -1;
  int32_t cls_id = -1;
  int32_t sep_id = -1;
  int32_t mask_id = -1;

  bool operator==(const TokenStoreSettings&) const = default;
};

// SHA-256, as 64 hexadecimal digits, of all settings but `sentences`: stores
// with the same digest have ids of the same meaning.
std::string TokenizerDigest(const TokenStoreSettings& settings);

// One JSON object, and back. `source` starts each message.
//   kInvalidArgument  no such object
std::string TokenStoreSettingsToJson(const TokenStoreSettings& settings);
absl::StatusOr<TokenStoreSettings> ParseTokenStoreSettings(
    absl::string_view json, const std::string& source);

// Whether ids of the store at `path` mean what they do in a run with `run`,
// whose `sentences` do not matter.
//   kFailedPrecondition  they do not; the message has the first difference
absl::Status CheckSameTokenizer(const TokenStoreSettings& store,
                                const TokenStoreSettings& run,
                                const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_TOKEN_STORE_SETTINGS_H_
