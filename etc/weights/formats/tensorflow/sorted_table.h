#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace etc {

// LevelDB's sorted string table, in which TensorFlow keeps the index of a
// checkpoint (doc/formats.md 2.2): keys in strictly ascending order of their
// unsigned bytes, each with a value.

// The largest table that is read (doc/formats.md 0.2).
struct SortedTableLimits {
  uint64_t file_bytes = uint64_t{1} << 30;
  uint64_t block_bytes = uint64_t{64} << 20;  // uncompressed
  uint64_t key_bytes = 4096;
};

// Returns true if the file ends in the footer of a table. Cheap: the rest is
// not looked at.
bool EndsAsSortedTable(const RandomAccessFile& file);

// Calls `visit` for each entry of the table, in order. Its arguments are valid
// during the call only; its first error ends the reading and is returned. At
// most two blocks are in memory at a time.
//   kInvalidArgument  what doc/formats.md 2.5.1 to 2.5.6 reject; the message
//                     has the file, the byte and the rule
absl::Status ReadSortedTable(
    const RandomAccessFile& file, const SortedTableLimits& limits,
    const std::function<absl::Status(absl::string_view key,
                                     absl::string_view value)>& visit);

// The bytes of a table with these entries, uncompressed: the same as those of
// LevelDB's own builder with TensorFlow's parameters (doc/formats.md 2.6).
std::string BuildSortedTable(const std::map<std::string, std::string>& entries);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_H_
