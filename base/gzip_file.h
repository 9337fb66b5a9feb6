#ifndef ETC_BASE_GZIP_FILE_H_
#define ETC_BASE_GZIP_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/gzip_index.h"

namespace etc {

// First bytes of a gzip file.
inline constexpr char kGzipMagic[] = "\x1f\x8b";

// The contents of a gzip file (RFC 1952) of any number of members, for
// positioned reads. Movable.
//
// A deflate stream can be read from its beginning only, unless one knows, at
// some place between two blocks, the 32 KiB that came before. Opening inflates
// the whole file once, checks it, and keeps such places every few MiB. A read
// begins at the last of them before its offset, or goes on where an earlier
// read ended, so that reading in order inflates everything only once. Opening
// costs about 3 s per GB of contents, a read anywhere about 4 ms.
//
// Memory: per GB of contents 240 places, whose 32 KiB are kept deflated: about
// 2 MB for text, 8 MB at most. Besides, up to 4 inflaters of 64 KiB that wait
// where a read ended.
class GzipFile {
 public:
  struct Options {
    // Contents between two places, at least.
    uint64_t span_bytes = uint64_t{4} << 20;
  };

  // Takes the contents, piece by piece, while the file is opened; of the file
  // itself, `file_bytes` have been read. Its error is returned.
  using Consumer = std::function<absl::Status(absl::string_view contents,
                                              uint64_t file_bytes)>;

  // Returns true if `file` begins with the magic bytes of gzip.
  static absl::StatusOr<bool> IsGzip(const RandomAccessFile& file);

  //   kDataLoss  damaged, cut off, or followed by something else; the message
  //              names the file and the byte
  static absl::StatusOr<GzipFile> Open(RandomAccessFile file,
                                       const Consumer& consume,
                                       const Options& options);

  // Opens a file by the index that Open has made of the same file, without
  // reading it.
  GzipFile(RandomAccessFile file, GzipIndex index);

  GzipFile(GzipFile&& other) noexcept;
  GzipFile& operator=(GzipFile&& other) noexcept;
  ~GzipFile();

  const std::string& path() const;
  // Bytes of the contents.
  uint64_t size() const { return index().size; }
  // Bytes of the file itself.
  uint64_t file_size() const;
  const GzipIndex& index() const;

  // Like RandomAccessFile::Read, in bytes of the contents. Safe to call from
  // several threads. kDataLoss also if the file has changed so that it cannot
  // be inflated any more.
  absl::Status Read(uint64_t offset, uint64_t length, char* destination) const;
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t length) const;

 private:
  class Contents;
  explicit GzipFile(std::unique_ptr<Contents> contents);

  absl::Status CheckRange(uint64_t offset, uint64_t length) const;

  std::unique_ptr<Contents> contents_;
};

// The whole of a regular file, unpacked if its first bytes are those of gzip.
//   kDataLoss           as of GzipFile::Open
//   kResourceExhausted  it has more than `max_bytes`, unpacked
// and errors of RandomAccessFile::Open.
absl::StatusOr<std::string> ReadUnpackedFile(const std::string& path,
                                             uint64_t max_bytes = uint64_t{1}
                                                                  << 30);

}  // namespace etc

#endif  // ETC_BASE_GZIP_FILE_H_
