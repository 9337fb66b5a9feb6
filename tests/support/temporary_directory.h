#ifndef ETC_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
#define ETC_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace etc {

// A new empty directory that is gone, with all in it, at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name =
        (std::filesystem::temp_directory_path() / "realetc-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot create " + name);
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file in the directory and returns its path.
  std::string Write(const std::string& name, const std::string& contents) {
    std::ofstream stream(File(name), std::ios::binary);
    stream << contents;
    if (!stream.flush()) {
      throw std::runtime_error("cannot write " + File(name));
    }
    return File(name);
  }

 private:
  std::string path_;
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
