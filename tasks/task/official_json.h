#ifndef ETC_TASKS_TASK_OFFICIAL_JSON_H_
#define ETC_TASKS_TASK_OFFICIAL_JSON_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/gzip_file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/id_places.h"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The elements of a list, each from `read(element, where)`, which gives a value
// or a status. `what` is what they are called: "objects".
//   kInvalidArgument  "<where> should be a list of objects"
template <typename T, typename Read>
absl::StatusOr<std::vector<T>> ReadList(const nlohmann::json& json,
                                        const std::string& where,
                                        absl::string_view what, Read read) {
  if (!json.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " should be a list of ", what));
  }
  std::vector<T> values;
  values.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(values.emplace_back(),
                         read(json[i], absl::StrCat(where, "[", i, "]")));
  }
  return values;
}

// Applies `read(text, where)` to each record of the files that `pattern` names;
// it returns an id and a T, or a status.
//   kInvalidArgument  an id comes again; and what `read` says
template <typename T, typename Read>
absl::StatusOr<ById<T>> ReadById(const std::string& pattern, Read read,
                                 const RecordLimits& limits = {}) {
  ById<T> values;
  IdPlaces ids;
  ETC_RETURN_IF_ERROR(ForEachRecord(
      pattern,
      [&](const std::string& text, const std::string& where) -> absl::Status {
        ETC_ASSIGN_OR_RETURN(values.emplace_back(), read(text, where));
        return ids.Add(values.back().first, where);
      },
      limits));
  return values;
}

// Returns true if a prediction file is not as the official program has it, but
// lines as `realetc predict --output -` writes them: objects that begin with
// the field `id`, or say an error.
inline bool ArePredictedLines(absl::string_view text, absl::string_view id) {
  return absl::StartsWith(text, absl::StrCat("{\"", id, "\":")) ||
         absl::StartsWith(text, "{\"error\":");
}

// One of these lines with the field "id", and its id.
inline absl::StatusOr<std::pair<std::string, nlohmann::json>>
ParsePredictedLine(const std::string& line, const std::string& where) {
  ETC_ASSIGN_OR_RETURN(nlohmann::json json, ParseJson(line, where));
  std::string id;
  JsonObjectReader reader(json, where);
  reader.Required("id", &id);
  ETC_RETURN_IF_ERROR(reader.status());
  return std::pair(std::move(id), std::move(json));
}

// The JSON value of a prediction file. Of lines (ArePredictedLines by "id") it
// is made by add(id, line, &object) from an empty object.
//   kInvalidArgument  neither; a line without an id, or whose id comes again
// and those of ReadUnpackedFile.
template <typename Add>
absl::StatusOr<nlohmann::json> ReadPredictionJson(const std::string& path,
                                                  Add add) {
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadUnpackedFile(path));
  if (!ArePredictedLines(text, "id")) {
    return ParseJson(text, path);
  }
  ETC_ASSIGN_OR_RETURN(const ById<nlohmann::json> lines,
                       ReadById<nlohmann::json>(path, ParsePredictedLine));
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [id, line] : lines) {
    add(id, line, &object);
  }
  return object;
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

#endif  // ETC_TASKS_TASK_OFFICIAL_JSON_H_
