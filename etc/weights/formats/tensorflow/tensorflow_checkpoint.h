#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/formats/tensorflow/sorted_table.h"
#include "etc/weights/formats/tensorflow/tensor_bundle.h"

namespace etc {

// The tensor that TensorFlow 2 adds if it writes a checkpoint from objects: the
// names then are paths of attributes, not names of variables (doc/formats.md
// 2.8).
inline constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// The largest checkpoint that is read (doc/formats.md 0.2).
struct TensorFlowLimits {
  SortedTableLimits index;
  size_t tensors = 1'000'000;
  uint64_t all_names_bytes = uint64_t{256} << 20;
};

// The prefix P of a checkpoint's files P.index, P.data-00000-of-00001, ...
// (doc/formats.md 2.1). `path` is P, one of the files, or a directory: there
// the file `checkpoint` names P, or there is just one index.
//   kNotFound         there is none
//   kInvalidArgument  several indices and no `checkpoint`; a V1 checkpoint
absl::StatusOr<std::string> TensorFlowCheckpointPrefix(const std::string& path);

// Returns true of a file that is in no other format: its name is that of an
// index or of data, or it is a V1 checkpoint, a table under another name.
bool IsTensorFlowFile(const std::string& path);

// A TensorFlow V2 checkpoint. Its index is checked as doc/formats.md 2.5
// demands, also against the sizes of the data files; errors name the file, the
// tensor or the byte, and the rule ("2.5.9"). Movable.
class TensorFlowCheckpoint final : public TensorSource {
 public:
  // Errors of TensorFlowCheckpointPrefix, kNotFound for a missing data file,
  // kInvalidArgument for doc/formats.md 2.5.1 to 2.5.10 and 2.5.12.
  static absl::StatusOr<TensorFlowCheckpoint> Open(
      const std::string& path, const TensorFlowLimits& limits = {});

  // Points to a BundleEntry.
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  // Find with shard, offset and size of the data.
  absl::StatusOr<const BundleEntry*> FindEntry(const std::string& name) const;
  // kDataLoss (doc/formats.md 2.5.11) if the data have another checksum.
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  TensorFlowCheckpoint(std::string path, std::string prefix);

  std::string DataPath(int64_t shard) const;
  absl::Status ReadIndex(const TensorFlowLimits& limits);
  absl::Status AddRecord(absl::string_view key, absl::string_view record,
                         const TensorFlowLimits& limits);
  absl::Status CheckEntries();

  std::string prefix_;
  int64_t num_shards_ = 0;
  std::map<std::string, BundleEntry> entries_;  // by name
  uint64_t all_names_bytes_ = 0;
};

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_
