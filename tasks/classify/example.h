#ifndef ETC_TASKS_CLASSIFY_EXAMPLE_H_
#define ETC_TASKS_CLASSIFY_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/classify/options.h"
#include "tasks/data/example.h"

namespace etc {

// The answer for a document, by people or by a model.
struct ClassifyAnswer {
  ClassifyType type = ClassifyType::kOne;
  // One; or all that apply, sorted, each once; or none of a number.
  std::vector<std::string> labels = {};
  double number = 0;

  bool operator==(const ClassifyAnswer&) const = default;
};

// One row of a table, or one JSON object.
struct ClassifyRecord {
  // Absent in the file: the number of the record in it, from 0 on.
  std::string id;
  bool has_id = false;
  // Texts, at least one; a sentence ends with its text.
  std::vector<std::string> texts;
  std::optional<std::string> text_b;
  // Absent in data to predict for.
  std::optional<ClassifyAnswer> answer;
};

// A document as the model reads it (tasks/inputs/text_input.h). ETC gets a
// global token for each sentence, of text b after those of the others, as long
// as there is room. Texts that are too long are cut as CutLongerText does.
struct ClassifyExample : Example {
  ClassifyAnswer answer;
  // Indices of its labels among those of the options; empty if these are not
  // known yet.
  std::vector<int64_t> labels;
  int64_t dropped_pieces = 0;
  // Sentences in the input without a global token of their own.
  int64_t dropped_sentences = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_EXAMPLE_H_
