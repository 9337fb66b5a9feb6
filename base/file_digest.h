#ifndef ETC_BASE_FILE_DIGEST_H_
#define ETC_BASE_FILE_DIGEST_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// Identifies a file by its contents, independent of its path.
struct FileDigest {
  uint64_t bytes = 0;
  // "sha256:" and the digits of all of it, or "sha256-of-samples:" and those of
  // parts of it, joined.
  std::string digest;

  bool operator==(const FileDigest&) const = default;
};

struct FileDigestOptions {
  // Larger files are sampled: a change of size is always seen, a change that
  // keeps the size only where it touches a sample.
  uint64_t largest_whole = 1'000'000'000;
  // Bytes of a sample, and how many there are: at the beginning, at the end and
  // at even distances between.
  uint64_t sample_bytes = uint64_t{1} << 20;
  uint64_t num_samples = 64;
};

// Bytes that DigestFile reads of a file of `bytes`.
uint64_t BytesToDigest(uint64_t bytes, const FileDigestOptions& options = {});

// Called after each MiB read; an error ends the reading and is returned.
using DigestListener = std::function<absl::Status(uint64_t bytes)>;

// The digest of the regular file at `path`. `listener` may be null.
absl::StatusOr<FileDigest> DigestFile(const std::string& path,
                                      const DigestListener& listener = nullptr,
                                      const FileDigestOptions& options = {});

}  // namespace etc

#endif  // ETC_BASE_FILE_DIGEST_H_
