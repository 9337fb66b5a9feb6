#ifndef ETC_TASKS_OPENKP_RAW_H_
#define ETC_TASKS_OPENKP_RAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/openkp/record.h"

namespace etc {

// The words of a text: always at least one.
std::vector<absl::string_view> OpenkpWords(absl::string_view text);

// A document and its key phrases according to somebody, as lists of words.
struct OpenkpPhraseLists {
  std::string url;
  std::vector<std::vector<std::string>> phrases;
};

// Reads a line of a prediction file, or `url` and "KeyPhrases" of a data
// file's.
//   kInvalidArgument  not JSON, no url, phrases that are not lists of strings:
//                     the official evaluator would take a plain string for a
//                     list of letters (doc/openkp.md 8.2)
absl::StatusOr<OpenkpPhraseLists> ParseOpenkpPhraseLists(
    absl::string_view json, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_RAW_H_
