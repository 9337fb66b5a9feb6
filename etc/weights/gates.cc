#include "etc/weights/gates.h"

#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/residual_choice.h"
#include "etc/weights/encoder_parameters.h"
#include "etc/weights/formats/tensor_source.h"
#include "etc/weights/weight_plan.h"

namespace etc {
namespace {

// The place of a gate of an encoder's layer.
struct GatePlace {
  int64_t layer = 0;
  std::string block;  // "g2g"
};

// The place that "encoder.layers.1.attention.g2g_gate" names, with any prefix
// or none.
std::optional<GatePlace> PlaceOf(const std::string& name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  const size_t count = parts.size();
  GatePlace place;
  if (count < 4 || parts[count - 4] != "layers" ||
      !absl::SimpleAtoi(parts[count - 3], &place.layer) ||
      parts[count - 2] != "attention") {
    return std::nullopt;
  }
  absl::string_view block = parts[count - 1];
  if (!absl::ConsumeSuffix(&block, "_gate")) {
    return std::nullopt;
  }
  place.block = std::string(block);
  return place;
}

bool AllAre(double value, const NamedTensors& gates) {
  return std::all_of(gates.begin(), gates.end(), [value](const auto& gate) {
    return gate.second.eq(value).all().template item<bool>();
  });
}

std::string ModeOf(bool all_zero, bool all_one) {
  return all_zero ? "off" : all_one ? "sum" : "gate";
}

}  // namespace

absl::StatusOr<NamedTensors> ReadGates(const TensorReader& reader) {
  NamedTensors gates;
  for (const std::string& name : reader.Names()) {
    if (!PlaceOf(name).has_value()) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(const TensorInfo* info, reader.Find(name));
    if (info->shape.size() != 1 || info->shape[0] == 0 ||
        !IsFloating(info->dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.path(), ": tensor ", QuotedName(name),
                       " should hold a floating number for each head, but is ",
                       info->dtype, " of ", info->shape.size(), " dimensions"));
    }
    ETC_ASSIGN_OR_RETURN(const torch::Tensor gate, reader.Read(name));
    gates.emplace(name, gate.to(torch::kFloat32));
  }
  return gates;
}

std::set<std::string> GatesOfOneSide(
    const TensorReader& reader, const NamedTensors& model, bool should_have,
    const std::function<bool(const std::string& name)>& is_gate) {
  std::set<std::string> ours;
  for (const auto& [name, tensor] : model) {
    if (is_gate(name)) {
      ours.insert(name);
    }
  }
  std::set<std::string> theirs;
  std::copy_if(reader.Names().begin(), reader.Names().end(),
               std::inserter(theirs, theirs.end()), is_gate);
  if (ours.empty()) {
    return theirs;
  }
  return theirs.empty() && !should_have ? ours : std::set<std::string>();
}

std::string ComputedMode(const EtcConfig& config, const NamedTensors& gates) {
  if (config.residual_attention != "gate") {
    return ResidualText(config);
  }
  if (config.num_hidden_layers == 1) {
    return "off";  // nothing is carried
  }
  if (gates.empty()) {
    return ModeOf(config.residual_gate_init == 0,
                  config.residual_gate_init == 1);
  }
  return ModeOf(AllAre(0, gates), AllAre(1, gates));
}

std::vector<LayerGates> SummarizeGates(const NamedTensors& gates) {
  std::map<int64_t, LayerGates> layers;
  // Names are in order, and so are the blocks of a layer.
  for (const auto& [name, gate] : gates) {
    const std::optional<GatePlace> place = PlaceOf(name);
    if (!place.has_value()) {
      continue;
    }
    LayerGates& layer = layers[place->layer];
    layer.layer = place->layer;
    layer.means.emplace_back(place->block, gate.mean().item<double>());
    layer.largest = std::max(layer.largest, gate.abs().max().item<double>());
  }
  std::vector<LayerGates> result;
  for (auto& [number, layer] : layers) {
    result.push_back(std::move(layer));
  }
  return result;
}

}  // namespace etc
