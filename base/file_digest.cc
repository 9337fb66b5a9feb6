#include "base/file_digest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Adds `length` bytes from `begin` on, in pieces.
absl::Status AddRange(const RandomAccessFile& file, uint64_t begin,
                      uint64_t length, const DigestListener& listener,
                      Sha256* sha256) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  for (uint64_t done = 0; done < length;) {
    const uint64_t piece = std::min(kPiece, length - done);
    ETC_ASSIGN_OR_RETURN(const std::string bytes,
                         file.Read(begin + done, piece));
    sha256->Update(bytes);
    done += piece;
    if (listener) {
      ETC_RETURN_IF_ERROR(listener(piece));
    }
  }
  return absl::OkStatus();
}

bool IsSampled(uint64_t bytes, const FileDigestOptions& options) {
  // Samples of all of it would be the whole file in another order.
  return bytes > options.largest_whole &&
         bytes > options.num_samples * options.sample_bytes &&
         options.num_samples > 1;
}

}  // namespace

uint64_t BytesToDigest(uint64_t bytes, const FileDigestOptions& options) {
  return IsSampled(bytes, options) ? options.num_samples * options.sample_bytes
                                   : bytes;
}

absl::StatusOr<FileDigest> DigestFile(const std::string& path,
                                      const DigestListener& listener,
                                      const FileDigestOptions& options) {
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(path));
  Sha256 sha256;
  if (!IsSampled(file.size(), options)) {
    ETC_RETURN_IF_ERROR(AddRange(file, 0, file.size(), listener, &sha256));
    return FileDigest{file.size(), absl::StrCat("sha256:", sha256.HexDigest())};
  }
  const uint64_t last = file.size() - options.sample_bytes;
  for (uint64_t i = 0; i < options.num_samples; ++i) {
    // Not last * i / (num_samples - 1), which large files would overflow.
    const uint64_t intervals = options.num_samples - 1;
    const uint64_t begin =
        last / intervals * i + last % intervals * i / intervals;
    ETC_RETURN_IF_ERROR(
        AddRange(file, begin, options.sample_bytes, listener, &sha256));
  }
  return FileDigest{file.size(),
                    absl::StrCat("sha256-of-samples:", sha256.HexDigest())};
}

}  // namespace etc
