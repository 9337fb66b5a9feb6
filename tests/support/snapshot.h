#ifndef ETC_TESTS_SUPPORT_SNAPSHOT_H_
#define ETC_TESTS_SUPPORT_SNAPSHOT_H_

#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"

namespace etc {

// Everything below a directory, by its path in the directory: the contents of a
// file, "link to <target>" of a link, "" of a directory.
inline std::map<std::string, std::string> Snapshot(
    const std::string& directory) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> snapshot;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    snapshot[fs::path(path).lexically_relative(directory).string()] =
        entry.is_symlink()        ? "link to " + fs::read_symlink(path).string()
        : entry.is_regular_file() ? ReadFile(path).value()
                                  : "";
  }
  return snapshot;
}

// The same without the locks of runs, which say which process has, or had, the
// lock.
inline std::map<std::string, std::string> SnapshotWithoutLocks(
    const std::string& directory) {
  std::map<std::string, std::string> snapshot = Snapshot(directory);
  std::erase_if(snapshot, [](const auto& entry) {
    return std::filesystem::path(entry.first).filename() == "lock";
  });
  return snapshot;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_SNAPSHOT_H_
