#include "etc/weights/checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/weight_plan.h"

namespace etc {
namespace {

// The type in files of tensors of `type`; null if checkpoints do not hold them.
const Dtype* DtypeOf(torch::ScalarType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.pytorch == torch::toString(type)) {
      return &dtype;
    }
  }
  return nullptr;
}

// The inverse, for the name that a file has; nullopt if LibTorch lacks it.
std::optional<torch::ScalarType> ScalarTypeOf(absl::string_view name) {
  const Dtype* dtype = FindDtype(name);
  constexpr auto kTypes = static_cast<int>(torch::ScalarType::NumOptions);
  for (int i = 0; i < kTypes && dtype != nullptr; ++i) {
    const auto type = static_cast<torch::ScalarType>(i);
    if (dtype->pytorch == torch::toString(type)) {
      return type;
    }
  }
  return std::nullopt;
}

std::string ShapeText(at::IntArrayRef shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The first few texts, and how many more there are.
std::string JoinFirst(const std::vector<std::string>& texts,
                      absl::string_view separator,
                      absl::string_view before_more) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(texts.size(), kShown);
  std::string joined = absl::StrJoin(
      texts.begin(), texts.begin() + static_cast<int64_t>(shown), separator);
  if (texts.size() > shown) {
    absl::StrAppend(&joined, before_more, texts.size() - shown, " more");
  }
  return joined;
}

// Whether LibTorch can compute the strides of an empty tensor like [2^62, 0],
// for which it multiplies the other dimensions.
bool HasStrides(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t dimension : shape) {
    if (dimension > 1 && __builtin_mul_overflow(product, dimension, &product)) {
      return false;
    }
  }
  return true;
}

// Why the tensor `source` cannot be copied as `copy` says, or an empty string.
std::string Mismatch(const TensorInfo& source, const TensorCopy& copy,
                     const torch::Tensor& destination) {
  std::vector<int64_t> expected = destination.sizes().vec();
  if (copy.transpose) {
    std::reverse(expected.begin(), expected.end());
  }
  if (!copy.rows.empty() && !source.shape.empty()) {
    const int64_t last = *std::max_element(copy.rows.begin(), copy.rows.end());
    if (last >= source.shape[0]) {
      return absl::StrCat("should have a row ", last, ", but has ",
                          source.shape[0], " rows");
    }
    expected[0] = source.shape[0];
  }
  if (source.shape != expected) {
    return absl::StrCat("should be ", ShapeText(expected), ", but is ",
                        ShapeText(source.shape));
  }
  const auto type = ScalarTypeOf(source.dtype);
  if (type == destination.scalar_type() ||
      (type.has_value() && at::isFloatingType(*type) &&
       destination.is_floating_point())) {
    return "";
  }
  const Dtype* wanted = DtypeOf(destination.scalar_type());
  return absl::StrCat("should be ",
                      wanted != nullptr ? wanted->name : "of another dtype",
                      ", but is ", source.dtype);
}

absl::Status CheckCopies(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  std::vector<std::string> mismatches;
  for (const TensorCopy& copy : copies) {
    const auto target = destination.find(copy.target);
    TORCH_CHECK(target != destination.end(), "there is no tensor ", copy.target,
                " to be loaded");
    TORCH_CHECK(copy.rows.empty() || (!copy.transpose &&
                                      static_cast<int64_t>(copy.rows.size()) ==
                                          target->second.size(0)),
                "rows should be given for each row of ", copy.target,
                ", and it should not be transposed");
    ETC_ASSIGN_OR_RETURN(const TensorInfo* source, reader.Find(copy.source));
    const std::string mismatch = Mismatch(*source, copy, target->second);
    if (!mismatch.empty()) {
      mismatches.push_back(
          absl::StrCat(QuotedName(copy.source), " ", mismatch));
    }
  }
  return mismatches.empty() ? absl::OkStatus()
                            : absl::InvalidArgumentError(absl::StrCat(
                                  reader.path(), ": tensor ",
                                  JoinFirst(mismatches, "; ", "; and ")));
}

// Copies the rows that have a source.
void CopyRows(const std::vector<int64_t>& rows, const torch::Tensor& from,
              torch::Tensor to) {
  std::vector<int64_t> to_rows;
  std::vector<int64_t> from_rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0) {
      to_rows.push_back(static_cast<int64_t>(i));
      from_rows.push_back(rows[i]);
    }
  }
  to.index_copy_(0, torch::tensor(to_rows, torch::kInt64).to(to.device()),
                 from.index_select(0, torch::tensor(from_rows, torch::kInt64))
                     .to(to.options()));
}

