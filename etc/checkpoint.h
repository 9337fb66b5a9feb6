#ifndef ETC_ETC_CHECKPOINT_H_
#define ETC_ETC_CHECKPOINT_H_

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace etc {

// Tensors by name, in order of names.
using NamedTensors = std::map<std::string, torch::Tensor>;

// The parameters and buffers of `module`, each name after `prefix`
// ("encoder."). They share the module's memory.
NamedTensors ModuleTensors(const torch::nn::Module& module,
                           const std::string& prefix = "");

// Writes the tensors, from whatever device, to a safetensors file, atomically.
// `metadata` is stored beside them.
absl::Status WriteTensors(const std::string& path, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata);

// The safetensors of a checkpoint directory: `model.safetensors`, or the shards
// that `model.safetensors.index.json` lists (formats spec 1.6); or the one file
// that `path` names.
class TensorReader {
 public:
  static absl::StatusOr<TensorReader> Open(const std::string& path);

  // Names of all tensors, and the shape of one.
  std::vector<std::string> Names() const;
  absl::StatusOr<std::vector<int64_t>> Shape(const std::string& name) const;
  // A new tensor of the dtype in the file.
  absl::StatusOr<torch::Tensor> Read(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Impl;
  explicit TensorReader(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// What became of each tensor when loading.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     // in the destination only
  std::vector<std::string> unexpected;  // in the file only
  std::vector<std::string> converted;   // of another floating dtype
};

// Copies tensors of the reader into `destination` by name. All or nothing: any
// tensor of another shape or of integers is an error and leaves the destination
// untouched. Missing and unexpected ones are reported; the caller decides.
absl::StatusOr<LoadReport> LoadTensors(const TensorReader& reader,
                                       const NamedTensors& destination);

}  // namespace etc

#endif  // ETC_ETC_CHECKPOINT_H_
