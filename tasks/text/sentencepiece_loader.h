#ifndef ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_
#define ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/sentencepiece_module.h"

namespace etc {

struct SentencePieceModelDeleter {
  void operator()(SentencePieceModel* model) const { model->Destroy(); }
};
using SentencePieceModelPtr =
    std::unique_ptr<SentencePieceModel, SentencePieceModelDeleter>;

// Opens the module realetc_sentencepiece.so (OpenModule in
// base/module_loader.h) and loads a model into it.
//
//   model    bytes of a .model file, a serialized ModelProto
//   source   what messages call it
//   kInvalidArgument     SentencePiece does not take it for a model, or would
//                        read outside its memory: its rules of normalization
//                        are broken (PrecompiledMap), or more than 64 pieces
//                        that users defined begin with one another
//   kResourceExhausted   a piece is longer than kMostPieceBytes
//   kFailedPrecondition  the module cannot be opened; in a sanitized program
//                        LibTorch's protobuf is a reason
absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path = "");

// Opens the module alone. kFailedPrecondition as above.
absl::StatusOr<const SentencePieceModule*> OpenSentencePieceModule(
    const std::string& module_path = "");

// The reason in an error of the library, without the place in its source.
std::string SentencePieceReason(absl::string_view error);

// The text that pieces stand for: control pieces (padding, begin, end) stand
// for nothing, the unknown piece for " \u2047 ".
//   kInvalidArgument    an id that the model does not have
//   kResourceExhausted  memory ran out
absl::StatusOr<std::string> DecodePieces(const SentencePieceModel& model,
                                         const std::vector<int32_t>& ids);

}  // namespace etc

#endif  // ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_
