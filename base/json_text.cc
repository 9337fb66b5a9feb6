#include "base/json_text.h"

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
