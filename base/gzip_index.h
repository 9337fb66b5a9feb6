#ifndef ETC_BASE_GZIP_INDEX_H_
#define ETC_BASE_GZIP_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

namespace etc {

// A place in a gzip file where reading can begin: between two blocks of a
// deflate stream, which refers back to at most the preceding 32 KiB.
struct GzipPoint {
  uint64_t offset = 0;       // bytes of the contents before it
  uint64_t file_offset = 0;  // bytes of the file before it...
  int bits = 0;        // ...of the last of which so many bits belong to it
  std::string window;  // the contents just before it, deflated
};

// The result of scanning a gzip file when it is opened.
struct GzipIndex {
  uint64_t size = 0;  // bytes of the contents
  std::vector<GzipPoint> points;
};

}  // namespace etc

#endif  // ETC_BASE_GZIP_INDEX_H_
