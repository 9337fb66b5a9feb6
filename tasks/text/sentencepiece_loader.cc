#include "tasks/text/sentencepiece_loader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/module_loader.h"
#include "base/status_macros.h"

namespace etc {
namespace {

constexpr ModuleFile kModule = {
    .user = "SentencePiece",
    .name = "realetc_sentencepiece.so",
    .function = kSentencePieceModuleFunction,
    .version = kSentencePieceModuleVersion,
    .clashing_symbol = "_ZN6google8protobuf8internal13VerifyVersionEiiPKc",
    .library = "libsentencepiece.so",
};

}  // namespace

absl::StatusOr<const SentencePieceModule*> OpenSentencePieceModule(
    const std::string& module_path) {
  return OpenModule<SentencePieceModule>(kModule, module_path);
}

std::string SentencePieceReason(absl::string_view error) {
  // The library begins with a place in its source and what it asserts there,
  // and mostly has nothing to add.
  const size_t place_end = error.rfind(']');
  return std::string(absl::StripAsciiWhitespace(
      place_end == absl::string_view::npos ? error
                                           : error.substr(place_end + 1)));
}

absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path) {
  ETC_ASSIGN_OR_RETURN(const auto* const module,
                       OpenSentencePieceModule(module_path));
  std::string mistake;
  SentencePieceModelPtr loaded(
      module->load(model.data(), model.size(), &mistake,
                   [](void* context, const char* message) {
                     *static_cast<std::string*>(context) = message;
                   }));
  if (loaded == nullptr) {
    const std::string reason = SentencePieceReason(mistake);
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": should be a SentencePiece model, but is none",
                     reason.empty() ? "" : ": ", reason));
  }
  return loaded;
}

absl::StatusOr<std::string> DecodePieces(const SentencePieceModel& model,
                                         const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= model.size()) {
      return InvalidArgument("piece ", id, " should be in [0, ", model.size(),
                             "), the vocabulary");
    }
  }
  std::string text;
  const bool decoded =
      model.Decode(ids.data(), ids.size(), &text,
                   [](void* context, const char* bytes, size_t size) {
                     static_cast<std::string*>(context)->assign(bytes, size);
                   });
  return decoded ? absl::StatusOr<std::string>(std::move(text))
                 : absl::ResourceExhaustedError(
                       "out of memory while decoding pieces");
}

}  // namespace etc
