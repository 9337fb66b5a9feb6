#ifndef ETC_TESTS_SUPPORT_ROW_OPTIONS_H_
#define ETC_TESTS_SUPPORT_ROW_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "base/json_reader.h"

namespace etc {

// One struct with each kind of row that a table may have.

enum class RowShape { kRound, kFlat, kNone };

struct RowPart {
  int64_t width = 3;
};

struct RowOptions {
  RowShape shape = RowShape::kFlat;
  RowShape other_shape = RowShape::kNone;
  RowPart part;
  std::optional<double> share;
  int64_t rows = 0;
  std::string color = "red";
  char mark = ',';
};

template <>
struct ConfigTable<RowPart> {
  static constexpr auto kFields = std::make_tuple(
      Field("width", &RowPart::width, "how wide it is", CountFrom(1)));
};

template <>
struct ConfigTable<RowOptions> {
  using O = RowOptions;
  // Null is "blue".
  static void ReadColor(const std::string& field, const FieldRule& rule,
                        JsonObjectReader* reader, std::string* color) {
    std::optional<std::string> given = *color;
    reader->Optional(field, &given);
    *color = given.value_or("blue");
    CheckRule(rule, field, *color, reader);
  }
  static void ReadMark(JsonObjectReader& reader, RowOptions* options) {
    std::string mark;
    reader.Optional("mark", &mark);
    if (mark.size() == 1) {
      options->mark = mark[0];
    } else if (reader.Has("mark")) {
      reader.Fail("mark", "should be one character");
    }
  }

  static constexpr absl::string_view kShapes[] = {"round", "flat"};
  static constexpr const char* kColorNames[] = {"red", "green", "blue"};
  static constexpr auto kColors = NamesOf(kColorNames);
  static constexpr auto kFields = std::make_tuple(
      Field("shape", &O::shape, "a shape", {.one_of = kShapes}),
      Field("other_shape", &O::other_shape, "another one",
            {.one_of = kShapes, .default_text = "by its mark"}),
      FieldsOf(&O::part),
      Field("share", &O::share, "a share",
            {.above = 0, .below = 1, .default_text = "that of the data"}),
      Field("rows", &O::rows, "rows",
            {.least = 1, .most = 9, .null_is_zero = true}),
      Field("color", &O::color, "a color", {.one_of = kColors}, ReadColor),
      Field("mark", ReadMark, "a mark",
            {.default_text = "`\",\"`",
             .type_text = "text",
             .more_bounds = "one character"}));
};

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_ROW_OPTIONS_H_
