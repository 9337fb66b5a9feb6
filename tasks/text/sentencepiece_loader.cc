#include "tasks/text/sentencepiece_loader.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace etc {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsAddressSanitized = true;
#else
constexpr bool kIsAddressSanitized = false;
#endif

// The folder of the program, or of the shared library, that this code is in.
// Empty if the system does not say.
std::filesystem::path OwnFolder() {
  Dl_info info;
  void* map = nullptr;
  const auto* here = reinterpret_cast<const void*>(&LoadSentencePieceModel);
  if (dladdr1(here, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) {
    return {};
  }
  const std::string name = static_cast<const link_map*>(map)->l_name;
  // The program itself has no name in the map.
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::canonical(name.empty() ? "/proc/self/exe" : name, error);
  return error ? std::filesystem::path() : own.parent_path();
}

// Where the module may be, in the order of looking. A plain file name is
// searched for by the dynamic linker along the RUNPATH.
std::vector<std::string> ModulePaths(const std::string& module_path) {
  if (!module_path.empty()) {
    return {module_path};
  }
  std::vector<std::string> paths = {ETC_SENTENCEPIECE_MODULE_FILE};
  if (const std::filesystem::path own = OwnFolder(); !own.empty()) {
    for (const absl::string_view folder :
         absl::StrSplit(ETC_SENTENCEPIECE_MODULE_FOLDERS, ':')) {
      paths.push_back(
          (own / std::string(folder) / ETC_SENTENCEPIECE_MODULE_FILE)
              .lexically_normal());
    }
  }
  return paths;
}

absl::StatusOr<const SentencePieceModule*> OpenModule(
    const std::string& module_path) {
  int flags = RTLD_NOW | RTLD_LOCAL;
  if (!kIsAddressSanitized) {
    flags |= RTLD_DEEPBIND;
  } else if (dlsym(RTLD_DEFAULT,
                   "_ZN6google8protobuf8internal13VerifyVersionEiiPKc") !=
             nullptr) {
    return absl::FailedPreconditionError(
        "SentencePiece cannot be used in a program with AddressSanitizer that "
        "links LibTorch, because their versions of protobuf would clash");
  }
  std::vector<std::string> mistakes;
  for (const std::string& path : ModulePaths(module_path)) {
    void* handle = dlopen(path.c_str(), flags);
    if (handle == nullptr) {
      mistakes.emplace_back(dlerror());
      continue;
    }
    auto* function = reinterpret_cast<SentencePieceModuleFunction*>(
        dlsym(handle, kSentencePieceModuleFunction));
    if (function == nullptr) {
      mistakes.push_back(absl::StrCat(path, ": is no module of RealETC"));
    } else if (function()->version != kSentencePieceModuleVersion) {
      mistakes.push_back(absl::StrCat(path, ": should be of version ",
                                      kSentencePieceModuleVersion, ", but is ",
                                      function()->version));
    } else {
      return function();
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "SentencePiece needs ", ETC_SENTENCEPIECE_MODULE_FILE,
      ", which could not be opened: ", absl::StrJoin(mistakes, "; ")));
}

}  // namespace

absl::StatusOr<SentencePieceModelPtr> LoadSentencePieceModel(
    absl::string_view model, const std::string& source,
    const std::string& module_path) {
  ETC_ASSIGN_OR_RETURN(const SentencePieceModule* const module,
                       OpenModule(module_path));
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
