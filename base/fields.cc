#include "base/fields.h"

#include <algorithm>
#include <cmath>

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
                 FieldMistakes* mistakes) {
  const std::string bounds = MissedBounds(rule, value);
  if (!bounds.empty()) {
    mistakes->Fail(field,
                   absl::StrCat("should be ", bounds, ", but is ", value));
  }
}

}  // namespace

void CheckRule(const FieldRule& rule, const std::string& field, int64_t value,
               FieldMistakes* mistakes) {
  CheckNumber(rule, field, value, mistakes);
}

void CheckRule(const FieldRule& rule, const std::string& field, double value,
               FieldMistakes* mistakes) {
  mistakes->Check(std::isfinite(value), field, "a finite number", value);
  CheckNumber(rule, field, value, mistakes);
}

std::string UnknownNameText(absl::string_view value,
                            absl::Span<const absl::string_view> names) {
  const std::string nearest =
      NearestName(value, std::vector<std::string>(names.begin(), names.end()));
  return absl::StrCat(
      "should be \"", absl::StrJoin(names, "\" or \""), "\", but is \"", value,
      "\"",
      nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?"));
}

void CheckPath(const std::string& field, const std::string& path,
               FieldMistakes* mistakes) {
  if (path == "~" || absl::StartsWith(path, "~/")) {
    mistakes->Fail(
        field, absl::StrCat("should be a whole path, but is ", QuotedName(path),
                            ", whose ~ is not expanded"));
  }
}

void CheckRule(const FieldRule& rule, const std::string& field,
               const std::string& value, FieldMistakes* mistakes) {
  if (rule.names_files || rule.is_path) {
    CheckPath(field, value, mistakes);
  }
  if (!rule.one_of.empty() && std::find(rule.one_of.begin(), rule.one_of.end(),
                                        value) == rule.one_of.end()) {
    mistakes->Fail(field, UnknownNameText(value, rule.one_of));
  }
}

void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<std::string>& values,
               FieldMistakes* mistakes) {
  for (const std::string& value : values) {
    if (rule.names_files && value.empty()) {
      mistakes->Fail(field,
                     "should name files, but has an empty name; [] names "
                     "none");
    }
    CheckRule(rule, field, value, mistakes);
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
               JsonObjectReader* reader, int64_t* value) {
  if (!rule.null_is_zero) {
    reader->Optional(field, value);
    CheckRule(rule, field, *value, reader);
    return;
  }
  std::optional<int64_t> given;
  reader->Optional(field, &given);
  if (reader->Has(field)) {
    CheckRule(rule, field, given, reader);
    *value = given.value_or(0);
  }
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

}  // namespace etc
