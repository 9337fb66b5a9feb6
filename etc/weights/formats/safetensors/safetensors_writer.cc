#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/formats/safetensors/safetensors.h"
#include "etc/weights/formats/tensor_writer.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

// A tensor and its bytes in the data buffer.
struct Placed {
  const TensorToWrite* tensor;
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

// `text`, which is UTF-8, as a JSON string.
std::string Quoted(const std::string& text) {
  return JsonText(nlohmann::json(text));
}

absl::Status CheckName(const std::string& name,
                       const SafetensorsLimits& limits) {
  if (name == "__metadata__" || !IsUtf8(name) ||
      name.size() > limits.name_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor can be called ", QuotedName(name),
                     ": names are UTF-8 of at most ", limits.name_bytes,
                     " bytes other than __metadata__"));
  }
  return absl::OkStatus();
}

// The tensors in the reference writer's order (doc/formats.md 1.3), back to
// back.
absl::StatusOr<std::vector<Placed>> Layout(
    const std::vector<TensorToWrite>& tensors,
    const SafetensorsLimits& limits) {
  std::vector<Placed> placed;
  std::set<absl::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    ETC_RETURN_IF_ERROR(CheckName(tensor.name, limits));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are called ", QuotedName(tensor.name)));
    }
    const auto bytes = SafetensorsDataBytes(tensor.dtype, tensor.shape);
    if (!bytes.ok() || tensor.shape.size() > limits.rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", QuotedName(tensor.name), ": ",
          bytes.ok() ? "has too many dimensions" : bytes.status().message()));
    }
    placed.push_back({.tensor = &tensor, .bytes = *bytes});
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    const int a_rank = SafetensorsDtypeRank(a.tensor->dtype);
    const int b_rank = SafetensorsDtypeRank(b.tensor->dtype);
    return a_rank != b_rank ? a_rank > b_rank : a.tensor->name < b.tensor->name;
  });
  uint64_t end = 0;
  for (Placed& each : placed) {
    each.begin = end;
    if (__builtin_add_overflow(end, each.bytes, &end)) {
      return absl::InvalidArgumentError("the sizes of the tensors overflow");
    }
  }
  return placed;
}

// The length of the header, the header and its padding.
absl::StatusOr<std::string> Header(
    const std::vector<Placed>& placed,
    const std::map<std::string, std::string>& metadata,
    const SafetensorsLimits& limits) {
  std::string text = "{";
  if (!metadata.empty()) {
    for (const auto& [key, value] : metadata) {
      if (!IsUtf8(key) || !IsUtf8(value)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "metadata ", QuotedName(key), " should be UTF-8, key and value"));
      }
      absl::StrAppend(&text, text.size() == 1 ? "\"__metadata__\":{" : ",",
                      Quoted(key), ":", Quoted(value));
    }
    text += '}';
  }
  for (const Placed& each : placed) {
    absl::StrAppend(
        &text, text.size() == 1 ? "" : ",", Quoted(each.tensor->name),
        ":{\"dtype\":\"", each.tensor->dtype, "\",\"shape\":[",
        absl::StrJoin(each.tensor->shape, ","), "],\"data_offsets\":[",
        each.begin, ",", each.begin + each.bytes, "]}");
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > limits.header_bytes || placed.size() > limits.tensors ||
      metadata.size() > limits.tensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many or too long names and metadata: ", placed.size(),
                     " tensors make a header of ", text.size(), " bytes"));
  }
  const uint64_t length = text.size();
  std::string length_bytes(sizeof(length), '\0');
  std::memcpy(length_bytes.data(), &length, sizeof(length));
  return length_bytes + text;
}

// Writes one tensor's data and checks their number of bytes.
absl::Status WriteData(const Placed& placed, const std::string& path,
                       const WriteFunction& write) {
  uint64_t written = 0;
  ETC_RETURN_IF_ERROR(placed.tensor->write_data([&](absl::string_view piece) {
    written += piece.size();
    return write(piece);
  }));
  if (written != placed.bytes) {
    return InvalidArgument("cannot write ", path, ": tensor ",
                           QuotedName(placed.tensor->name), " should have ",
                           placed.bytes, " bytes, but ", written,
                           " were written");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata) {
  const SafetensorsLimits limits;
  const auto in_file = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("cannot write ", path, ": ",
                                                    status.message()));
  };
  const auto placed = Layout(tensors, limits);
  if (!placed.ok()) {
    return in_file(placed.status());
  }
  const auto header = Header(*placed, metadata, limits);
  if (!header.ok()) {
    return in_file(header.status());
  }
  return WriteFileAtomically(path, [&](const WriteFunction& write) {
    absl::Status status = write(*header);
    for (size_t i = 0; i < placed->size() && status.ok(); ++i) {
      status = WriteData((*placed)[i], path, write);
    }
    return status;
  });
}

}  // namespace etc
