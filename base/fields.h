#ifndef ETC_BASE_FIELDS_H_
#define ETC_BASE_FIELDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// One table of fields for each struct of a configuration, the model's and a
// run's, and for the options of each task. The reader and its checks, the
// writer, the comparison of a resumed run, the names that --allow-changes
// accepts, `realetc fields` and the tests of doc/configuration.md and of the
// tasks' pages all use it: a default stands in the struct and a bound in the
// table, and nowhere else. In structs that have nothing but fields, one that is
// missing in the table does not compile (see HasAllFields).

struct FieldRule {
  // Bounds of a number; in a list, of each. Whole numbers are exact to 2^53.
  std::optional<double> least;  // value >= least
  std::optional<double> above;  // value > above
  std::optional<double> most;   // value <= most
  std::optional<double> below;  // value < below
  // True if a null stands for 0, "not given", which a number in the file is
  // not; the bounds are those of a number.
  bool null_is_zero = false;
  // Values that a string may have, an array of the table; none: any. A list in
  // braces does not compile: it would be gone before the table is used. Names
  // of the values 0, 1, ... of an enum, which may have more without a name.
  absl::Span<const absl::string_view> one_of = {};
  // True if the value names files or a directory; a resumed run compares their
  // contents, wherever they are now. `no_file` is a value that stands for none.
  bool names_files = false;
  absl::string_view no_file = "";
  // True if the value is a path whose contents are not compared.
  bool is_path = false;
  // The reason why a resumed run may have another value; empty: it may not.
  absl::string_view may_change = "";
  // True if the ranks of a run may have different values, because no collective
  // operation depends on it.
  bool is_local = false;
  // True if the number or the meaning of the head's outputs depends on it.
  bool decides_outputs = false;
  // True if it says how data files are read and cut into examples: `evaluate`
  // and `predict` may set it anew.
  bool reads_files = false;
  // True if it says how answers are decoded from the head's outputs: these do
  // not depend on it, and `evaluate`, `predict` and `score` may set it anew.
  bool decodes = false;
  // For people, in Markdown, if neither a new struct nor the above says it: the
  // default of a field that depends on others or on data, the type of a value
  // that is read in its own way, and bounds beside those above.
  absl::string_view default_text = "";
  absl::string_view type_text = "";
  absl::string_view more_bounds = "";
};

// The rule of a count or a length from `least` on: sums and products of two of
// them fit in 64 bits.
constexpr FieldRule CountFrom(int32_t least) {
  return {.least = least, .most = std::numeric_limits<int32_t>::max()};
}

// CountFrom of a field that says how examples are cut.
constexpr FieldRule ReadingCountFrom(int32_t least) {
  FieldRule rule = CountFrom(least);
  rule.reads_files = true;
  return rule;
}

// CountFrom of a field that says how answers are decoded.
constexpr FieldRule DecodingCountFrom(int32_t least) {
  FieldRule rule = CountFrom(least);
  rule.decodes = true;
  return rule;
}

// Reads the value at `field`, if it is there, and checks it by its rule.
template <typename Value>
using ValueReader = void (*)(const std::string& field, const FieldRule& rule,
                             JsonObjectReader* reader, Value* value);

template <typename Config, typename Value>
struct ConfigField {
  const char* name;
  Value Config::*member;
  // A sentence for people, in Markdown: doc/configuration.md has it, and
  // `realetc fields` prints it.
  absl::string_view meaning;
  FieldRule rule;
  // Null: ReadValue.
  ValueReader<Value> read_value;
};

template <typename Config, typename Value>
constexpr ConfigField<Config, Value> Field(
    const char* name, Value Config::*member, absl::string_view meaning,
    FieldRule rule = {},
    std::type_identity_t<ValueReader<Value>> read_value = nullptr) {
  return {name, member, meaning, rule, read_value};
}

