#include "tasks/train/score_statistics_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A number with the five digits that statistics of a sample are good for.
double ToFiveDigits(double number) {
  double rounded = number;
  return absl::SimpleAtod(absl::StrFormat("%.5g", number), &rounded) ? rounded
                                                                     : number;
}

// Numbers of all layers; null for a layer that has none.
using NumbersByLayer = std::vector<std::optional<double>>;

// Adds them under `name`, unless no layer has one.
void AddByLayer(const std::string& name, const NumbersByLayer& numbers,
                OrderedJson* json) {
  OrderedJson values = OrderedJson::array();
  bool has_any = false;
  for (const std::optional<double>& number : numbers) {
    has_any = has_any || number.has_value();
    values.push_back(number.has_value() ? OrderedJson(ToFiveDigits(*number))
                                        : OrderedJson());
  }
  if (has_any) {
    (*json)[name] = values;
  }
}

OrderedJson BlockToJson(const std::vector<LayerStatistics>& layers,
                        BlockStatistics LayerStatistics::*block) {
  NumbersByLayer largest;
  NumbersByLayer of_new;
  NumbersByLayer of_carried;
  const auto deviation = [](const NumberMoments& moments) {
    return moments.count > 0 ? std::optional(moments.standard_deviation())
                             : std::nullopt;
  };
  for (const LayerStatistics& layer : layers) {
    const BlockStatistics& here = layer.*block;
    largest.push_back(here.new_scores.count > 0
                          ? std::optional(here.largest_score)
                          : std::nullopt);
    of_new.push_back(deviation(here.new_scores));
    of_carried.push_back(deviation(here.carried_scores));
  }
  OrderedJson json = OrderedJson::object();
  AddByLayer("largest", largest, &json);
  AddByLayer("new_deviation", of_new, &json);
  AddByLayer("carried_deviation", of_carried, &json);
  return json;
}

}  // namespace

nlohmann::ordered_json ScoreStatisticsToJson(
    const std::vector<LayerStatistics>& layers) {
  double largest = 0;
  NumbersByLayer of_long;
  NumbersByLayer of_global;
  const auto mean = [](const EntropyStatistics& entropy) {
    return entropy.rows > 0 ? std::optional(entropy.mean()) : std::nullopt;
  };
  for (const LayerStatistics& layer : layers) {
    largest = std::max(largest, layer.largest_score());
    of_long.push_back(mean(layer.long_entropy));
    of_global.push_back(mean(layer.global_entropy));
  }
  OrderedJson json = {{"largest", ToFiveDigits(largest)}};
  for (const auto& [name, block] : {std::pair("g2g", &LayerStatistics::g2g),
                                    std::pair("g2l", &LayerStatistics::g2l),
                                    std::pair("l2g", &LayerStatistics::l2g),
                                    std::pair("l2l", &LayerStatistics::l2l)}) {
    if (const OrderedJson numbers = BlockToJson(layers, block);
        !numbers.empty()) {
      json[name] = numbers;
    }
  }
  AddByLayer("long_entropy", of_long, &json);
  AddByLayer("global_entropy", of_global, &json);
  return json;
}

}  // namespace etc
