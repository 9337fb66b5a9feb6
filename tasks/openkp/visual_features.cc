#include "tasks/openkp/visual_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace etc {
namespace {

constexpr int64_t kNumPositions = 8;

// In the order of kOpenkpIndicators. Block and inline of the parent are
// always 1 and 0, and left out (doc/openkp.md 3.6).
std::array<bool, 8> Indicators(const OpenkpElement& element) {
  const auto& [first, end, node, parent] = element;
  return {node.is_block, node.is_inline,    node.in_heading, node.is_leaf,
          node.is_bold,  parent.in_heading, parent.is_leaf,  parent.is_bold};
}

// x.5 goes to the even neighbour, whatever the rounding mode is.
double RoundHalfToEven(double value) {
  const double floor = std::floor(value);
  const double rest = value - floor;
  const bool is_odd = std::fmod(floor, 2) != 0;
  return rest > 0.5 || (rest == 0.5 && is_odd) ? floor + 1 : floor;
}

}  // namespace

void ReadValue(const std::string& field, const FieldRule& /*rule*/,
               JsonObjectReader* reader, ValueRange* range) {
  std::vector<double> ends = {range->min, range->max};
  reader->Optional(field, &ends);
  if (ends.size() != 2 || ends[0] >= ends[1]) {
    reader->Fail(field, absl::StrCat("should be [minimum, maximum], but is [",
                                     absl::StrJoin(ends, ", "), "]"));
    return;
  }
  *range = {ends[0], ends[1]};
}

void to_json(nlohmann::json& json, const ValueRange& range) {
  json = nlohmann::json::array({range.min, range.max});
}

int64_t OpenkpVisualOptions::CrossVocabulary() const {
  return int64_t{1} << crossed_indicators.size();
}

int64_t OpenkpVisualOptions::DenseSize() const {
  return kNumPositions + static_cast<int64_t>(std::size(kOpenkpIndicators)) -
         static_cast<int64_t>(crossed_indicators.size());
}

double ScaleToUnit(double value, const ValueRange& range) {
  const double clipped = std::clamp(value, range.min, range.max);
  return (clipped - (range.max + range.min) / 2) /
         ((range.max - range.min) / 2);
}

int64_t FontId(double font_size) {
  static const auto* cutoffs =
      new std::vector<double>{0,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,
                              19, 20, 21, 22, 23, 24, 29, 34, 39, 44, 49};
  return std::lower_bound(cutoffs->begin(), cutoffs->end(),
                          RoundHalfToEven(font_size)) -
         cutoffs->begin();
}

int64_t CrossId(const OpenkpElement& element,
                const OpenkpVisualOptions& options) {
  const std::array<bool, 8> indicators = Indicators(element);
  int64_t id = 0;
  for (const std::string& crossed : options.crossed_indicators) {
    const auto* const found = std::find(std::begin(kOpenkpIndicators),
                                        std::end(kOpenkpIndicators), crossed);
    const auto index = static_cast<size_t>(found - kOpenkpIndicators);
    id = 2 * id + (indicators.at(index) ? 1 : 0);
  }
  return id;
}

std::vector<float> DenseFeatures(const OpenkpElement& element,
                                 const OpenkpVisualOptions& options) {
  std::vector<float> features;
  for (const OpenkpNode& node : {element.node, element.parent}) {
    for (const double value :
         {ScaleToUnit(node.x, options.x), ScaleToUnit(node.y, options.y),
          ScaleToUnit(node.width, options.width),
          ScaleToUnit(node.height, options.height)}) {
      features.push_back(static_cast<float>(value));
    }
  }
  const std::array<bool, 8> indicators = Indicators(element);
  const std::vector<std::string>& crossed = options.crossed_indicators;
  for (size_t i = 0; i < std::size(kOpenkpIndicators); ++i) {
    if (std::find(crossed.begin(), crossed.end(), kOpenkpIndicators[i]) ==
        crossed.end()) {
      features.push_back(indicators.at(i) ? 1.0F : 0.0F);
    }
  }
  return features;
}

}  // namespace etc
