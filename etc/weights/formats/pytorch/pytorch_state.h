#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/weights/formats/pytorch/pickle.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// What a pickle written by torch.save says of tensors (formats spec 6.4).

// One-dimensional memory that tensors are views of.
struct PytorchStorage {
  std::string dtype;  // as TensorInfo has it
  uint64_t count = 0;

  uint64_t ElementBytes() const;
  uint64_t Bytes() const { return count * ElementBytes(); }
};

struct PytorchTensor : TensorInfo {
  std::string storage;  // its key
  // In elements. No element lies outside the storage.
  uint64_t offset = 0;
  std::vector<int64_t> strides;

  // Whether its elements lie one after the other, in order.
  bool IsDense() const;
};

struct PytorchState {
  std::map<std::string, PytorchStorage> storages;  // by key
  std::map<std::string, PytorchTensor> tensors;
  std::vector<std::string> skipped;  // names of what is no tensor
};

// Finds the tensors in a dictionary, or in the one within it that is called
// "state_dict" or "model". Everything is checked but the data.
// kInvalidArgument otherwise.
absl::StatusOr<PytorchState> ReadPytorchState(const Pickle& pickle);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_
