#ifndef ETC_BASE_JSON_TEXT_H_
#define ETC_BASE_JSON_TEXT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace etc {

// The text of a JSON value: on one line, or indented by `indent` if that is not
// negative. Bytes of its strings that are not UTF-8, as names of files may
// have, become U+FFFD: a run that works is not to end for a name that cannot be
// spelt.
std::string JsonText(const nlohmann::json& json, int indent = -1);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

// The same with escapes in the place of all that is not ASCII.
std::string JsonAsciiText(const nlohmann::json& json, int indent = -1);
std::string JsonAsciiText(const nlohmann::ordered_json& json, int indent = -1);

// A string, or a number or boolean as JSON spells it; nothing for others, and
// for whole numbers that were rounded when they were read.
std::optional<std::string> ScalarText(const nlohmann::json& json);

// Ends messages about numbers that have no ScalarText.
inline constexpr char kRoundedNumberHint[] =
    "; whole numbers of more than 64 bits need quotation marks";

// JsonAsciiText on one line, and a newline: a JSON value as official prediction
// files have it.
template <typename Json>
std::string AsciiLine(const Json& json) {
  return JsonAsciiText(json) + "\n";
}

// An object of these fields in their order; a name that comes again has its
// last value, at its first place. For many fields: to assign to the fields of
// an ordered_json takes time quadratic in their number.
nlohmann::ordered_json JsonObjectOf(
    std::vector<std::pair<std::string, nlohmann::ordered_json>>&& fields);

}  // namespace etc

#endif  // ETC_BASE_JSON_TEXT_H_
