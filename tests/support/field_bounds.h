#ifndef ETC_TESTS_SUPPORT_FIELD_BOUNDS_H_
#define ETC_TESTS_SUPPORT_FIELD_BOUNDS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/fields.h"
#include "nlohmann/json.hpp"

namespace etc {

// Calls `visit` with a number just out of each bound of `rule`.
template <typename Visitor>
void ForEachBadValue(const FieldRule& rule, const Visitor& visit) {
  if (rule.least.has_value()) {
    visit(*rule.least - 1);
  }
  if (rule.above.has_value()) {
    visit(*rule.above);
  }
  if (rule.most.has_value()) {
    visit(*rule.most + 1);
  }
  if (rule.below.has_value()) {
    visit(*rule.below);
  }
}

// Expects the mistake "<source>: <field> should be ..." where one field of
// Config is just out of each of its bounds, or has no name of its rule.
// `mistake` reads an object and returns the message, which begins with
// `source`.
template <typename Config, typename Mistake>
void ExpectHoldsFieldsToBounds(const std::string& source, Mistake mistake) {
  int64_t bounds = 0;
  const Config defaults;
  ForEachField(defaults, [&](const auto& field, const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    constexpr bool kIsReal = std::is_same_v<Value, double> ||
                             std::is_same_v<Value, std::optional<double>>;
    const auto expect_refused = [&](const nlohmann::json& bad) {
      ++bounds;
      nlohmann::json object = nlohmann::json::object();
      object[field.name] = bad;
      EXPECT_THAT(mistake(object),
                  testing::StartsWith(
                      absl::StrCat(source, ": ", field.name, " should be ")))
          << bad;
    };
    const auto expect_number_refused = [&](double bad) {
      expect_refused(kIsReal ? nlohmann::json(bad)
                             : nlohmann::json(static_cast<int64_t>(bad)));
    };
    ForEachBadValue(field.rule, expect_number_refused);
    if (!field.rule.one_of.empty()) {
      expect_refused("nonsense");
    }
  });
  EXPECT_GT(bounds, 0);
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_FIELD_BOUNDS_H_
