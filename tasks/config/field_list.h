#ifndef ETC_TASKS_CONFIG_FIELD_LIST_H_
#define ETC_TASKS_CONFIG_FIELD_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/config/config_fields.h"

namespace etc {

// The fields of a configuration, described for people.

// A field of the object of a task's name, which the task reads: beside the code
// that reads it. All but the type is Markdown.
struct OptionField {
  absl::string_view name;           // "stride"
  absl::string_view type;           // "whole number"
  absl::string_view default_value;  // "`2048`", "4 times that"
  absl::string_view bounds;         // "at least 1"; empty: none
  absl::string_view meaning;        // a sentence
};

// The same of any field.
struct FieldDescription {
  std::string name;  // "nq.stride"
  std::string type;
  std::string default_value;
  std::string bounds;
  std::string meaning;
};

// The fields of every configuration, in the order of doc/configuration.md.
std::vector<FieldDescription> ConfigFields();

// Descriptions of the fields of the object `object`.
std::vector<FieldDescription> DescribeOptions(
    const std::string& object, absl::Span<const OptionField> options);

// The type and the default of a field that has the value `value` in a new
// struct, and its rule, for people.
template <typename Value>
FieldDescription DescribeField(const std::string& name,
                               absl::string_view meaning, const FieldRule& rule,
                               const Value& value);

// Descriptions of the fields of a table, with the defaults of a new `Config`.
template <typename Config>
std::vector<FieldDescription> DescribeTable() {
  std::vector<FieldDescription> fields;
  const Config defaults;
  ForEachField(defaults, [&](const auto& field, const auto& value) {
    fields.push_back(DescribeField(
        std::string(ConfigTable<Config>::kObject) + "." + field.name,
        field.meaning, field.rule, value));
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
