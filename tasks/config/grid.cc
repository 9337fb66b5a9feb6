#include "tasks/config/grid.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/output/grid_results.h"

namespace etc {

using Json = nlohmann::json;

namespace {

// Returns true if `name` is a field of `types`, an object of some, or within a
// field.
bool IsKnown(const std::string& name, const FieldTypes& types) {
  return absl::c_any_of(types, [&](const auto& field) {
    return absl::StartsWith(absl::StrCat(field.first, "."),
                            absl::StrCat(name, ".")) ||
           absl::StartsWith(name, absl::StrCat(field.first, "."));
  });
}

// Returns an error for a null that would take out nothing, but for a mistake in
// the name.
absl::Status CheckIsKnown(const std::string& name, const FieldTypes& types) {
  if (types.empty() || absl::StartsWith(name, "model.") ||
      IsKnown(name, types)) {
    return absl::OkStatus();
  }
  std::vector<std::string> names;
  for (const auto& [field, type] : types) {
    names.push_back(field);
  }
  const std::string nearest = NearestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "--set ", name, "=null: there is no such field",
      nearest.empty() ? ""
                      : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace

absl::Status ApplyOverride(const std::string& text, Json* json,
                           const FieldTypes& types) {
  // The name becomes a part of files in JSON.
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
  if (value.is_null()) {
    ETC_RETURN_IF_ERROR(CheckIsKnown(parts.first, types));
  }
  // A version or a name may look like a number.
  const auto type = types.find(parts.first);
  const bool takes_text = type != types.end() &&
                          absl::StrContains(type->second, "text") &&
                          !absl::StrContains(type->second, "number");
  const bool is_text =
      value.is_discarded() || (takes_text && value.is_number());
  return SetField(fields, is_text ? Json(parts.second) : std::move(value),
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
  // The null of a field of the model decides over that of its preset or file.
  const bool is_of_model = path.size() > 1 && path.front() == "model" &&
                           path.back() != "preset" && path.back() != "path";
  if (value.is_null() && !is_of_model) {
    object->erase(path.back());
  } else {
    (*object)[path.back()] = std::move(value);
  }
  return absl::OkStatus();
}

namespace {

using Json = nlohmann::json;

constexpr size_t kMostSettings = 10'000;
constexpr size_t kLongestFileName = 255;

// Fields that all settings have in common, and why.
const std::map<std::string, std::string>& CommonFields() {
  static const auto* const fields = new std::map<std::string, std::string>{
      {"grid", "a grid has no grids in it"},
      {"output", "each setting has a directory of its own in it"},
      {"task", "settings are compared by the metric of one task"},
      {"train.seeds", "each setting is trained with all seeds"}};
  return *fields;
}

// Bytes that mean something else in a name are written as %2F.
std::string Encoded(const std::string& text) {
  std::string encoded;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (absl::ascii_isalnum(code) ||
        std::string(".+-_").find(byte) != std::string::npos) {
      encoded += byte;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", code);
    }
  }
  return encoded;
}

// "train.epochs=2, train.learning_rate=2e-05"
std::string Description(const Json& values) {
  std::vector<std::string> parts;
  for (const auto& [field, value] : values.items()) {
    parts.push_back(absl::StrCat(field, "=", GridValueText(value)));
  }
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<std::string> NameOf(const Json& values,
                                   const std::string& source) {
  std::vector<std::string> parts;
  for (const auto& [field, value] : values.items()) {
    parts.push_back(
        absl::StrCat(Encoded(field), "=", Encoded(GridValueText(value))));
  }
  std::string name = absl::StrJoin(parts, ",");
  if (name.size() > kLongestFileName) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": the directory of the setting ", Description(values),
        " of the grid would have a name of ", name.size(),
        " bytes; a file has at most ", kLongestFileName));
  }
  return name;
}

absl::StatusOr<std::vector<Json>> Combinations(const RunConfig& config) {
  std::vector<Json> combinations = {Json::object()};
  for (const auto& [field, values] : config.grid.items()) {
    if (combinations.size() * values.size() > kMostSettings) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.source, ": grid should have at most ",
                       kMostSettings, " settings, but has more"));
    }
    std::vector<Json> longer;
    for (const Json& combination : combinations) {
      for (const Json& value : values) {
        longer.push_back(combination);
        longer.back()[field] = value;
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

}  // namespace

absl::StatusOr<Json> ReadGrid(const Json& json, const std::string& where) {
  JsonObjectReader reader(json, where);
  ETC_RETURN_IF_ERROR(reader.status());
  Json grid = Json::object();
  for (const auto& [field, value] : json.items()) {
    const auto common = CommonFields().find(field);
    if (common != CommonFields().end()) {
      reader.Fail(field, absl::StrCat("should not be given: ", common->second));
    }
    if (value.is_object() || value.is_null()) {
      reader.Fail(field, absl::StrCat("should be a list of values, but is ",
                                      value.is_null() ? "null" : "an object"));
    }
    Json& values = grid[field];
    values = Json::array();
    for (const Json& element :
         value.is_array() ? value : Json::array({value})) {
      if (element.is_object()) {
        reader.Fail(field,
                    "should be a list of values, but has an object in it; name "
                    "the fields of that, as in train.epochs");
      }
      if (std::find(values.begin(), values.end(), element) != values.end()) {
        reader.Fail(field, absl::StrCat("should have each value once, but has ",
                                        JsonText(element), " twice"));
      }
      values.push_back(element);
    }
    if (values.empty()) {
      reader.Fail(field, "should have at least one value, but is empty");
    }
  }
  ETC_RETURN_IF_ERROR(reader.status());
  return grid;
}

absl::StatusOr<std::vector<GridSetting>> ExpandGrid(
    const RunConfig& config, const TaskNameCheck& check_task) {
  std::vector<GridSetting> settings;
  if (config.grid.empty()) {
    settings.push_back({.config = config});
    return settings;
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<Json> combinations,
                       Combinations(config));
  for (const Json& values : combinations) {
    GridSetting setting = {.values = values};
    ETC_ASSIGN_OR_RETURN(setting.name, NameOf(values, config.source));
    const std::string source =
        absl::StrCat(config.source, " (", Description(values), " of its grid)");
    Json json = config.json;
    json.erase("grid");
    for (const auto& [field, value] : values.items()) {
      ETC_RETURN_IF_ERROR(
          SetField(absl::StrSplit(field, '.'), value, source, &json));
    }
    if (!config.output.empty()) {
      json["output"] = absl::StrCat(config.output, "/", setting.name);
    }
    ETC_ASSIGN_OR_RETURN(
        setting.config, RunConfigFromJson(std::move(json), source, check_task));
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace etc