// A field that is no member as it stands, or whose reading depends on fields
// before it in the table: `read` reads it, if it is there, and notes mistakes.
template <typename Config>
struct FieldWithReader {
  const char* name;
  void (*read)(JsonObjectReader& reader, Config* config);
  absl::string_view meaning;
  FieldRule rule;  // for people, but for decides_outputs, reads_files, decodes
};

template <typename Config>
constexpr FieldWithReader<Config> Field(
    const char* name, void (*read)(JsonObjectReader& reader, Config* config),
    absl::string_view meaning, FieldRule rule = {}) {
  return {name, read, meaning, rule};
}

// The fields of a member that has a table of its own.
template <typename Config, typename Part>
struct FieldsOfMember {
  Part Config::*part;
};

template <typename Config, typename Part>
constexpr FieldsOfMember<Config, Part> FieldsOf(Part Config::*part) {
  return {part};
}

// kFields are the fields of a struct in their order: a Field of each, or
// FieldsOf. kObject, in the tables of a run's configuration alone, is the
// struct's name in the file (ForEachConfigField). A struct without members
// needs no table.
template <typename Config>
struct ConfigTable {
  static_assert(std::is_empty_v<Config>,
                "the header with the table is missing");
  static constexpr std::tuple<> kFields = {};
};

// Names from another layer as FieldRule::one_of takes them.
template <size_t kCount>
constexpr std::array<absl::string_view, kCount> NamesOf(
    const char* const (&names)[kCount]) {
  std::array<absl::string_view, kCount> views;
  for (size_t i = 0; i < kCount; ++i) {
    views[i] = names[i];
  }
  return views;
}

// Calls visit(field, value) for each field of one struct; the value of a
// FieldWithReader is the struct.
template <typename Config, typename Visitor>
void ForEachField(Config& config, Visitor visit) {
  [[maybe_unused]] const auto each = [&](const auto& field) {
    if constexpr (requires { field.part; }) {
      ForEachField(config.*field.part, visit);
    } else if constexpr (requires { field.read; }) {
      visit(field, config);
    } else {
      visit(field, config.*field.member);
    }
  };
  std::apply([&](const auto&... fields) { (each(fields), ...); },
             ConfigTable<std::remove_const_t<Config>>::kFields);
}

// The fields of Config for which `rule` is true, after the name of its object:
// "data.on_bad_record".
template <typename Config>
std::vector<std::string> FieldsWithRule(const std::string& object,
                                        bool FieldRule::*rule) {
  std::vector<std::string> names;
  Config config;
  ForEachField(config, [&](const auto& field, const auto&) {
    if (field.rule.*rule) {
      names.push_back(absl::StrCat(object, ".", field.name));
    }
  });
  return names;
}

// The type of a row's member; of a FieldWithReader none.
template <typename Config, typename Value>
std::tuple<Value> MemberOf(const ConfigField<Config, Value>& field);
template <typename Config>
std::tuple<> MemberOf(const FieldWithReader<Config>& field);

// True if the table has every field of the struct in its order: the members'
// types, and no value more, initialise it.
template <typename Config>
constexpr bool HasAllFields() {
  constexpr auto kHas = []<typename... Values>(const std::tuple<Values...>*) {
    return requires(Values... values) { Config{values...}; }
    &&!requires(Values... values) { Config{values..., {}}; };
  };
  return std::apply(
      [&](const auto&... fields) {
        using Members = decltype(std::tuple_cat(MemberOf(fields)...));
        return kHas(static_cast<const Members*>(nullptr));
      },
      ConfigTable<Config>::kFields);
}

// "should be "a" or "b", but is "c"; did you mean "a"?", where one is near.
std::string UnknownNameText(absl::string_view value,
                            absl::Span<const absl::string_view> names);

// Adds an error to `mistakes` if `path` begins with "~/": the shell alone
// expands it, and here it would be a directory of that name.
void CheckPath(const std::string& field, const std::string& path,
               FieldMistakes* mistakes);

// Adds the error "<field> should be at least 1, but is 0" to `mistakes` if
// `value` breaks `rule`. Numbers should be finite.
void CheckRule(const FieldRule& rule, const std::string& field, int64_t value,
               FieldMistakes* mistakes);
