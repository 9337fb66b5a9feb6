#ifndef ETC_TASKS_OPENKP_VISUAL_FEATURES_H_
#define ETC_TASKS_OPENKP_VISUAL_FEATURES_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/openkp/raw.h"

namespace etc {

// Font ids are in [0, kOpenkpFontVocabulary).
inline constexpr int64_t kOpenkpFontVocabulary = 24;

// Values outside of [min, max] count as the nearer end.
struct ValueRange {
  double min = 0;
  double max = 1;
};

// Reads [min, max], and writes it.
void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader, ValueRange* range);
void to_json(nlohmann::json& json, const ValueRange& range);

// The indicators of an element, in the order of the dense vector.
inline constexpr absl::string_view kOpenkpIndicators[] = {
    "block", "inline",         "heading",     "leaf",
    "bold",  "parent_heading", "parent_leaf", "parent_bold"};

// Conversion of the layout of an element to numbers (doc/openkp.md 4.1).
struct OpenkpVisualOptions {
  // Ranges for nodes and their parents.
  ValueRange x = {-50, 1500};
  ValueRange y = {-50, 6000};
  ValueRange width = {0, 1500};
  ValueRange height = {0, 18000};
  // Indicators that select a row of one table together, the first one being the
  // most significant bit of its index; the others are numbers of the dense
  // vector. Each is one of kOpenkpIndicators, once.
  std::vector<std::string> crossed_indicators = {"block", "heading", "bold"};

  // Rows of that table.
  int64_t CrossVocabulary() const;
  // D, the length of the dense vector.
  int64_t DenseSize() const;
};

template <>
struct ConfigTable<OpenkpVisualOptions> {
  using O = OpenkpVisualOptions;
  static constexpr FieldRule kRange = {.type_text = "list of numbers",
                                       .more_bounds = "[minimum, maximum]"};
  static constexpr auto kFields = std::make_tuple(
      Field("x_range", &O::x, "left edges that are scaled to [-1, 1]", kRange),
      Field("y_range", &O::y, "upper edges that are scaled to [-1, 1]", kRange),
      Field("width_range", &O::width, "widths that are scaled to [-1, 1]",
            kRange),
      Field("height_range", &O::height, "heights that are scaled to [-1, 1]",
            kRange),
      Field("indicators_to_cross", &O::crossed_indicators,
            "features whose combinations are features, too",
            {.one_of = kOpenkpIndicators, .more_bounds = "each once"}));
};

struct OpenkpVisualEmbeddingOptions {
  OpenkpVisualOptions features;
  // Dense layers behind the first one: 0 or 1.
  int64_t extra_dense_layers = 1;
};

template <>
struct ConfigTable<OpenkpVisualEmbeddingOptions> {
  using O = OpenkpVisualEmbeddingOptions;
  static constexpr auto kFields = std::make_tuple(
      Field("extra_dense_feature_layers", &O::extra_dense_layers,
            "layers between features and embedding", {.least = 0, .most = 1}),
      FieldsOf(&O::features));
};

// `value` clipped and mapped from [min, max] to [-1, 1].
double ScaleToUnit(double value, const ValueRange& range);

// The row of the font tables: the index of the first of 0, 8, 9, ..., 24, 29,
// 34, ..., 49 that is not below the size, rounded half to even; 23 beyond
// (doc/openkp.md 3.6).
int64_t FontId(double font_size);

// The row of the crossed indicators.
int64_t CrossId(const OpenkpElement& element,
                const OpenkpVisualOptions& options);

// x, y, width, height, those of the parent, and the indicators that are not
// crossed: [D]. In this order, unlike in the file.
std::vector<float> DenseFeatures(const OpenkpElement& element,
                                 const OpenkpVisualOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_VISUAL_FEATURES_H_
