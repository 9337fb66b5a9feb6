#ifndef ETC_TASKS_TRAIN_FIELD_RULES_H_
#define ETC_TASKS_TRAIN_FIELD_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json_reader.h"
#include "tasks/train/config_table.h"

namespace etc {

// Adds the error "<field> should be at least 1, but is 0" to `reader` if
// `value` breaks `rule`.
void CheckRule(const FieldRule& rule, const std::string& field, int64_t value,
               JsonObjectReader* reader);
void CheckRule(const FieldRule& rule, const std::string& field, double value,
               JsonObjectReader* reader);
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::string& value, JsonObjectReader* reader);

// Each element, or the value if there is one.
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<T>& values, JsonObjectReader* reader) {
  for (const T& value : values) {
    CheckRule(rule, field, value, reader);
  }
}
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::optional<T>& value, JsonObjectReader* reader) {
  if (value.has_value()) {
    CheckRule(rule, field, *value, reader);
  }
}

// Reads the fields of `config` that are there, and checks each by its rule.
template <typename Config>
void ReadFields(JsonObjectReader* reader, Config* config) {
  ForEachField(*config, [reader](const auto& field, auto& value) {
    if constexpr (requires { reader->OneOrMore(field.name, &value); }) {
      reader->OneOrMore(field.name, &value);
    } else {
      reader->Optional(field.name, &value);
    }
    if constexpr (!std::is_same_v<decltype(value), bool&>) {
      CheckRule(field.rule, field.name, value, reader);
    }
  });
}

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_FIELD_RULES_H_
