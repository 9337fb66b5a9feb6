#include "etc/weights/vocabulary_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "etc/weights/tokenizer_json.h"

namespace etc {

absl::StatusOr<int64_t> CountPieces(const TokenizerFiles& tokenizer) {
  if (tokenizer.type == "huggingface") {
    return CountTokenizerJsonPieces(tokenizer.vocabulary);
  }
  ETC_ASSIGN_OR_RETURN(std::string text,
                       ReadVocabulary(tokenizer.type, tokenizer.vocabulary));
  if (tokenizer.type != "sentencepiece") {
    // Empty lines at the end are no pieces.
    text.erase(text.find_last_not_of("\r\n") + 1);
    return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), '\n');
  }
  constexpr uint32_t kPieces = 1;
  int64_t pieces = 0;
  const absl::Status status =
      VisitProtoFields(text, [&pieces](const ProtoField& field) {
        pieces += field.number == kPieces ? 1 : 0;
        return absl::OkStatus();
      });
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tokenizer.vocabulary,
                     " is no SentencePiece model: ", status.message()));
  }
  return pieces;
}

absl::Status CheckVocabularySize(const std::string& path, int64_t pieces,
                                 int64_t vocab_size,
                                 std::vector<std::string>* warnings) {
  // Tables are rounded up to multiples of 8 to 128.
  constexpr int64_t kMostUnusedRows = 127;
  const std::string sizes =
      absl::StrCat("the vocabulary ", path, " has ", Counted(pieces, "piece"),
                   ", and model.vocab_size is ", vocab_size);
  if (pieces > vocab_size || pieces < vocab_size - kMostUnusedRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        sizes, "; they should be equal, or the table rounded up by at most ",
        kMostUnusedRows, " rows"));
  }
  if (pieces < vocab_size) {
    warnings->push_back(
        absl::StrCat(sizes, ": some rows of the table are never used"));
  }
  return absl::OkStatus();
}

}  // namespace etc
