#ifndef ETC_ETC_WEIGHTS_VOCABULARY_SIZE_H_
#define ETC_ETC_WEIGHTS_VOCABULARY_SIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/weights/tokenizer_files.h"

namespace etc {

// The pieces of a vocabulary: the lines of WordPiece's, the pieces of a
// SentencePiece model (field 1 of its message). Does not look into them.
//   kInvalidArgument  no message of a SentencePiece model
// and the errors of ReadVocabulary.
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
