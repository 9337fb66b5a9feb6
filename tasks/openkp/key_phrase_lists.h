#ifndef ETC_TASKS_OPENKP_KEY_PHRASE_LISTS_H_
#define ETC_TASKS_OPENKP_KEY_PHRASE_LISTS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"

namespace etc {

// The field "KeyPhrases" of data and predictions alike: a list of phrases, each
// a list of strings. Nothing if it is absent. Mistakes are noted in `reader`; a
// phrase that is a plain string is one, because the official evaluator would
// take it for a list of letters (openkp spec 8.2).
std::optional<std::vector<std::vector<std::string>>> ReadKeyPhraseLists(
    JsonObjectReader& reader, bool required);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_KEY_PHRASE_LISTS_H_
