#ifndef ETC_BASE_GZIP_INFLATER_H_
#define ETC_BASE_GZIP_INFLATER_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/gzip_index.h"

namespace etc {

// Walks forward through the contents of a gzip file, over all its members.
// Memory: about 64 KiB.
class GzipInflater {
 public:
  // Inflates from the first byte, or from a point. From the first byte, the
  // checksum and length at the end of each member are verified; from a point,
  // those of all members but the first. `file` must outlive it.
  static absl::StatusOr<std::unique_ptr<GzipInflater>> AtBeginning(
      const RandomAccessFile* file);
  static absl::StatusOr<std::unique_ptr<GzipInflater>> AtPoint(
      const RandomAccessFile* file, const GzipPoint& point);
  ~GzipInflater();
  GzipInflater(const GzipInflater&) = delete;
  GzipInflater& operator=(const GzipInflater&) = delete;

  // The position in the contents, and in the file.
  uint64_t offset() const { return offset_; }
  uint64_t file_offset() const { return next_read_ - stream_.avail_in; }
  // Returns true at the end of the contents.
  bool at_end() const { return at_end_; }

  // Puts the bytes that follow at `destination`, at most `length`, of which
  // there must be at least 1, and returns how many. That may be none before the
  // end: it stops between blocks too.
  //   kDataLoss  the file is damaged, or ends too early
  absl::StatusOr<size_t> Next(char* destination, size_t length);

  // Returns true between two blocks, where MakePoint() makes a point.
  bool at_point() const { return at_point_; }
  absl::StatusOr<GzipPoint> MakePoint();

 private:
  explicit GzipInflater(const RandomAccessFile* file) : file_(file) {}

  absl::Status Start(int window_bits);
  absl::Status RestoreWindow(const GzipPoint& point);
  // Makes sure that there is input, unless the file is at its end.
  absl::Status Fill();
  // Fill(); the end of the file is an error.
  absl::Status Require();
  absl::Status EndMember();
  absl::Status Damaged(int result) const;

  const RandomAccessFile* const file_;
  z_stream stream_ = {};
  bool is_started_ = false;
  std::string input_;
  uint64_t next_read_ = 0;  // byte of the file
  uint64_t offset_ = 0;
  // Without the header and the trailer of a member: after a point.
  bool is_raw_ = false;
  bool at_point_ = false;
  bool at_end_ = false;
};

}  // namespace etc

#endif  // ETC_BASE_GZIP_INFLATER_H_
