#include "etc/weights/checkpoint.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/tensor_writer.h"
#include "etc/weights/weights.h"

namespace etc {
namespace {

absl::Status CheckNames(const TensorReader& reader, const LoadReport& report,
                        NameMatch match,
                        const std::set<std::string>& optional) {
  const auto needed = [&optional](std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string& name) {
      return optional.contains(name);
    });
    return names;
  };
  const std::vector<std::string> missing = needed(report.missing);
  if (match != NameMatch::kAny && !missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.path(), " lacks ", JoinFirst(missing, ", ", " and ")));
  }
  const std::vector<std::string> unexpected = needed(report.unexpected);
  if (match == NameMatch::kBoth && !unexpected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.path(), " has tensors that the model does not: ",
                     JoinFirst(unexpected, ", ", " and ")));
  }
  return absl::OkStatus();
}

// Converts to the input of a format's writer; the result refers to `tensors`.
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

absl::Status CheckFinite(const std::string& path, const NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) {
      continue;
    }
    // isfinite makes several tensors of that size, so it is called last.
    // aminmax does not know all of the shorter types.
    const auto [least, greatest] = torch::aminmax(
        tensor.scalar_type() == torch::kFloat64 ? tensor
                                                : tensor.to(torch::kFloat32));
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

absl::StatusOr<LoadReport> LoadTensors(const TensorReader& reader,
                                       const NamedTensors& destination,
                                       NameMatch match,
                                       const std::set<std::string>& optional) {
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
  ETC_RETURN_IF_ERROR(CheckNames(reader, report, match, optional));
  ETC_RETURN_IF_ERROR(CopyTensors(reader, copies, destination));
  return report;
}

}  // namespace etc
