#ifndef ETC_TASKS_TRAIN_CONFIG_TABLE_H_
#define ETC_TASKS_TRAIN_CONFIG_TABLE_H_

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace etc {

// One table of fields for each struct of a configuration. The reader and its
// checks, the comparison of a resumed run, the names that --allow-changes
// accepts and the test of doc/configuration.md all use it. A field that is missing in its
// table does not compile (see HasAllFields).

struct FieldRule {
  // Bounds of a number; in a list, of each. Whole numbers are exact to 2^53.
  std::optional<double> least;  // value >= least
  std::optional<double> above;  // value > above
  std::optional<double> most;   // value <= most
  std::optional<double> below;  // value < below
  // All that a string may be; none: anything.
  std::array<absl::string_view, 4> one_of = {};
  // The value names files or a directory; a resumed run compares what is in
  // them, wherever they are now. `no_file` is a value that stands for none.
  bool names_files = false;
  absl::string_view no_file = "";
  // Why a resumed run may have another value; empty: it may not.
  absl::string_view may_change = "";
  // The processes of a run may have different values, as what they do together
  // does not depend on it.
  bool is_local = false;
};

template <typename Config, typename Value>
struct ConfigField {
  const char* name;
  Value Config::*member;
  FieldRule rule;
};

template <typename Config, typename Value>
constexpr ConfigField<Config, Value> Field(const char* name,
                                           Value Config::*member,
                                           FieldRule rule = {}) {
  return {name, member, rule};
}

// kObject is the struct's name in the file, kFields its fields in their order.
template <typename Config>
struct ConfigTable;

// Calls visit(field, value) for each field of one struct.
template <typename Config, typename Visitor>
void ForEachField(Config& config, Visitor visit) {
  std::apply(
      [&](const auto&... fields) {
        (visit(fields, config.*fields.member), ...);
      },
      ConfigTable<std::remove_const_t<Config>>::kFields);
}

// Whether the table has every field of the struct in its order: the fields'
// types, and no value more, initialise it.
template <typename Config>
constexpr bool HasAllFields() {
  return std::apply(
      []<typename... Values>(const ConfigField<Config, Values>&...) {
        return requires(Values... values) { Config{values...}; }
        &&!requires(Values... values) { Config{values..., {}}; };
      },
      ConfigTable<Config>::kFields);
}

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_TABLE_H_
