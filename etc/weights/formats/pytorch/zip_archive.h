#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace etc {

// A file within a zip archive, stored as it is.
struct ZipEntry {
  uint64_t header = 0;  // where its header is in the archive
  uint64_t offset = 0;  // where its bytes are
  uint64_t size = 0;
  uint32_t crc32 = 0;  // IEEE, as zlib's
};

// The files in a zip archive as PyTorch writes it, by name: ZIP64, nothing
// compressed or encrypted (formats spec 6.4). Each lies within the archive and
// shares no byte with another.
//   kInvalidArgument  what the spec rejects, with the file and the entry
absl::StatusOr<std::map<std::string, ZipEntry>> ReadZipDirectory(
    const RandomAccessFile& file);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_
