#include "etc/weights/pytorch_writer.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <bit>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

// The name of a class of storages; nullptr for dtypes that are not written.
const char* StorageClass(torch::ScalarType type) {
  switch (type) {
    case torch::kDouble:
      return "DoubleStorage";
    case torch::kFloat:
      return "FloatStorage";
    case torch::kHalf:
      return "HalfStorage";
    case torch::kBFloat16:
      return "BFloat16Storage";
    case torch::kLong:
      return "LongStorage";
    case torch::kInt:
      return "IntStorage";
    case torch::kBool:
      return "BoolStorage";
    default:
      return nullptr;
  }
}

// Writes opcodes of pickle's protocol 2, named as in Python's pickletools.
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  std::string Finish() && { return std::move(bytes_) + '.'; }

  void Mark() { bytes_ += '('; }
  void BeginDict() { bytes_ += "}("; }
  void EndDict() { bytes_ += 'u'; }
  // Behind as many values as were pushed since the last mark.
  void EndTuple() { bytes_ += 't'; }

  void Global(absl::string_view module, absl::string_view name) {
    absl::StrAppend(&bytes_, "c", module, "\n", name, "\n");
  }
  void EmptyOrderedDict() {
    Global("collections", "OrderedDict");
    bytes_ += ")R";
  }

  void Text(absl::string_view text) {
    bytes_ += 'X';
    AppendFixed(static_cast<uint32_t>(text.size()), &bytes_);
    absl::StrAppend(&bytes_, text);
  }
  void Integer(int64_t value) {
    if (value >= std::numeric_limits<int32_t>::min() &&
        value <= std::numeric_limits<int32_t>::max()) {
      bytes_ += 'J';
      AppendFixed(static_cast<int32_t>(value), &bytes_);
    } else {
      bytes_ += "\x8a\x08";
      AppendFixed(value, &bytes_);
    }
  }
  void Bool(bool value) { bytes_ += value ? '\x88' : '\x89'; }

  void Value(const Json& value) {
    if (value.is_boolean()) {
      Bool(value.get<bool>());
    } else if (value.is_number_integer()) {
      Integer(value.get<int64_t>());
    } else if (value.is_number()) {
      bytes_ += 'G';
      AppendFixed(
          __builtin_bswap64(std::bit_cast<uint64_t>(value.get<double>())),
          &bytes_);
    } else if (value.is_string()) {
      Text(value.get_ref<const std::string&>());
    } else if (value.is_array()) {
      bytes_ += "](";
      for (const Json& item : value) {
        Value(item);
      }
      bytes_ += 'e';
    } else if (value.is_object()) {
      BeginDict();
      for (const auto& [name, item] : value.items()) {
        Text(name);
        Value(item);
      }
      EndDict();
    } else {
      bytes_ += 'N';
    }
  }

  // argparse.Namespace with these attributes.
  void Namespace(const Json& attributes) {
    Global("argparse", "Namespace");
    bytes_ += ")\x81";
    Value(attributes);
    bytes_ += 'b';
  }

  // torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides,
  // requires_grad, hooks), the storage by its persistent id.
  void Tensor(const torch::Tensor& tensor, const std::string& key) {
    Global("torch._utils", "_rebuild_tensor_v2");
    Mark();
    Mark();
    Text("storage");
    Global("torch", StorageClass(tensor.scalar_type()));
    Text(key);
    Text("cpu");
    Integer(tensor.numel());
    EndTuple();
    bytes_ += 'Q';
    Integer(0);
    Sizes(tensor.sizes());
    Sizes(tensor.strides());
    Bool(false);
    EmptyOrderedDict();
    EndTuple();
    bytes_ += 'R';
  }

 private:
  void Sizes(torch::IntArrayRef sizes) {
    Mark();
    for (const int64_t size : sizes) {
      Integer(size);
    }
    EndTuple();
  }

  std::string bytes_;
};

// Tensors as they stand in the file.
using TensorList = std::vector<std::pair<std::string, torch::Tensor>>;

std::string PickleOf(const Json& entries,
                     const std::set<std::string>& namespaces,
                     const std::string& tensors_name,
                     const TensorList& tensors) {
  PickleWriter pickle;
  pickle.BeginDict();
  for (const auto& [name, entry] : entries.items()) {
    pickle.Text(name);
    if (namespaces.contains(name)) {
      pickle.Namespace(entry);
    } else {
      pickle.Value(entry);
    }
  }
  pickle.Text(tensors_name);
  pickle.EmptyOrderedDict();
  pickle.Mark();
  for (size_t i = 0; i < tensors.size(); ++i) {
    pickle.Text(tensors[i].first);
    pickle.Tensor(tensors[i].second, absl::StrCat(i));
  }
  pickle.EndDict();
  pickle.EndDict();
  return std::move(pickle).Finish();
}

// Writes the archive by `write`, whose first error is returned. LibTorch's
// writer is never told of it: it would throw, and once more when destroyed.
absl::Status WriteArchive(const std::string& pickle, const TensorList& tensors,
                          const WriteFunction& write) {
  absl::Status status;
  try {
    caffe2::serialize::PyTorchStreamWriter writer(
        [&](const void* bytes, size_t size) -> size_t {
          if (status.ok()) {
            status = write({static_cast<const char*>(bytes), size});
          }
          return size;
        });
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
      const torch::Tensor& tensor = tensors[i].second;
      writer.writeRecord(absl::StrCat("data/", i), tensor.data_ptr(),
                         tensor.nbytes());
    }
    writer.writeEndOfFile();
  } catch (const std::exception& error) {
    status.Update(absl::InternalError(error.what()));
  }
  return status;
}

}  // namespace

absl::Status WritePytorchFile(const std::string& path, const Json& entries,
                              const std::set<std::string>& namespaces,
                              const std::string& tensors_name,
                              const NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  TensorList list;
  for (const auto& [name, tensor] : tensors) {
    if (StorageClass(tensor.scalar_type()) == nullptr) {
      return InvalidArgument(path, ": tensor ", name, " is of a type, ",
                             torch::toString(tensor.scalar_type()),
                             ", that is not written");
    }
    list.emplace_back(name, tensor.detach().to(torch::kCPU).contiguous());
  }
  const std::string pickle = PickleOf(entries, namespaces, tensors_name, list);
  return WriteFileAtomically(path, [&](const WriteFunction& write) {
    return WriteArchive(pickle, list, write);
  });
}

}  // namespace etc
