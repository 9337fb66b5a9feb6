#include "base/module_loader.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace etc {
namespace {

// AddressSanitizer and ThreadSanitizer refuse RTLD_DEEPBIND.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#else
constexpr bool kIsSanitized = false;
#endif

// The folder of the program, or of the shared library, that this code is in.
// Empty if the system does not say.
std::filesystem::path OwnFolder() {
  Dl_info info;
  void* map = nullptr;
  const auto* here = reinterpret_cast<const void*>(&OpenModuleFile);
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

// Paths at which a module may be, in the order of looking. A plain file name is
// searched for by the dynamic linker along the RUNPATH.
std::vector<std::string> ModulePaths(const std::string& name) {
  std::vector<std::string> paths = {name};
  if (const std::filesystem::path own = OwnFolder(); !own.empty()) {
    for (const absl::string_view folder :
         absl::StrSplit(ETC_MODULE_FOLDERS, ':')) {
      paths.push_back(
          (own / std::string(folder) / name).lexically_normal().string());
    }
  }
  return paths;
}

// The file in the program that has the module's clashing symbol and is not the
// module's own library, or "".
std::string ClashingFile(const ModuleFile& module) {
  void* const symbol = dlsym(RTLD_DEFAULT, module.clashing_symbol);
  Dl_info found = {};
  if (symbol == nullptr || dladdr(symbol, &found) == 0) {
    return "";
  }
  const std::filesystem::path file(found.dli_fname);
  return file.filename().string().starts_with(module.library) ? ""
                                                              : file.string();
}

// Returns the result of the module's function, or an error that describes the
// file's defect.
absl::StatusOr<const void*> TryToOpen(const ModuleFile& module,
                                      const std::string& path) {
  void* const handle = dlopen(
      path.c_str(), RTLD_NOW | RTLD_LOCAL | (kIsSanitized ? 0 : RTLD_DEEPBIND));
  if (handle == nullptr) {
    return absl::NotFoundError(dlerror());
  }
  auto* const function =
      reinterpret_cast<const void* (*)()>(dlsym(handle, module.function));
  if (function == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, ": is no module of RealETC"));
  }
  const void* const opened = function();
  const int32_t version = *static_cast<const int32_t*>(opened);
  if (version != module.version) {
    return absl::NotFoundError(absl::StrCat(
        path, ": should be of version ", module.version, ", but is ", version));
  }
  return opened;
}

}  // namespace

absl::StatusOr<const void*> OpenModuleFile(const ModuleFile& module,
                                           const std::string& path) {
  if (kIsSanitized) {
    if (const std::string file = ClashingFile(module); !file.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          module.user, " cannot be used in a program with AddressSanitizer or ",
          "ThreadSanitizer that links ", file, ", because ", module.name,
          " needs another version of what is in there, and the two would ",
          "clash"));
    }
  }
  std::vector<std::string> mistakes;
  for (const std::string& candidate : path.empty()
                                          ? ModulePaths(module.name)
                                          : std::vector<std::string>{path}) {
    absl::StatusOr<const void*> opened = TryToOpen(module, candidate);
    if (opened.ok()) {
      return opened;
    }
    mistakes.emplace_back(opened.status().message());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      module.user, " needs ", module.name,
      ", which could not be opened: ", absl::StrJoin(mistakes, "; ")));
}

}  // namespace etc
