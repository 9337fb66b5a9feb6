#include "base/json_text.h"

#include "nlohmann/json.hpp"

namespace etc {
namespace {

template <typename Json>
std::string Dump(const Json& json, int indent, bool ensure_ascii) {
  return json.dump(indent, /*indent_char=*/' ', ensure_ascii,
                   Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const nlohmann::json& json, int indent) {
  return Dump(json, indent, /*ensure_ascii=*/false);
}
std::string JsonText(const nlohmann::ordered_json& json, int indent) {
  return Dump(json, indent, /*ensure_ascii=*/false);
}
std::string JsonAsciiText(const nlohmann::json& json, int indent) {
  return Dump(json, indent, /*ensure_ascii=*/true);
}
std::string JsonAsciiText(const nlohmann::ordered_json& json, int indent) {
  return Dump(json, indent, /*ensure_ascii=*/true);
}

}  // namespace etc
