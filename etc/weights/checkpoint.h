#ifndef ETC_ETC_WEIGHTS_CHECKPOINT_H_
#define ETC_ETC_WEIGHTS_CHECKPOINT_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

struct TensorInfo;
class TensorSource;

// Tensors by name, in order of names.
using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of `module`, each name after `prefix`
// ("encoder."). They share the module's memory.
NamedTensors ModuleTensors(const torch::nn::Module& module,
                           const std::string& prefix = "");

// Writes the tensors, of any device and strides, with `metadata` to a
// safetensors file, atomically. Uses no more memory than a copy of the largest
// tensor that is not contiguous on the CPU. A tensor under two names is stored
// twice.
//   kInvalidArgument  a dtype that is not floating, integer or bool
//   others            what writing the file gives
// Throws c10::Error if a tensor is undefined or sparse.
absl::Status WriteTensors(const std::string& path, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata);

// The same to a TensorFlow V2 checkpoint, which has no metadata.
absl::Status WriteTensorFlowTensors(const std::string& prefix,
                                    const NamedTensors& tensors);

// Reads the tensors of a checkpoint directory or file of any format. Data are
// read when they are asked for. Copies share the open files.
class TensorReader {
 public:
  // `path` is a file or directory of safetensors or of Python's torch.save,
  // also in shards, or a TensorFlow V2 checkpoint (doc/weights.md). What C++
  // torch::save writes is none of these: WriteTensors is for that.
  //   kNotFound         there are no weights, or a shard is missing
  //   kInvalidArgument  the files are malformed; says where (doc/formats.md)
  static absl::StatusOr<TensorReader> Open(const std::string& path);
  explicit TensorReader(std::shared_ptr<const TensorSource> files);

  // The file or directory that was opened.
  const std::string& path() const;
  // Names of all tensors, in ascending order.
  const std::vector<std::string>& Names() const;
  // Oddities of the files that are no reason to refuse them.
  const std::vector<std::string>& warnings() const;
  // Texts that the files store beside the tensors: the metadata of safetensors;
  // of a torch.save with tensors as "model" the entries "args" and "cfg", as
  // JSON (pytorch/pytorch_state.h).
  const std::map<std::string, std::string>& metadata() const;
  // Finds a tensor, for code that includes etc/weights/formats/tensor_source.h.
  // The pointer is the same for two names of one tensor, and valid as long as
  // the files are open. kNotFound if there is no such tensor.
  absl::StatusOr<const TensorInfo*> Find(const std::string& name) const;
  // kNotFound as for Find.
  absl::StatusOr<std::vector<int64_t>> Shape(const std::string& name) const;

  // A new tensor on the CPU, of the dtype in the file.
  //   kNotFound         as for Find
  //   kInvalidArgument  a dtype that LibTorch lacks or we do not support (F8,
  //                     U16, ...), a BOOL other than 0 and 1
  //   kDataLoss         the checksum is not that of the data
  absl::StatusOr<torch::Tensor> Read(const std::string& name) const;

 private:
  std::shared_ptr<const TensorSource> files_;
};

// An error that names the first tensor with an element that is infinite or not
// a number, and `path`, the file it is from (kInvalidArgument).
absl::Status CheckFinite(const std::string& path, const NamedTensors& tensors);

// Outcome of loading for each tensor. Names in order.
struct LoadReport {
  std::vector<std::string> loaded = {};
  std::vector<std::string> missing = {};     // in the destination only
  std::vector<std::string> unexpected = {};  // in the file only
  std::vector<std::string> converted = {};   // of another floating dtype
  // Messages for people; of LoadEncoderWeights (convert.h) alone.
  std::vector<std::string> notices = {};
};

// The names that the file and the destination must have in common.
enum class NameMatch {
  kAny,          // the others are reported
  kDestination,  // those of the destination
  kBoth,         // all
};

// Copies the tensors that have the same name in the file and in
// `destination`, on any device; in safetensors a name may also be found by the
// metadata (doc/formats.md 1.3). All or nothing: names, shapes and dtypes are
// checked first, then all tensors are read, then all are copied; after an error
// the destination is unchanged. Names in `optional` may be on one side only,
// whatever `match` is.
//   kInvalidArgument  names that `match` does not allow; tensors of another
//                     shape; of another dtype unless both are floating
//                     (doc/formats.md 0.5)
//   others            errors of TensorReader::Read
absl::StatusOr<LoadReport> LoadTensors(
    const TensorReader& reader, const NamedTensors& destination,
    NameMatch match = NameMatch::kAny,
    const std::set<std::string>& optional = {});

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_CHECKPOINT_H_
