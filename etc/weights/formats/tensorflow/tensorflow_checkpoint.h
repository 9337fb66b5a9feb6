#ifndef ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_
#define ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/formats/tensorflow/sorted_table.h"
#include "etc/weights/formats/tensorflow/tensor_bundle.h"

namespace etc {

// What a file may ask of us (formats spec 0.2).
struct TensorFlowLimits {
  SortedTableLimits index;
  size_t tensors = 1'000'000;
  uint64_t all_names_bytes = uint64_t{256} << 20;
};

// The prefix P of the checkpoint P.index, P.data-00000-of-00001 that `path`
// means (formats spec 2.1): P itself, one of its files, or a directory, whose
// file `checkpoint` decides, or else its only index.
//   kNotFound         there is none
//   kInvalidArgument  several indices and no `checkpoint`; a V1 checkpoint
absl::StatusOr<std::string> TensorFlowCheckpointPrefix(const std::string& path);

// A TensorFlow V2 checkpoint. The index is read and checked as formats spec 2.5
// demands, also against the sizes of the data files; errors name the file, the
// tensor or the byte, and the rule ("TF9"). A tensor stored in slices is read
// as the whole that it is. Movable.
class TensorFlowCheckpoint final : public TensorSource {
 public:
  // What TensorFlowCheckpointPrefix says, kNotFound for a missing data file,
  // kInvalidArgument for TF1 to TF10 and TF12.
  static absl::StatusOr<TensorFlowCheckpoint> Open(
      const std::string& path, const TensorFlowLimits& limits = {});

  const std::string& path() const override { return path_; }
  // Without the path's other beginnings and ends: what comes before ".index".
  const std::string& prefix() const { return prefix_; }
  const std::vector<std::string>& names() const override { return names_; }
  // Empty: the format has none.
  const std::map<std::string, std::string>& metadata() const override {
    return metadata_;
  }
  const std::vector<std::string>& warnings() const override {
    return warnings_;
  }
  // Whether TensorFlow 2 wrote it by its objects: the names then are paths
  // through them, not those of the variables (formats spec 2.8).
  bool is_object_based() const { return is_object_based_; }

  // Points to a BundleEntry.
  absl::StatusOr<const TensorInfo*> Find(
      const std::string& name) const override;
  // Shard, place and size of the data as well (not of sliced tensors).
  absl::StatusOr<const BundleEntry*> FindEntry(const std::string& name) const;
  // Checks the checksum; kDataLoss (TF11) if it is another.
  absl::Status Read(const std::string& name, char* destination,
                    uint64_t size) const override;

 private:
  TensorFlowCheckpoint(std::string path, std::string prefix);

  std::string DataPath(int64_t shard) const;
  absl::Status ReadIndex(const TensorFlowLimits& limits);
  absl::Status AddRecord(absl::string_view key, absl::string_view record,
                         const TensorFlowLimits& limits);
  absl::Status CheckEntries();
  // The entry of each slice is found in slice_entries.
  absl::Status CheckSlices(const std::string& name,
                           const BundleEntry& entry) const;
  absl::Status ReadWhole(const std::string& name, const BundleEntry& entry,
                         char* destination) const;
  absl::Status ReadSlices(const std::string& name, const BundleEntry& entry,
                          char* destination) const;

  std::string path_;
  std::string prefix_;
  int64_t num_shards_ = 0;
  std::map<int64_t, uint64_t> shard_bytes_;  // of those that entries name
  // By key: tensors, and slices of tensors.
  std::map<std::string, BundleEntry> entries_;
  uint64_t all_names_bytes_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> warnings_;
  bool is_object_based_ = false;
};

// A tensor to be written.
struct TensorFlowTensor {
  std::string name;
  std::string dtype;  // as TensorInfo has it
  std::vector<int64_t> shape;
  // Hands the bytes to `write`, in one piece or several. Called once.
  std::function<absl::Status(const WriteFunction& write)> write_data;
};

// Writes prefix.data-00000-of-00001, in the order of names, then prefix.index
// (formats spec 2.6), each atomically. Between the two, an index that was there
// before fits no longer, which its checksums tell.
//   kInvalidArgument  a name that is there twice, empty or begins with a NUL; a
//                     dtype that cannot be; more or fewer bytes than dtype and
//                     shape demand
absl::Status WriteTensorFlowCheckpoint(
    const std::string& prefix, const std::vector<TensorFlowTensor>& tensors);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_TENSORFLOW_TENSORFLOW_CHECKPOINT_H_
