#include "base/json_text.h"

#include <cmath>
#include <map>

#include "nlohmann/json.hpp"

namespace etc {
namespace {

template <typename Json>
std::string Dump(const Json& value, int indent, bool ensure_ascii) {
  return value.dump(indent, /*indent_char=*/' ', ensure_ascii,
                    Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const nlohmann::json& value, int indent) {
  return Dump(value, indent, /*ensure_ascii=*/false);
}
std::string JsonText(const nlohmann::ordered_json& value, int indent) {
  return Dump(value, indent, /*ensure_ascii=*/false);
}
std::string JsonAsciiText(const nlohmann::json& value, int indent) {
  return Dump(value, indent, /*ensure_ascii=*/true);
}
std::string JsonAsciiText(const nlohmann::ordered_json& value, int indent) {
  return Dump(value, indent, /*ensure_ascii=*/true);
}

std::optional<std::string> ScalarText(const nlohmann::json& json) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (json.is_string()) {
    return json.get<std::string>();
  }
  if ((json.is_number_float() && std::abs(json.get<double>()) >= kExact) ||
      (!json.is_number() && !json.is_boolean())) {
    return std::nullopt;
  }
  return JsonText(json);
}

nlohmann::ordered_json JsonObjectOf(
    std::vector<std::pair<std::string, nlohmann::ordered_json>>&& fields) {
  using Json = nlohmann::ordered_json;
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  members.reserve(fields.size());  // so that values stay in their places
  std::map<std::string, Json*> values;
  for (auto& [name, value] : fields) {
    Json*& place = values[name];
    if (place == nullptr) {
      members.emplace_back(std::move(name), std::move(value));
      place = &members.back().second;
    } else {
      *place = std::move(value);
    }
  }
  return object;
}

}  // namespace etc