// Does what CheckCopies has passed.
absl::Status ReadAndCopy(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  // A tensor that is copied to several places is read once.
  std::map<const TensorInfo*, torch::Tensor> read;
  std::vector<const torch::Tensor*> sources;
  for (const TensorCopy& copy : copies) {
    ETC_ASSIGN_OR_RETURN(const TensorInfo* source, reader.Find(copy.source));
    torch::Tensor& tensor = read[source];
    if (!tensor.defined()) {
      ETC_ASSIGN_OR_RETURN(tensor, reader.Read(copy.source));
    }
    sources.push_back(&tensor);
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < copies.size(); ++i) {
    torch::Tensor target = destination.at(copies[i].target);
    const torch::Tensor source =
        copies[i].transpose ? sources[i]->t() : *sources[i];
    if (copies[i].rows.empty()) {
      target.copy_(source);
    } else {
      CopyRows(copies[i].rows, source, target);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const TensorReader& reader, const LoadReport& report,
                        NameMatch match) {
  if (match != NameMatch::kAny && !report.missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.path(), " lacks ", JoinFirst(report.missing, ", ", " and ")));
  }
  if (match == NameMatch::kBoth && !report.unexpected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.path(), " has tensors that the model does not: ",
                     JoinFirst(report.unexpected, ", ", " and ")));
  }
  return absl::OkStatus();
}

// What a format's writer takes; refers to `tensors`.
absl::StatusOr<std::vector<TensorToWrite>> ToWrite(
    const std::string& path, const NamedTensors& tensors) {
  std::vector<TensorToWrite> result;
  for (const auto& [name, tensor] : tensors) {
    TORCH_CHECK(tensor.defined() && tensor.layout() == torch::kStrided,
                "tensor ", name, " should be defined and dense");
    const Dtype* dtype = DtypeOf(tensor.scalar_type());
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
    result.push_back(
        {name, std::string(dtype->name), tensor.sizes().vec(), write_data});
  }
  return result;
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
  ETC_ASSIGN_OR_RETURN(const auto to_write, ToWrite(path, tensors));
  return WriteSafetensors(path, to_write, metadata);
}

absl::Status WriteTensorFlowTensors(const std::string& prefix,
                                    const NamedTensors& tensors) {
  ETC_ASSIGN_OR_RETURN(const auto to_write, ToWrite(prefix, tensors));
  return WriteTensorFlowCheckpoint(prefix, to_write);
}

absl::StatusOr<TensorReader> TensorReader::Open(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(std::unique_ptr<TensorSource> files,
                       OpenTensorSource(path));
  return TensorReader(std::move(files));
}

absl::StatusOr<std::vector<int64_t>> TensorReader::Shape(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* info, Find(name));
  return info->shape;
}

absl::StatusOr<torch::Tensor> TensorReader::Read(
    const std::string& name) const {
  ETC_ASSIGN_OR_RETURN(const TensorInfo* info, Find(name));
  const auto error = [&](auto... message) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": tensor ", QuotedName(name), " ", message...));
  };
  const auto type = ScalarTypeOf(info->dtype);
  if (!type.has_value()) {
    return error("is of dtype ", info->dtype, ", which cannot be read");
  }
  if (!HasStrides(info->shape)) {
    return error("has no elements, but too large a shape, ",
                 ShapeText(info->shape));
  }
  const torch::Tensor tensor =
      torch::empty(info->shape, torch::dtype(*type).device(torch::kCPU));
  auto* bytes = static_cast<char*>(tensor.data_ptr());
  ETC_RETURN_IF_ERROR(files_->Read(name, bytes, tensor.nbytes()));
  if (*type == torch::kBool) {
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
    // isfinite makes several tensors of that size, so it is called last.
    const auto [least, greatest] = torch::aminmax(tensor);
    if (std::isfinite(least.item<double>()) &&
        std::isfinite(greatest.item<double>())) {
      continue;
    }
    const torch::Tensor bad = torch::isfinite(tensor).logical_not();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensor ", QuotedName(name),
        " should have finite elements, but ", bad.sum().item<int64_t>(),
        " of its ", tensor.numel(), " are infinite or not a number"));
  }
  return absl::OkStatus();
}

absl::Status CopyTensors(const TensorReader& reader,
                         const std::vector<TensorCopy>& copies,
                         const NamedTensors& destination) {
  ETC_RETURN_IF_ERROR(CheckCopies(reader, copies, destination));
  return ReadAndCopy(reader, copies, destination);
}

absl::StatusOr<LoadReport> LoadTensors(const TensorReader& reader,
                                       const NamedTensors& destination,
                                       NameMatch match) {
  LoadReport report;
  std::vector<TensorCopy> copies;
  std::set<const TensorInfo*> used;
  for (const auto& [name, tensor] : destination) {
    const auto found = reader.Find(name);
    if (!found.ok()) {
      report.missing.push_back(name);
      continue;
    }
    used.insert(*found);
    copies.push_back({.source = name, .target = name});
    report.loaded.push_back(name);
    if (ScalarTypeOf((*found)->dtype) != tensor.scalar_type()) {
      report.converted.push_back(name);
    }
  }
  for (const std::string& name : reader.Names()) {
    if (!used.contains(*reader.Find(name))) {
      report.unexpected.push_back(name);
    }
  }
  ETC_RETURN_IF_ERROR(CheckCopies(reader, copies, destination));
  ETC_RETURN_IF_ERROR(CheckNames(reader, report, match));
  ETC_RETURN_IF_ERROR(ReadAndCopy(reader, copies, destination));
  return report;
}

}  // namespace etc
