#ifndef ETC_TASKS_SQUAD_RAW_H_
#define ETC_TASKS_SQUAD_RAW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "tasks/data/record_source.h"

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

// The records of a file as SQuAD has it, {"data": [{"paragraphs": [{"context":
// "...", "qas": [{"id": "...", ...}, ...]}, ...]}, ...]}: each question with
// the context of its paragraph. They are called "train.json:
// data[3].paragraphs[2].qas[0]".
//   kInvalidArgument  it is not that, with the place and what was expected
// and those of ReadJsonFile.
absl::StatusOr<std::vector<FileRecord>> ReadSquadFile(const std::string& path);

// Reads one of them. Other fields are ignored, `plausible_answers` among them.
void ReadSquadRecord(JsonObjectReader& reader, SquadRecord* record);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_RAW_H_
