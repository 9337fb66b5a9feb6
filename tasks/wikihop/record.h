#ifndef ETC_TASKS_WIKIHOP_RECORD_H_
#define ETC_TASKS_WIKIHOP_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record, as programs give it (tasks/inference/predictor.h). A prediction is
// a std::string, the answer.

// One question of a QAngaroo WikiHop file (doc/wikihop.md 1.2).
struct WikihopRecord {
  std::string id = {};
  // Relation and subject, as in the file: "country_of_citizenship ann lee".
  std::string query = {};
  // Stripped and in lower case, in the order of the file. Never empty.
  std::vector<std::string> candidates = {};
  // Documents, as in the file.
  std::vector<std::string> supports = {};
  // Index of the first candidate that is the answer; none if the record has no
  // field "answer", as in data to predict for.
  std::optional<int32_t> label = std::nullopt;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts =
      std::make_tuple(&WikihopRecord::id, &WikihopRecord::query,
                      &WikihopRecord::candidates, &WikihopRecord::supports);
};

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_RECORD_H_
