#ifndef ETC_ETC_WEIGHTS_CHECKPOINT_H_
#define ETC_ETC_WEIGHTS_CHECKPOINT_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

class TensorSource;

// Tensors by name, in order of names.
using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of `module`, each name after `prefix`
// ("encoder."). They share the module's memory.
NamedTensors ModuleTensors(const torch::nn::Module& module,
                           const std::string& prefix = "");

// Writes the tensors, from whatever device and however strided, to a
// safetensors file, atomically. `metadata` is stored beside them. Takes no more
// memory than a copy of the largest tensor that is not contiguous on the CPU. A
// tensor under two names is stored twice.
//   kInvalidArgument  a dtype that is not floating, integer or bool
//   others            what WriteSafetensors says
// Throws c10::Error if a tensor is undefined or sparse.
absl::Status WriteTensors(const std::string& path, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata);

// The same to a TensorFlow V2 checkpoint, which keeps no metadata.
absl::Status WriteTensorFlowTensors(const std::string& prefix,
                                    const NamedTensors& tensors);

// The tensors of a checkpoint directory or file, in whichever format
// (OpenTensorSource). Only headers are read at first. Copies share the open
// files.
class TensorReader {
 public:
  // See OpenTensorSource for the errors.
  static absl::StatusOr<TensorReader> Open(const std::string& path);

  // What was asked for.
  const std::string& path() const;
  // Names of all tensors, in order.
  const std::vector<std::string>& Names() const;
  // What is odd about the files, though they can be read.
  const std::vector<std::string>& warnings() const;
  const std::map<std::string, std::string>& metadata() const;

  // kNotFound if there is no such tensor, nor another that the metadata give as
  // the same.
  absl::StatusOr<std::vector<int64_t>> Shape(const std::string& name) const;
  // A new tensor on the CPU, of the dtype in the file.
  //   kNotFound         as for Shape
  //   kInvalidArgument  a dtype that LibTorch or we have not (F8, U16, ...), a
  //                     BOOL other than 0 and 1
  //   others            what TensorSource::Read says
  absl::StatusOr<torch::Tensor> Read(const std::string& name) const;

  // What it reads from.
  const TensorSource& files() const { return *tensors_; }

 private:
  explicit TensorReader(std::shared_ptr<const TensorSource> tensors);
  std::shared_ptr<const TensorSource> tensors_;
};

// An error that names the first tensor with an element that is infinite or not
// a number, and `path`, where they come from (kInvalidArgument).
absl::Status CheckFinite(const std::string& path, const NamedTensors& tensors);

// What became of each tensor when loading. Names in order.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     // in the destination only
  std::vector<std::string> unexpected;  // in the file only
  std::vector<std::string> converted;   // of another floating dtype
};

// Copies tensors of the reader into `destination` by name, on whatever device.
// All or nothing: after an error the destination is as it was, for which all is
// read before anything is copied. Missing and unexpected ones are reported; the
// caller decides.
//   kInvalidArgument  tensors of another shape, or of another dtype unless both
//                     are floating (formats spec 0.5)
//   others            what TensorReader::Read says
absl::StatusOr<LoadReport> LoadTensors(const TensorReader& reader,
                                       const NamedTensors& destination);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_CHECKPOINT_H_
