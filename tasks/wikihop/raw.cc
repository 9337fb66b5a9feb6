#include "tasks/wikihop/raw.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/text/text_folding.h"

namespace etc {

absl::StatusOr<WikihopRecord> ParseWikihopRecord(absl::string_view json,
                                                 const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, where));
  JsonObjectReader reader(object, where);
  WikihopRecord record;
  std::string answer;
  reader.Required("id", &record.id);
  reader.Required("query", &record.query);
  reader.Required("candidates", &record.candidates);
  reader.Required("supports", &record.supports);
  reader.Optional("answer", &answer);
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  if (record.candidates.empty()) {
    reader.Fail("candidates", "should name at least one answer, but is []");
    return reader.Finish(JsonObjectReader::UnknownFields::kIgnore);
  }
  for (std::string& candidate : record.candidates) {
    candidate = LowerCase(StripWhiteSpace(candidate));
  }
  if (reader.Has("answer")) {
    const auto found = std::find(record.candidates.begin(),
                                 record.candidates.end(), LowerCase(answer));
    if (found == record.candidates.end()) {
      reader.Fail("answer",
                  absl::StrCat("should be one of the candidates, but is \"",
                               answer, "\" (question ", record.id, ")"));
      return reader.Finish(JsonObjectReader::UnknownFields::kIgnore);
    }
    record.label = static_cast<int32_t>(found - record.candidates.begin());
  }
  return record;
}

}  // namespace etc
