#ifndef ETC_TASKS_CLASSIFY_EXAMPLE_H_
#define ETC_TASKS_CLASSIFY_EXAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/classify/options.h"
#include "tasks/classify/record.h"
#include "tasks/data/example.h"

namespace etc {

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
