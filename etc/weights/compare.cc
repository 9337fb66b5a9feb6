#include "etc/weights/compare.h"

#include <torch/utils.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/shape_text.h"
#include "base/status_macros.h"
#include "etc/weights/import_plan.h"
#include "etc/weights/pretraining_heads.h"
#include "etc/weights/source_config.h"
#include "etc/weights/weights.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

// One side: its tensors, and a function that reads them by their names there.
struct Side {
  std::string path;
  // Names by those that both sides have for the same tensor.
  std::map<std::string, std::string> names;
  std::function<absl::StatusOr<torch::Tensor>(const std::string&)> read;
};

// Makes a side of the tensors as the file has them. `names` is null unless the
// names of both sides are known.
Side AsStored(const TensorReader& reader, const RecognizedNames* names) {
  Side side{.path = reader.path(), .read = [reader](const std::string& name) {
              return reader.Read(name);
            }};
  const std::set<std::string> stored(reader.Names().begin(),
                                     reader.Names().end());
  for (const std::string& name : stored) {
    const std::string plain = names == nullptr ? name : PlainName(*names, name);
    // The file may have another tensor of the plain name.
    const bool is_taken = plain != name && stored.contains(plain);
    if (is_taken || !side.names.emplace(plain, name).second) {
      side.names.emplace(name, name);
    }
  }
  return side;
}

absl::StatusOr<Side> AsEncoder(const WeightFile& file) {
  ETC_ASSIGN_OR_RETURN(NamedTensors encoder, ReadEncoder(file));
  ETC_ASSIGN_OR_RETURN(
      const HeadPlan plan,
      PlanHeads(file.source, file.source.config, {.heads = AllHeads()}));
  ETC_ASSIGN_OR_RETURN(NamedTensors heads, ReadHeads(file, plan));
  // Only our files have the outputs of a regression scaled.
  UndoScaling(file.source.hugging_face, &heads);
  encoder.merge(heads);
  Side side{.path = file.source.path,
            .read = [encoder](const std::string& name)
                -> absl::StatusOr<torch::Tensor> { return encoder.at(name); }};
  for (const auto& [name, tensor] : encoder) {
    side.names.emplace(name, name);
  }
  return side;
}

// Empty if they are the same.
std::string Difference(const torch::Tensor& there, const torch::Tensor& here) {
  if (there.sizes() != here.sizes()) {
    return absl::StrCat(ShapeText(there.sizes()), " there, ",
                        ShapeText(here.sizes()), " here");
  }
  if (there.scalar_type() == here.scalar_type() && torch::equal(there, here)) {
    return "";
  }
  if (there.numel() == 0) {
    return "empty, of another dtype";
  }
  const torch::Tensor a = there.to(torch::kFloat64);
  const torch::Tensor b = here.to(torch::kFloat64);
  return absl::StrFormat("largest difference %.3g, norm %.6g there, %.6g here",
                         (a - b).abs().max().item<double>(),
                         a.norm().item<double>(), b.norm().item<double>());
}

absl::Status CompareTensors(const Side& there, const Side& here,
                            WeightComparison* result) {
  for (const auto& [key, name] : here.names) {
    const auto other = there.names.find(key);
    if (other == there.names.end()) {
      result->differences.push_back({name, "only in " + here.path});
      continue;
    }
    const absl::StatusOr<torch::Tensor> left = there.read(other->second);
    const absl::StatusOr<torch::Tensor> right = here.read(name);
    if (absl::IsInvalidArgument(left.status()) ||
        absl::IsInvalidArgument(right.status())) {
      // The tensor's type cannot be read as numbers; the others are compared.
      result->differences.push_back({name, "not compared: it is not numbers"});
      continue;
    }
    ETC_RETURN_IF_ERROR(left.status());
    ETC_RETURN_IF_ERROR(right.status());
    std::string difference = Difference(*left, *right);
    if (difference.empty()) {
      ++result->same;
    } else {
      result->differences.push_back({name, std::move(difference)});
    }
  }
  for (const auto& [key, name] : there.names) {
    if (!here.names.contains(key)) {
      result->differences.push_back({name, "only in " + there.path});
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> CompareConfigs(const EtcConfig& there,
                                        const EtcConfig& here) {
  std::vector<std::string> texts;
  const nlohmann::json left = nlohmann::json::parse(EtcConfigToJson(there));
  const nlohmann::json right = nlohmann::json::parse(EtcConfigToJson(here));
  for (const auto& [field, value] : right.items()) {
    if (left[field] != value) {
      texts.push_back(absl::StrCat(field, ": ", JsonText(left[field]),
                                   " there, ", JsonText(value), " here"));
    }
  }
  return texts;
}

}  // namespace

absl::StatusOr<WeightComparison> CompareWeights(const std::string& path,
                                                const std::string& other) {
  ETC_ASSIGN_OR_RETURN(const TensorReader here, TensorReader::Open(path));
  ETC_ASSIGN_OR_RETURN(const TensorReader there, TensorReader::Open(other));
  WeightComparison result;
  const auto here_names = RecognizeNames(here.Names(), path);
  const auto there_names = RecognizeNames(there.Names(), other);
  const bool are_known = here_names.ok() && there_names.ok();
  if (are_known && here_names->style != there_names->style) {
    ETC_ASSIGN_OR_RETURN(const WeightFile here_file, OpenWeights(path));
    ETC_ASSIGN_OR_RETURN(const WeightFile there_file, OpenWeights(other));
    ETC_ASSIGN_OR_RETURN(const Side here_side, AsEncoder(here_file));
    ETC_ASSIGN_OR_RETURN(const Side there_side, AsEncoder(there_file));
    ETC_RETURN_IF_ERROR(CompareTensors(there_side, here_side, &result));
  } else {
    ETC_RETURN_IF_ERROR(CompareTensors(
        AsStored(there, are_known ? &*there_names : nullptr),
        AsStored(here, are_known ? &*here_names : nullptr), &result));
  }
  const auto here_config = ReadSourceConfig(path);
  const auto there_config = ReadSourceConfig(other);
  if (here_config.ok() && there_config.ok()) {
    result.config_differences =
        CompareConfigs(there_config->config, here_config->config);
  }
  return result;
}

}  // namespace etc
