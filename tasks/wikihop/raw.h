#ifndef ETC_TASKS_WIKIHOP_RAW_H_
#define ETC_TASKS_WIKIHOP_RAW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// One question of a QAngaroo WikiHop file (doc/wikihop.md 1.2).
struct WikihopRecord {
  std::string id;
  // Relation and subject, as in the file: "country_of_citizenship ann lee".
  std::string query;
  // Stripped and in lower case, in the order of the file. Never empty.
  std::vector<std::string> candidates;
  // Documents, as in the file.
  std::vector<std::string> supports;
  // Index of the first candidate that is the answer; none if the record has no
  // field "answer", as in data to predict for.
  std::optional<int32_t> label;
};

// Reads the JSON text of one record. Fields that are not used here
// ("annotations") are ignored. The answer is put in lower case but not stripped
// before it is looked for (doc/wikihop.md 1.3). `where` starts each message.
//   kInvalidArgument  not JSON, a field missing or of a wrong type, no
//                     candidates, an answer that is none of them
absl::StatusOr<WikihopRecord> ParseWikihopRecord(absl::string_view json,
                                                 const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_RAW_H_
