#ifndef ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_
#define ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/sentencepiece_module.h"

namespace etc {

struct SentencePieceModelDeleter {
  void operator()(SentencePieceModel* model) const { model->Destroy(); }
};
using SentencePieceModelPtr =
    std::unique_ptr<SentencePieceModel, SentencePieceModelDeleter>;

// Opens the module realetc_sentencepiece.so and loads a model into it. The
// module is the file `module_path`, or, if that is empty, it is looked for
// along the program's RUNPATH and where build and installation put it in
// relation to the program. It stays open to the end of the process.
//
//   model    bytes of a .model file, a serialized ModelProto
//   source   what messages call it
//   kInvalidArgument     SentencePiece does not take it for a model
//   kFailedPrecondition  the module is absent or of another version; or the
//                        program is sanitized and has LibTorch's protobuf,
//                        between which and SentencePiece's only RTLD_DEEPBIND
//                        separates, which AddressSanitizer refuses
absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path = "");

}  // namespace etc

#endif  // ETC_TASKS_TEXT_SENTENCEPIECE_LOADER_H_
