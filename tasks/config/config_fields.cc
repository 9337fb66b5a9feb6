#include "tasks/config/config_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace etc {

void ReadValue(const std::string& field, const FieldRule& /*rule*/,
               JsonObjectReader* reader,
               std::vector<LearningRateFactor>* factors) {
  const nlohmann::json* list = reader->Raw(field, /*required=*/false);
  if (list == nullptr) {
    return;
  }
  constexpr char kWanted[] =
      "should be a list of objects with \"parameters\", a pattern, and "
      "\"factor\", a number above 0, but ";
  if (!list->is_array()) {
    reader->Fail(field, absl::StrCat(kWanted, "is ",
                                     list->is_object() ? "an object"
                                                       : list->type_name()));
    return;
  }
  factors->clear();
  for (const nlohmann::json& entry : *list) {
    LearningRateFactor factor;
    JsonObjectReader inner(
        entry, absl::StrCat(reader->Where(field), "[", factors->size(), "]"));
    inner.Required("parameters", &factor.parameters);
    inner.Required("factor", &factor.factor);
    CheckRule({.above = 0, .most = 1e9}, "factor", factor.factor, &inner);
    if (const absl::Status status = inner.Finish(); !status.ok()) {
      reader->Fail(field, absl::StrCat(kWanted, status.message()));
      return;
    }
    factors->push_back(std::move(factor));
  }
}

}  // namespace etc
