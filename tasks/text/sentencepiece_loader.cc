#include "tasks/text/sentencepiece_loader.h"

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

absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path) {
  ETC_ASSIGN_OR_RETURN(const auto* const module,
                       OpenModule<SentencePieceModule>(kModule, module_path));
  std::string mistake;
  SentencePieceModelPtr loaded(
      module->load(model.data(), model.size(), &mistake,
                   [](void* context, const char* message) {
                     *static_cast<std::string*>(context) = message;
                   }));
  if (loaded == nullptr) {
    // The library begins with a place in its source and what it asserts there,
    // and mostly has nothing to add.
    const size_t place_end = mistake.rfind(']');
    const absl::string_view reason = absl::StripAsciiWhitespace(
        place_end == std::string::npos
            ? absl::string_view(mistake)
            : absl::string_view(mistake).substr(place_end + 1));
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": should be a SentencePiece model, but is none",
                     reason.empty() ? "" : ": ", reason));
  }
  return loaded;
}

}  // namespace etc
