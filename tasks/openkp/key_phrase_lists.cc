#include "tasks/openkp/key_phrase_lists.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace etc {

std::optional<std::vector<std::vector<std::string>>> ReadKeyPhraseLists(
    JsonObjectReader& reader, bool required) {
  constexpr char kField[] = "KeyPhrases";
  const nlohmann::json* phrases = reader.Raw(kField, required);
  if (phrases == nullptr) {
    return std::nullopt;
  }
  std::vector<std::vector<std::string>> lists;
  if (!phrases->is_array()) {
    reader.Fail(kField, "should be a list of lists of words");
    return lists;
  }
  for (const nlohmann::json& phrase : *phrases) {
    const bool is_list =
        phrase.is_array() && std::all_of(phrase.begin(), phrase.end(),
                                         [](const nlohmann::json& word) {
                                           return word.is_string();
                                         });
    if (!is_list) {
      reader.Fail(absl::StrCat(kField, "[", lists.size(), "]"),
                  "should be a list of words");
      return lists;
    }
    lists.push_back(phrase.get<std::vector<std::string>>());
  }
  return lists;
}

}  // namespace etc
