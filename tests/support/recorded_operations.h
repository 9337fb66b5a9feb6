#ifndef ETC_TESTS_SUPPORT_RECORDED_OPERATIONS_H_
#define ETC_TESTS_SUPPORT_RECORDED_OPERATIONS_H_

#include <sys/types.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/directory.h"
#include "base/file_operations.h"

namespace etc {

// Makes the calls, remembers them as "sync checkpoints/last" with paths below
// `directory`, and makes one of them fail. Open() is not recorded.
class RecordedOperations : public FileOperations {
 public:
  explicit RecordedOperations(std::string directory)
      : directory_(std::move(directory)) {}

  // In order.
  std::vector<std::string> calls;
  // The call that begins like this fails, with this error.
  std::string failing_call;
  int failing_error = EIO;

  int Open(const std::string& path, int flags, mode_t mode) override {
    const int descriptor = FileOperations::Open(path, flags, mode);
    paths_[descriptor] = path;
    return descriptor;
  }
  ssize_t Write(int descriptor, const char* data, size_t size) override {
    return Fails("write", paths_[descriptor])
               ? -1
               : FileOperations::Write(descriptor, data, size);
  }
  int Truncate(int descriptor, off_t size) override {
    return Fails("truncate", paths_[descriptor])
               ? -1
               : FileOperations::Truncate(descriptor, size);
  }
  int Sync(int descriptor) override {
    return Fails("sync", paths_[descriptor]) ? -1
                                             : FileOperations::Sync(descriptor);
  }
  int Rename(const std::string& from, const std::string& to) override {
    return Fails("rename to", to) ? -1 : FileOperations::Rename(from, to);
  }
  int Exchange(const std::string& path, const std::string& other) override {
    return Fails("exchange", path) ? -1 : FileOperations::Exchange(path, other);
  }
  int Unlink(const std::string& path) override {
    return Fails("unlink", path) ? -1 : FileOperations::Unlink(path);
  }
  int MakeDirectory(const std::string& path) override {
    return Fails("mkdir", path) ? -1 : FileOperations::MakeDirectory(path);
  }
  int RemoveDirectory(const std::string& path) override {
    return Fails("rmdir", path) ? -1 : FileOperations::RemoveDirectory(path);
  }
  int SymbolicLink(const std::string& target,
                   const std::string& path) override {
    return Fails("symlink", path) ? -1
                                  : FileOperations::SymbolicLink(target, path);
  }

 private:
  bool Fails(absl::string_view name, const std::string& path) {
    std::string shown =
        path == directory_
            ? "."
            : absl::StrReplaceAll(path, {{directory_ + "/", ""}});
    // Whatever the process and the number.
    const size_t mark = shown.find(".realetc-");
    if (mark != std::string::npos) {
      shown = shown.substr(0, mark) + ".tmp";
    }
    calls.push_back(absl::StrCat(name, " ", shown));
    if (failing_call.empty() || !calls.back().starts_with(failing_call)) {
      return false;
    }
    errno = failing_error;
    return true;
  }

  const std::string directory_;
  std::map<int, std::string> paths_;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_RECORDED_OPERATIONS_H_
