#include "etc/weights/vocabulary_size.h"

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "etc/weights/tokenizer_json.h"

namespace etc {

absl::StatusOr<std::vector<std::string>> ReadSentencePieces(
    const std::string& path) {
  constexpr uint32_t kPieces = 1;  // of the model
  constexpr uint32_t kText = 1;    // of a piece
  ETC_ASSIGN_OR_RETURN(const std::string model,
                       ReadVocabulary("sentencepiece", path));
  std::vector<std::string> pieces;
  const absl::Status status =
      VisitProtoFields(model, [&](const ProtoField& field) {
        if (field.number != kPieces) {
          return absl::OkStatus();
        }
        ETC_RETURN_IF_ERROR(field.Expect(WireType::kBytes));
        std::string& piece = pieces.emplace_back();
        return VisitProtoFields(field.bytes, [&](const ProtoField& part) {
          if (part.number == kText) {
            ETC_RETURN_IF_ERROR(part.Expect(WireType::kBytes));
            piece = std::string(part.bytes);
          }
          return absl::OkStatus();
        });
      });
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no SentencePiece model: ", status.message()));
  }
  return pieces;
}

absl::StatusOr<int64_t> CountPieces(const TokenizerFiles& tokenizer) {
  if (tokenizer.type == "huggingface") {
    return CountTokenizerJsonPieces(tokenizer.vocabulary);
  }
  if (tokenizer.type == "sentencepiece") {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> pieces,
                         ReadSentencePieces(tokenizer.vocabulary));
    return static_cast<int64_t>(pieces.size());
  }
  ETC_ASSIGN_OR_RETURN(const std::string lines,
                       ReadVocabulary(tokenizer.type, tokenizer.vocabulary));
  return static_cast<int64_t>(VocabularyLines(lines).size());
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