void CheckRule(const FieldRule& rule, const std::string& field, double value,
               FieldMistakes* mistakes);
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::string& value, FieldMistakes* mistakes);
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<std::string>& values, FieldMistakes* mistakes);

// Each element, or the value if there is one.
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<T>& values, FieldMistakes* mistakes) {
  for (const T& value : values) {
    CheckRule(rule, field, value, mistakes);
  }
}
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::optional<T>& value, FieldMistakes* mistakes) {
  if (value.has_value()) {
    CheckRule(rule, field, *value, mistakes);
  }
}

// The value as the file has it: the name of an enum's, and with null_is_zero no
// number for 0.
template <typename Value>
auto ValueInFile(const FieldRule& rule, const Value& value) {
  if constexpr (std::is_same_v<Value, int64_t>) {
    return rule.null_is_zero && value == 0 ? std::nullopt
                                           : std::optional<int64_t>(value);
  } else if constexpr (std::is_enum_v<Value>) {
    const auto index = static_cast<size_t>(value);
    return index < rule.one_of.size()
               ? std::optional<std::string>(std::string(rule.one_of[index]))
               : std::nullopt;
  } else {
    return value;
  }
}

// The value of a field as JSON, whose header the caller includes; null: it is
// absent.
template <typename Json = nlohmann::json, typename Value>
Json FieldToJson(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? Json(*value) : Json();
  } else {
    return value;
  }
}

// Returns the index of the name at `field` in `rule.one_of`; `otherwise` if the
// field is absent, or if it has none of the names, which is a mistake.
int64_t ReadNamed(const std::string& field, const FieldRule& rule,
                  JsonObjectReader* reader, int64_t otherwise);

// Reads the value at `field`, if it is there, and checks it by its rule. A type
// that is read in its own way has an overload beside it, and to_json for its
// default.
template <typename Value>
void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader, Value* value) {
  if constexpr (std::is_enum_v<Value>) {
    *value = static_cast<Value>(
        ReadNamed(field, rule, reader, static_cast<int64_t>(*value)));
  } else {
    if constexpr (requires { reader->OneOrMore(field, value); }) {
      reader->OneOrMore(field, value);
    } else {
      reader->Optional(field, value);
    }
    if constexpr (!std::is_same_v<Value, bool>) {
      CheckRule(rule, field, *value, reader);
    }
  }
}

// The same of a number, which may be null where the rule says so.
void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader, int64_t* value);

// The same of a number that may be absent, but not null.
void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader, std::optional<double>* value);

// Reads the fields of `config` that are there, in the order of its table, and
// checks each by its rule.
template <typename Config>
void ReadFields(JsonObjectReader* reader, Config* config) {
  ForEachField(*config, [reader](const auto& field, auto& value) {
    if constexpr (requires { field.read; }) {
      field.read(*reader, &value);
    } else if (field.read_value != nullptr) {
      field.read_value(field.name, field.rule, reader, &value);
    } else {
      ReadValue(field.name, field.rule, reader, &value);
    }
  });
}

// Checks the members of `config` by their rules, as ReadFields does.
template <typename Config>
void CheckFields(const Config& config, FieldMistakes* mistakes) {
  ForEachField(config, [mistakes](const auto& field, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (!requires { field.read; } && !std::is_same_v<Value, bool>) {
      CheckRule(field.rule, field.name, ValueInFile(field.rule, value),
                mistakes);
    }
  });
}

// Sets the fields of `*json`, an object, to the members of `config`. Json is
// nlohmann::json, whose header the caller includes.
template <typename Config, typename Json>
void WriteFields(const Config& config, Json* json) {
  ForEachField(config, [json](const auto& field, const auto& value) {
    if constexpr (!requires { field.read; }) {
      (*json)[field.name] = FieldToJson<Json>(ValueInFile(field.rule, value));
    }
  });
}

}  // namespace etc

#endif  // ETC_BASE_FIELDS_H_
