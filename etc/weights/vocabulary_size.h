#ifndef ETC_ETC_WEIGHTS_VOCABULARY_SIZE_H_
#define ETC_ETC_WEIGHTS_VOCABULARY_SIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/tokenizer_files.h"

namespace etc {

// The texts of the pieces of the SentencePiece model at `path` (field 1 of its
// message, and field 1 of that), in the order of their ids.
//   kInvalidArgument  no message of a SentencePiece model
// and the errors of ReadFile.
absl::StatusOr<std::vector<std::string>> ReadSentencePieces(
    const std::string& path);

// Counts the pieces of a vocabulary: lines of WordPiece's, pieces of a
// SentencePiece model, ids of a tokenizer.json.
//   errors of ReadVocabulary, ReadSentencePieces, CountTokenizerJsonPieces
absl::StatusOr<int64_t> CountPieces(const TokenizerFiles& tokenizer);

// Checks that the vocabulary at `path`, of `pieces` pieces, fits an embedding
// table of `vocab_size` rows.
//   kInvalidArgument  it has more pieces than that, or fewer by more than what
//                     tables are rounded up by
// Adds to `warnings` for a vocabulary that is smaller by less than that.
absl::Status CheckVocabularySize(const std::string& path, int64_t pieces,
                                 int64_t vocab_size,
                                 std::vector<std::string>* warnings);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_VOCABULARY_SIZE_H_
