#ifndef ETC_TASKS_PREDICTION_JSON_H_
#define ETC_TASKS_PREDICTION_JSON_H_

#include <string>

namespace etc {

// A JSON value as official prediction files have it: on one line, ASCII with
// escapes, and a newline. Bytes that are not UTF-8 become U+FFFD.
//   Json  nlohmann::json, or nlohmann::ordered_json
template <typename Json>
std::string AsciiLine(const Json& json) {
  return json.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace etc

#endif  // ETC_TASKS_PREDICTION_JSON_H_
