#include "tasks/wikihop/raw.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/task.h"

namespace etc {

void Wikihop::ReadRecord(JsonObjectReader& reader, Record* record) {
  std::string answer;
  reader.Required("id", &record->id);
  reader.Required("query", &record->query);
  reader.Required("candidates", &record->candidates);
  reader.Required("supports", &record->supports);
  reader.Optional("answer", &answer);
  if (record->candidates.empty()) {
    reader.Fail("candidates", "should name at least one answer, but is []");
  }
  for (std::string& candidate : record->candidates) {
    candidate = LowerCase(StripWhiteSpace(candidate));
  }
  if (reader.Has("answer")) {
    const auto found = std::find(record->candidates.begin(),
                                 record->candidates.end(), LowerCase(answer));
    if (found == record->candidates.end()) {
      reader.Fail("answer",
                  absl::StrCat("should be one of the candidates, but is \"",
                               answer, "\" (question ", record->id, ")"));
    }
    record->label = static_cast<int32_t>(found - record->candidates.begin());
  }
}

}  // namespace etc
