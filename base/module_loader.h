#ifndef ETC_BASE_MODULE_LOADER_H_
#define ETC_BASE_MODULE_LOADER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace etc {

// A shared library of ours that is opened at run time, because it links a
// library of which LibTorch may bring another version under the same symbol
// names: it is opened with its own symbols first, and keeps them to itself.
struct ModuleFile {
  // The component that needs it, as messages name it.
  const char* user;
  // File name, without directory.
  const char* name;
  // The module's only symbol, "const void* <function>()": a struct that begins
  // with its version, an int32_t.
  const char* function;
  int32_t version;
  // A symbol of the module's library that a program with another version of it
  // has too, and how the files are called in which it does no harm. They are
  // looked at where a sanitizer refuses to open a module with its own symbols
  // first.
  const char* clashing_symbol;
  const char* library;
};

// Opens a module, which stays open to the end of the process, and returns its
// struct. The module is the file `path`, or, if that is empty, it is looked for
// along the program's RUNPATH and where build and installation put it in
// relation to the program.
//
//   kFailedPrecondition  it is absent or of another version (says where it was
//                        looked for); or the program is sanitized and has
//                        another version of the module's library
absl::StatusOr<const void*> OpenModuleFile(const ModuleFile& module,
                                           const std::string& path = "");

// The same, as the struct that it is.
template <typename Module>
absl::StatusOr<const Module*> OpenModule(const ModuleFile& module,
                                         const std::string& path = "") {
  ETC_ASSIGN_OR_RETURN(const void* const opened, OpenModuleFile(module, path));
  return static_cast<const Module*>(opened);
}

}  // namespace etc

#endif  // ETC_BASE_MODULE_LOADER_H_
