#include "etc/weights/checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/safetensors/safetensors.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/formats/tensorflow/tensorflow_checkpoint.h"

namespace etc {
namespace {

struct DtypePair {
  const char* name;  // in the file
  torch::ScalarType type;
};

// What formats spec 1.2 wants materialised.
constexpr DtypePair kDtypes[] = {
    {"F32", torch::kFloat32},   {"F16", torch::kFloat16},
    {"BF16", torch::kBFloat16}, {"F64", torch::kFloat64},
    {"I64", torch::kInt64},     {"I32", torch::kInt32},
    {"I16", torch::kInt16},     {"I8", torch::kInt8},
    {"U8", torch::kUInt8},      {"BOOL", torch::kBool},
};

const DtypePair* FindDtype(torch::ScalarType type) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.type == type) {
      return &pair;
    }
  }
  return nullptr;
}

const DtypePair* FindDtype(absl::string_view name) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.name == name) {
      return &pair;
    }
  }
  return nullptr;
}

std::string ShapeText(at::IntArrayRef shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Whether LibTorch can compute the strides of an empty tensor like [2^62, 0]:
// it multiplies the other dimensions all the same.
bool HasStrides(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t dimension : shape) {
    if (dimension > 1 && __builtin_mul_overflow(product, dimension, &product)) {
      return false;
    }
  }
  return true;
}

// What is in the way of copying `entry` into `destination`, or an empty string.
std::string Mismatch(const TensorInfo& entry,
                     const torch::Tensor& destination) {
  if (destination.sizes() != at::IntArrayRef(entry.shape)) {
    return absl::StrCat("should be ", ShapeText(destination.sizes()),
                        ", but is ", ShapeText(entry.shape));
  }
  const DtypePair* source = FindDtype(entry.dtype);
  if (source != nullptr &&
      (source->type == destination.scalar_type() ||
       (at::isFloatingType(source->type) && destination.is_floating_point()))) {
    return "";
  }
  const DtypePair* wanted = FindDtype(destination.scalar_type());
  return absl::StrCat("should be ",
                      wanted != nullptr ? wanted->name : "of another dtype",
                      ", but is ", entry.dtype);
}

// Says of each tensor what is to become of it.
absl::StatusOr<LoadReport> Plan(const TensorReader& reader,
                                const NamedTensors& destination) {
  LoadReport report;
  std::set<const TensorInfo*> used;
  std::vector<std::string> mismatches;
  for (const auto& [name, tensor] : destination) {
    const auto entry = reader.files().Find(name);
    if (!entry.ok()) {
      report.missing.push_back(name);
      continue;
    }
    used.insert(*entry);
    report.loaded.push_back(name);
    const std::string mismatch = Mismatch(**entry, tensor);
    if (!mismatch.empty()) {
      mismatches.push_back(absl::StrCat(QuotedName(name), " ", mismatch));
    } else if (FindDtype((*entry)->dtype)->type != tensor.scalar_type()) {
      report.converted.push_back(name);
    }
  }
  for (const std::string& name : reader.Names()) {
    if (!used.contains(*reader.files().Find(name))) {
      report.unexpected.push_back(name);
    }
  }
  if (mismatches.empty()) {
    return report;
  }
  constexpr size_t kMostShown = 5;
  if (mismatches.size() > kMostShown) {
    const size_t more = mismatches.size() - kMostShown;
    mismatches.resize(kMostShown);
    mismatches.push_back(absl::StrCat("and ", more, " more"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      reader.path(), ": tensor ", absl::StrJoin(mismatches, "; ")));
}

// What a format's writer takes; refers to `tensors`.
template <typename Source>
absl::StatusOr<std::vector<Source>> ToWrite(const std::string& path,
                                            const NamedTensors& tensors) {
  std::vector<Source> sources;
  for (const auto& [name, tensor] : tensors) {
    TORCH_CHECK(tensor.defined() && tensor.layout() == torch::kStrided,
                "tensor ", name, " should be defined and dense");
    const DtypePair* dtype = FindDtype(tensor.scalar_type());
    if (dtype == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": tensor ", QuotedName(name),
                       " is of dtype ", torch::toString(tensor.scalar_type()),
                       ", which checkpoints do not hold"));
    }
    const auto write_data = [&tensor = tensor](const WriteFunction& write) {
      const torch::Tensor held = tensor.detach().cpu().contiguous();
      return write(absl::string_view(static_cast<const char*>(held.data_ptr()),
                                     held.nbytes()));
    };
    sources.push_back({name, dtype->name, tensor.sizes().vec(), write_data});
  }
  return sources;
}

}  // namespace

