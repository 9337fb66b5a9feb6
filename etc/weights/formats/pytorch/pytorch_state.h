#ifndef ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_
#define ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/formats/pytorch/pickle.h"
#include "etc/weights/formats/tensor_source.h"

namespace etc {

// The state dict in a pickle that torch.save wrote (doc/formats.md 6.4).

// One-dimensional memory that tensors are views of.
struct PytorchStorage {
  std::string dtype;  // Dtype::name; empty if it is not known
  uint64_t count = 0;

  bool is_known() const { return !dtype.empty(); }
  // The bytes of one element. The dtype must be known.
  uint64_t ElementBytes() const;
  uint64_t Bytes() const { return count * ElementBytes(); }
};

struct PytorchTensor : TensorInfo {
  std::string storage;  // its key
  // In elements. No element lies outside the storage.
  uint64_t offset = 0;
  std::vector<int64_t> strides;

  // Returns true if it is contiguous.
  bool IsDense() const;
};

struct PytorchState {
  std::map<std::string, PytorchStorage> storages;  // by key
  std::map<std::string, PytorchTensor> tensors;
  // The entries "args" and "cfg" beside the dictionary of tensors, the options
  // of fairseq's training, as JSON: objects and dictionaries are objects, and
  // null stands for what is no number, text, list or dictionary, or too deep,
  // or beyond 1 MiB of texts and keys. Behind 100,000 values lists and
  // dictionaries end.
  std::map<std::string, std::string> options;
  // One message for each entry that is not read: "\"epoch\" is no tensor".
  std::vector<std::string> skipped;
};

// ReadPickle with the globals that torch.save writes for tensors, parameters
// and dictionaries.
absl::StatusOr<Pickle> ReadPytorchPickle(absl::string_view bytes,
                                         const PickleLimits& limits = {});

// The tensors in the dictionary that was pickled, or in the dictionary that it
// holds under "state_dict" or "model". Anything else in it is skipped: objects,
// sparse or quantized tensors, elements of types that are not known.
//   kInvalidArgument  another object, a name that is too long, or a tensor that
//                     does not lie within its storage
absl::StatusOr<PytorchState> ReadPytorchState(const Pickle& pickle);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_FORMATS_PYTORCH_PYTORCH_STATE_H_
