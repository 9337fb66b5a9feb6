#ifndef ETC_TASKS_PREDICTION_JSON_H_
#define ETC_TASKS_PREDICTION_JSON_H_

#include <string>

#include "base/json_text.h"

namespace etc {

// A JSON value as official prediction files have it: on one line, ASCII with
// escapes, and a newline. Bytes that are not UTF-8 become U+FFFD.
//   Json  nlohmann::json, or nlohmann::ordered_json
template <typename Json>
std::string AsciiLine(const Json& json) {
  return JsonAsciiText(json) + "\n";
}

// A line for each of `predictions`, of what `json(id, prediction)` makes of it.
template <typename Predictions, typename ToJson>
std::string AsciiLines(const Predictions& predictions, ToJson json) {
  std::string lines;
  for (const auto& [id, prediction] : predictions) {
    lines += AsciiLine(json(id, prediction));
  }
  return lines;
}

}  // namespace etc

#endif  // ETC_TASKS_PREDICTION_JSON_H_