NamedTensors ModuleTensors(const torch::nn::Module& module,
                           const std::string& prefix) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters()) {
    tensors[prefix + parameter.key()] = parameter.value();
  }
  for (const auto& buffer : module.named_buffers()) {
    tensors[prefix + buffer.key()] = buffer.value();
  }
  return tensors;
}

absl::Status WriteTensors(const std::string& path, const NamedTensors& tensors,
                          const std::map<std::string, std::string>& metadata) {
  ETC_ASSIGN_OR_RETURN(const auto sources,
                       ToWrite<SafetensorsTensor>(path, tensors));
  return WriteSafetensors(path, sources, metadata);
}

absl::Status WriteTensorFlowTensors(const std::string& prefix,
                                    const NamedTensors& tensors) {
  ETC_ASSIGN_OR_RETURN(const auto sources,
                       ToWrite<TensorFlowTensor>(prefix, tensors));
  return WriteTensorFlowCheckpoint(prefix, sources);
}

TensorReader::TensorReader(std::shared_ptr<const TensorSource> tensors)
    : tensors_(std::move(tensors)) {}

absl::StatusOr<TensorReader> TensorReader::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> tensors,
                       OpenTensorSource(path));
  return TensorReader(std::move(tensors));
}

const std::string& TensorReader::path() const { return tensors_->path(); }

const std::vector<std::string>& TensorReader::Names() const {
  return tensors_->names();
}

const std::vector<std::string>& TensorReader::warnings() const {
  return tensors_->warnings();
}

const std::map<std::string, std::string>& TensorReader::metadata() const {
  return tensors_->metadata();
}

absl::StatusOr<std::vector<int64_t>> TensorReader::Shape(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* entry, tensors_->Find(name));
  return entry->shape;
}

absl::StatusOr<torch::Tensor> TensorReader::Read(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* entry, tensors_->Find(name));
  const auto error = [&](auto... message) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": tensor ", QuotedName(name), " ", message...));
  };
  const DtypePair* dtype = FindDtype(entry->dtype);
  if (dtype == nullptr) {
    return error("is of dtype ", entry->dtype, ", which cannot be read");
  }
  if (!HasStrides(entry->shape)) {
    return error("has no elements, but too large a shape, ",
                 ShapeText(entry->shape));
  }
  const torch::Tensor tensor =
      torch::empty(entry->shape, torch::dtype(dtype->type).device(torch::kCPU));
  auto* bytes = static_cast<char*>(tensor.data_ptr());
  ETC_RETURN_IF_ERROR(tensors_->Read(name, bytes, tensor.nbytes()));
  if (dtype->type == torch::kBool) {
    for (size_t i = 0; i < tensor.nbytes(); ++i) {
      if (bytes[i] != 0 && bytes[i] != 1) {
        return error("is BOOL, but its element ", i, " is neither 0 nor 1");
      }
    }
  }
  return tensor;
}

absl::Status CheckFinite(const std::string& path, const NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) {
      continue;
    }
    // Not isfinite at first, which makes several tensors of that size.
    const auto [least, greatest] = torch::aminmax(tensor);
    if (std::isfinite(least.item<double>()) &&
        std::isfinite(greatest.item<double>())) {
      continue;
    }
    const torch::Tensor bad = torch::isfinite(tensor).logical_not();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", QuotedName(name),
                     " should have finite elements, "
                     "but ",
                     bad.sum().item<int64_t>(), " of its ", tensor.numel(),
                     " are infinite or not a number"));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadReport> LoadTensors(const TensorReader& reader,
                                       const NamedTensors& destination) {
  ETC_ASSIGN_OR_RETURN(LoadReport report, Plan(reader, destination));
  std::vector<torch::Tensor> read;
  for (const std::string& name : report.loaded) {
    ETC_ASSIGN_OR_RETURN(read.emplace_back(), reader.Read(name));
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < read.size(); ++i) {
    destination.at(report.loaded[i]).copy_(read[i]);
  }
  return report;
}

}  // namespace etc
