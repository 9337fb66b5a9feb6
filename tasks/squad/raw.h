#ifndef ETC_TASKS_SQUAD_RAW_H_
#define ETC_TASKS_SQUAD_RAW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace etc {

// An answer that a person marked in the context.
struct SquadAnswer {
  std::string text;
  // Begin of the answer, in code points of the context. Only training needs it.
  std::optional<int64_t> start;
};

// A question about a paragraph (doc/squad.md 1).
struct SquadRecord {
  std::string id;
  std::string question;
  std::string context;
  // Absent in data to predict for; empty for a question without answer.
  std::optional<std::vector<SquadAnswer>> answers;
  // Version 2.0 has it.
  std::optional<bool> is_impossible;
};

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_RAW_H_
