#include "tasks/train/config_override.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace etc {

using Json = nlohmann::json;

absl::Status ApplyOverride(const std::string& text, Json* json) {
  // It becomes a part of files in JSON.
  if (!IsUtf8(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", QuotedName(text), " should be UTF-8, but is not",
                     "; a pattern such as * may stand for other names"));
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::vector<std::string> fields = absl::StrSplit(parts.first, '.');
  if (fields.front() == "grid" && fields.size() > 1) {
    // The names in it are whole.
    fields = {"grid", parts.first.substr(fields.front().size() + 1)};
  }
  if (text.find('=') == std::string::npos ||
      std::count(fields.begin(), fields.end(), "") > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", text,
                     " should be a field and its value, as in "
                     "train.learning_rate=3e-5"));
  }
  Json value = Json::parse(parts.second, nullptr, /*allow_exceptions=*/false);
  return SetField(fields,
                  value.is_discarded() ? Json(parts.second) : std::move(value),
                  absl::StrCat("--set ", text), json);
}

absl::Status SetField(const std::vector<std::string>& path, Json value,
                      absl::string_view what, Json* json) {
  Json* object = json;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (!object->is_object()) {
      break;
    }
    Json& next = (*object)[path[i]];
    if (next.is_null()) {
      next = Json::object();
    }
    object = &next;
  }
  if (!object->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " reaches into a value that is no object: ", JsonText(*object)));
  }
  (*object)[path.back()] = std::move(value);
  return absl::OkStatus();
}

}  // namespace etc
