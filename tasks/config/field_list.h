#ifndef ETC_TASKS_CONFIG_FIELD_LIST_H_
#define ETC_TASKS_CONFIG_FIELD_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "nlohmann/json.hpp"

namespace etc {

// The fields of a configuration, described for people.

// All but name, type and task is Markdown, whose links are those of
// doc/configuration.md.
struct FieldDescription {
  std::string name;           // "nq.stride"
  std::string type;           // "whole number"
  std::string default_value;  // "`2048`", "4 times that"
  std::string bounds;         // "at least 1"; empty: none
  std::string meaning;        // a sentence
  // Words that the value, or an element of a list, may be; empty: any.
  std::vector<std::string> words = {};
  // The one task whose configurations have it, beside a field of the others
  // with this name; empty: the name says it.
  std::string task = {};
};

// The fields of every configuration, in the order of doc/configuration.md.
std::vector<FieldDescription> ConfigFields();

// The type of a value for people; empty: its rule has to say it.
template <typename Value>
constexpr absl::string_view TypeText() {
  if constexpr (std::is_same_v<Value, bool>) {
    return "true or false";
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    return "whole number";
  } else if constexpr (std::is_same_v<Value, double> ||
                       std::is_same_v<Value, std::optional<double>>) {
    return "number";
  } else if constexpr (std::is_same_v<Value, std::string> ||
                       std::is_enum_v<Value>) {
    return "text";
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return "list of texts";
  } else if constexpr (std::is_same_v<Value, std::vector<int64_t>>) {
    return "list of whole numbers";
  } else if constexpr (std::is_same_v<Value, std::optional<int64_t>>) {
    return "whole number or null";
  } else if constexpr (std::is_same_v<Value, std::optional<std::string>>) {
    return "text or null";
  } else {
    return "";
  }
}

// The default of a field for people, given its value in a new struct.
std::string DefaultText(const nlohmann::json& value);

// The description of a field by its rule, where that says more than `type` and
// `default_value`.
FieldDescription DescribeByRule(const std::string& name,
                                absl::string_view meaning,
                                const FieldRule& rule, absl::string_view type,
                                const std::string& default_value);

// The description of a field that has the value `value` in a new struct.
template <typename Value>
FieldDescription DescribeField(const std::string& name,
                               absl::string_view meaning, const FieldRule& rule,
                               const Value& value) {
  return DescribeByRule(name, meaning, rule, TypeText<Value>(),
                        DefaultText(FieldToJson(ValueInFile(rule, value))));
}

// Descriptions of the fields of a table, those of `object`, with the defaults
// of a new `Config`.
template <typename Config>
std::vector<FieldDescription> DescribeTable(const std::string& object) {
  std::vector<FieldDescription> fields;
  const Config defaults = {};
  ForEachField(defaults, [&](const auto& field, const auto& value) {
    const std::string name = object + "." + field.name;
    if constexpr (requires { field.read; }) {
      fields.push_back(DescribeByRule(name, field.meaning, field.rule, "", ""));
    } else {
      fields.push_back(DescribeField(name, field.meaning, field.rule, value));
    }
  });
  return fields;
}

// The fields that `pattern` means: the field or the fields of the object of
// that name, those that it matches as a shell's pattern ("train.*rate*"), or
// else those with these letters in their names.
//   kNotFound  none, with the nearest name
absl::StatusOr<std::vector<FieldDescription>> SelectFields(
    const std::vector<FieldDescription>& fields, const std::string& pattern);

// For a terminal: a line with name, type, default and bounds, and the sentence,
// without Markdown, in indented lines of at most 80 columns.
std::string FieldsAsText(const std::vector<FieldDescription>& fields);

// The rows of a table in Markdown: name, default, meaning. `without` is taken
// off the beginning of each name that has it.
std::string FieldsAsMarkdown(const std::vector<FieldDescription>& fields,
                             absl::string_view without = "");

// An array of objects, with all that FieldDescription has, without Markdown.
std::string FieldsAsJson(const std::vector<FieldDescription>& fields);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_FIELD_LIST_H_
