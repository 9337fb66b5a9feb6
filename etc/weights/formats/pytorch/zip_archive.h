#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace etc {

// A file within a zip archive.
struct ZipEntry {
  uint64_t header = 0;  // byte of the archive at which its header begins
  uint64_t offset = 0;  // byte at which its contents begin
  uint64_t size = 0;    // bytes of the contents, as they are in the archive
  // "compressed (method 8, ...)" or "encrypted (...)"; empty: the contents are
  // stored as they are.
  std::string coding = {};
  // IEEE, as zlib's. Nothing in an archive of set_crc32_options(False): that of
  // all its entries with contents is 0.
  std::optional<uint32_t> crc32;
};

// The files in a zip archive as PyTorch writes it, by name: with or without
// ZIP64 (doc/formats.md 6.4). Each lies within the archive and shares no byte
// with another.
//   kInvalidArgument  what the spec rejects, with the file and the entry
absl::StatusOr<std::map<std::string, ZipEntry>> ReadZipDirectory(
    const RandomAccessFile& file);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_ZIP_ARCHIVE_H_
