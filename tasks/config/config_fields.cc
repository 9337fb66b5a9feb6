#include "tasks/config/config_fields.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"

namespace etc {
namespace {

// The bound that a value breaks ("at least 1"), or empty. For a share, both
// bounds: "in [0, 1)".
template <typename T>
std::string MissedBounds(const FieldRule& rule, T value) {
  const auto number = static_cast<double>(value);
  const bool is_low = (rule.least.has_value() && !(number >= *rule.least)) ||
                      (rule.above.has_value() && !(number > *rule.above));
  const bool is_high = (rule.most.has_value() && !(number <= *rule.most)) ||
                       (rule.below.has_value() && !(number < *rule.below));
  if (!is_low && !is_high) {
    return "";
  }
  const auto bound = [](const std::optional<double>& inclusive,
                        const std::optional<double>& exclusive) {
    return static_cast<T>(inclusive.has_value() ? *inclusive : *exclusive);
  };
  const bool has_low = rule.least.has_value() || rule.above.has_value();
  const bool has_high = rule.most.has_value() || rule.below.has_value();
  const bool is_share =
      has_low && has_high && bound(rule.most, rule.below) <= 1;
  if (is_share && !std::is_integral_v<T>) {
    return absl::StrCat("in ", rule.least.has_value() ? "[" : "(",
                        bound(rule.least, rule.above), ", ",
                        bound(rule.most, rule.below),
                        rule.most.has_value() ? "]" : ")");
  }
  if (is_low) {
    return absl::StrCat(rule.least.has_value() ? "at least " : "more than ",
                        bound(rule.least, rule.above));
  }
  return absl::StrCat(rule.most.has_value() ? "at most " : "less than ",
                      bound(rule.most, rule.below));
}

template <typename T>
void CheckNumber(const FieldRule& rule, const std::string& field, T value,
                 JsonObjectReader* reader) {
  const std::string bounds = MissedBounds(rule, value);
  if (!bounds.empty()) {
    reader->Fail(field, absl::StrCat("should be ", bounds, ", but is ", value));
  }
}

}  // namespace

void CheckRule(const FieldRule& rule, const std::string& field, int64_t value,
               JsonObjectReader* reader) {
  CheckNumber(rule, field, value, reader);
}

void CheckRule(const FieldRule& rule, const std::string& field, double value,
               JsonObjectReader* reader) {
  CheckNumber(rule, field, value, reader);
}

void CheckPath(const std::string& field, const std::string& path,
               JsonObjectReader* reader) {
  if (path == "~" || absl::StartsWith(path, "~/")) {
    reader->Fail(
        field, absl::StrCat("should be a whole path, but is ", QuotedName(path),
                            ", whose ~ is not expanded"));
  }
}

void CheckRule(const FieldRule& rule, const std::string& field,
               const std::string& value, JsonObjectReader* reader) {
  if (rule.names_files || rule.is_path) {
    CheckPath(field, value, reader);
  }
  const std::vector<std::string> names(rule.one_of.begin(), rule.one_of.end());
  if (names.empty() ||
      std::find(names.begin(), names.end(), value) != names.end()) {
    return;
  }
  const std::string nearest = NearestName(value, names);
  reader->Fail(field,
               absl::StrCat("should be \"", absl::StrJoin(names, "\" or \""),
                            "\", but is \"", value, "\"",
                            nearest.empty() ? ""
                                            : absl::StrCat("; did you mean \"",
                                                           nearest, "\"?")));
}

void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<std::string>& values,
               JsonObjectReader* reader) {
  for (const std::string& value : values) {
    if (rule.names_files && value.empty()) {
      reader->Fail(field,
                   "should name files, but has an empty name; [] names "
                   "none");
    }
    CheckRule(rule, field, value, reader);
  }
}

int64_t ReadNamed(const std::string& field, const FieldRule& rule,
                  JsonObjectReader* reader, int64_t otherwise) {
  std::string name;
  reader->Optional(field, &name);
  if (!reader->Has(field)) {
    return otherwise;
  }
  CheckRule(rule, field, name, reader);
  const auto found = std::find(rule.one_of.begin(), rule.one_of.end(), name);
  return found == rule.one_of.end() ? otherwise : found - rule.one_of.begin();
}

void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader, std::optional<double>* value) {
  double number = 0;
  reader->Optional(field, &number);
  if (reader->Has(field)) {
    CheckRule(rule, field, number, reader);
    *value = number;
  }
}

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
