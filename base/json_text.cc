#include "base/json_text.h"

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

}  // namespace etc
