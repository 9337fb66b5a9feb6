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
// checkpoint (formats spec 2.2): keys in strictly rising order of their
// unsigned bytes, each with a value.

// What a file may ask of us (formats spec 0.2).
struct SortedTableLimits {
  uint64_t file_bytes = uint64_t{1} << 30;
  uint64_t block_bytes = uint64_t{64} << 20;  // uncompressed
  uint64_t key_bytes = 4096;
};

// Calls `visit` for each entry of the table, in order; its arguments do not
// outlive the call, its error ends the walk and is returned. No more than two
// blocks are in memory at a time.
//   kInvalidArgument  what formats spec 2.5 rejects as TF1 to TF6; the message
//                     has the file, the byte and the rule
absl::Status ReadSortedTable(
    const RandomAccessFile& file, const SortedTableLimits& limits,
    const std::function<absl::Status(absl::string_view key,
                                     absl::string_view value)>& visit);

// The bytes of the table with these entries, as LevelDB's own builder makes
// them with TensorFlow's parameters (formats spec 2.6). Not compressed.
std::string BuildSortedTable(const std::map<std::string, std::string>& entries);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_SORTED_TABLE_H_
